//! Tests on a simulator with all checks on.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use curium_sys::FromProvider;

use crate::config::Config;
use crate::simulator::Simulator;
use crate::summary::Summary;
use curium_ptx::exec::Severity;

/// The time for which objects may outlive the closure before they count as leaked: another thread may be about to drop the last handle.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs a test on a new simulator with all checks on.
///
/// The closure receives the first `Device`, the `Driver`, or the [`Simulator`] itself, by the type of its parameter. The test fails if the
/// simulator reports a problem of a kernel, a copy or a graph, or if an object is live after the closure has returned.
///
/// The simulator reports out-of-bounds, use-after-free and misaligned accesses, races, reads of uninitialized memory, and graphs that
/// use destroyed objects. A test that causes such errors on purpose creates a [`Simulator`] of its own.
///
/// ```
/// use curium_driver::Device;
///
/// curium_sim::test(|device: Device| {
///     let stream = device.primary_context()?.stream()?;
///     stream.synchronize()
/// })?;
/// # Ok::<(), curium_driver::Error>(())
/// ```
///
/// # Panics
///
/// Panics if something was reported, with the kernel, the thread and the line of the PTX; if objects are live after the closure, with the
/// call that created each; and if no simulator or driver can be created. A panic of the closure passes through.
#[track_caller]
pub fn test<D: FromProvider<Simulator>, R>(body: impl FnOnce(D) -> R) -> R {
    test_with(Config::new(), body)
}

/// Runs a test as [`test()`] does, on a simulator with other settings, such as a seed or an older driver.
///
/// ```
/// use curium_driver::Device;
/// use curium_sim::Config;
///
/// for seed in 0..10 {
///     curium_sim::test_with(Config::new().with_seed(seed), |device: Device| device.primary_context()?.synchronize())?;
/// }
/// # Ok::<(), curium_driver::Error>(())
/// ```
///
/// # Panics
///
/// As [`test()`].
#[track_caller]
pub fn test_with<D: FromProvider<Simulator>, R>(config: Config, body: impl FnOnce(D) -> R) -> R {
    let seed = config.seed;
    let config = config
        .with_race_checks(true)
        .with_uninitialized_checks(true);
    let simulator =
        Simulator::new(config).unwrap_or_else(|error| panic!("no simulator for the test: {error}"));
    let device = simulator
        .driver()
        .unwrap_or_else(|error| panic!("no driver for the test: {error}"));
    let result = body(device);
    let failures = failures(&settled(&simulator));
    assert!(
        failures.is_empty(),
        "the test failed on the simulator with seed {seed}:{failures}"
    );
    result
}

/// Returns the summary once nothing is live, or after [`PATIENCE`].
fn settled(simulator: &Simulator) -> Summary {
    let deadline = Instant::now() + PATIENCE;
    while !simulator.live_handles().is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    simulator.summary()
}

/// Returns a line for each error, or else for each leak: after an error the context is lost, and its objects cannot be destroyed.
fn failures(summary: &Summary) -> String {
    let mut text = String::new();
    for report in summary
        .reports
        .iter()
        .filter(|report| report.severity() == Severity::Error)
    {
        write!(text, "\n  {report}").unwrap_or_default();
    }
    if text.is_empty() {
        for object in &summary.live_objects {
            write!(text, "\n  leak: {object}").unwrap_or_default();
        }
    }
    text
}
