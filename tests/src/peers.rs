//! Two devices with peer access.

use curium_driver::Context;
use curium_sim::Config;

use crate::{TestDriver, on_driver, on_simulator, uses_cuda};

/// Runs a test with the primary contexts of two devices that can access each other's memory: simulated devices, or the
/// first two of this machine's driver. Skips the test with a message on a machine without them.
///
/// # Panics
///
/// Panics if the test fails.
pub fn on_peers(test: impl Fn(&TestDriver, &Context, &Context)) {
    if uses_cuda() {
        on_driver(|driver| run_on_first_two(driver, test));
    } else {
        on_simulator(Config::new().with_devices(2), |driver, _| {
            run_on_first_two(driver, test)
        });
    }
}

/// Calls `test` with the primary contexts of the first two devices, unless they have no peer access.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run must not look like one that did"
)]
fn run_on_first_two(driver: &TestDriver, test: impl Fn(&TestDriver, &Context, &Context)) {
    let devices = driver.driver().devices().expect("there are devices");
    let [first, second, ..] = &devices[..] else {
        return eprintln!("skipped: there is one device only");
    };
    if !first
        .can_access_peer(second)
        .expect("devices can be queried")
    {
        return eprintln!("skipped: the first two devices have no peer access");
    }
    let contexts = [first, second].map(|device| {
        device
            .primary_context()
            .expect("a device has a primary context")
    });
    test(driver, &contexts[0], &contexts[1]);
}
