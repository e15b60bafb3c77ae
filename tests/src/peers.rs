//! Two devices with peer access.

use curium_driver::Context;
use curium_sim::Config;

use crate::{TestDriver, TestOutcome, on_driver, on_simulator, skip, uses_cuda};

/// Runs a test with the primary contexts of two devices that can access each other's memory:
/// simulated devices, or the first two of this machine's driver. Skips the test with a message on a
/// machine without them.
///
/// # Panics
///
/// Panics if the test panics.
pub fn on_peers<R: TestOutcome>(test: impl Fn(&TestDriver, &Context, &Context) -> R) -> R {
    let run = |driver: &TestDriver| {
        let devices = driver.driver().devices().expect("there are devices");
        let [first, second, ..] = &devices[..] else {
            return skip("there is one device only");
        };
        if !first.can_access_peer(second).expect("device query failed") {
            return skip("the first two devices have no peer access");
        }
        let contexts = [first, second].map(|device| {
            device
                .primary_context()
                .expect("a device has a primary context")
        });
        test(driver, &contexts[0], &contexts[1])
    };
    if uses_cuda() {
        on_driver(run)
    } else {
        on_simulator(Config::new().with_devices(2), |driver, _| run(driver))
    }
}
