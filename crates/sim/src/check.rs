//! Tests on a simulator that has all checks on.

use crate::config::Config;
use crate::simulator::Simulator;

/// Runs a test on a new simulator with all checks on, and panics if the test leaves anything behind or a kernel or a copy did anything that
/// the simulator reports.
///
/// Reported are accesses out of bounds, to freed memory or misaligned, races, reads of memory that nobody wrote, and graphs that use
/// something that no longer exists. Faults that the test causes on purpose need a [`Simulator`] of its own.
///
/// ```
/// use curium_sys::Function;
///
/// // With the layers above: `let driver = Driver::from_provider(simulator)?;`
/// curium_sim::test(|simulator| assert_eq!(simulator.calls(Function::cuInit), 0));
/// ```
///
/// # Panics
///
/// If objects are live after the test, or if something was reported; and if no simulator can be made.
pub fn test<R>(body: impl FnOnce(Simulator) -> R) -> R {
    test_with(Config::new(), body)
}

/// As [`test()`], on a simulator with other settings.
///
/// # Panics
///
/// As [`test()`].
pub fn test_with<R>(config: Config, body: impl FnOnce(Simulator) -> R) -> R {
    let config = config.with_race_checks(true).with_unwritten_checks(true);
    let simulator = Simulator::new(config).unwrap_or_else(|error| panic!("no simulator for the test: {error}"));
    let result = body(simulator.clone());
    let summary = simulator.summary();
    let reported: Vec<String> = summary.kernel_faults.iter().map(|fault| format!("\n  fault: {fault}")).collect();
    let left: Vec<String> = summary.live_objects.iter().map(|object| format!("\n  left: {object}")).collect();
    assert!(reported.is_empty() && left.is_empty(), "the test ended with{}{}", reported.concat(), left.concat());
    result
}
