//! Tests on a simulator with all checks on.

use std::time::Duration;

use curium_ptx::exec::Severity;
use curium_sys::FromProvider;

use crate::config::Config;
use crate::simulator::Simulator;

/// The budget of a launch in a test.
const INSTRUCTION_LIMIT: u64 = 10_000_000_000;
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Runs a test on a new simulator with all checks on.
///
/// The closure receives the first `Device`, the `Driver`, or the [`Simulator`] itself, by the type
/// of its parameter. The test fails if the simulator reports a problem of a kernel, a copy or a
/// graph, or if an object is live after the closure has returned.
///
/// The simulator reports out-of-bounds, use-after-free and misaligned accesses, races, reads of
/// uninitialized memory, and graphs that use destroyed objects. A kernel that executes more than 10
/// billion instructions, or that runs for more than two minutes, is stopped, so that no test hangs.
/// A test that causes such errors on purpose creates a [`Simulator`] of its own.
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
/// Panics if something was reported, with the kernel, the thread and the line of the PTX; if
/// objects are live after the closure, with the call that created each; and if no simulator or
/// driver can be created. A panic of the closure passes through.
#[track_caller]
pub fn test<D: FromProvider<Simulator>, R>(body: impl FnOnce(D) -> R) -> R {
    test_with(Config::new(), body)
}

/// Runs a test as [`test()`] does, on a simulator with other settings, such as a seed or an older
/// driver.
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
    let config = Config {
        instruction_limit: config.instruction_limit.or(Some(INSTRUCTION_LIMIT)),
        time_limit: config.time_limit.or(Some(TIME_LIMIT)),
        ..config
            .with_race_checks(true)
            .with_uninitialized_checks(true)
    };
    let simulator =
        Simulator::new(config).unwrap_or_else(|error| panic!("no simulator for the test: {error}"));
    let device = simulator
        .driver()
        .unwrap_or_else(|error| panic!("no driver for the test: {error}"));
    let result = body(device);
    let mut failures = errors(&simulator);
    // After an error the context is lost, and its objects cannot be destroyed: they are not waited
    // for.
    if failures.is_empty() {
        let leaked = simulator.leaked_objects();
        failures = errors(&simulator);
        if failures.is_empty() {
            failures = leaked
                .iter()
                .map(|object| format!("\n  leak: {object}"))
                .collect();
        }
    }
    assert!(
        failures.is_empty(),
        "the test failed on the simulator with seed {seed}:{failures}"
    );
    result
}

/// Returns a line for each error that the simulator has reported.
fn errors(simulator: &Simulator) -> String {
    let reports = simulator.reports();
    let errors = reports
        .iter()
        .filter(|report| report.severity() == Severity::Error);
    errors.map(|report| format!("\n  {report:#}")).collect()
}
