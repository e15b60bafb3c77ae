//! The simulator in place of a GPU.

use curium_sys::FromProvider;

use crate::config::Config;
use crate::simulator::Simulator;

/// Returns the first device of a new simulator, for a program that is to run without a GPU too.
///
/// ```
/// use curium_driver::Device;
///
/// let device = Device::first().or_else(curium_sim::fallback)?;
/// println!("running on {}", device.name()?);
/// # Ok::<(), curium_driver::Error>(())
/// ```
///
/// A `Driver` falls back in the same way: `Driver::load().or_else(curium_sim::fallback)`. The
/// reason is written to stderr, since kernels on the simulator are much slower. To select the
/// settings, pass a closure that calls [`Simulator::new`].
///
/// # Errors
///
/// Returns `error`, the reason why there is no GPU, if no simulator can be created either.
#[expect(
    clippy::print_stderr,
    reason = "a program that is unexpectedly slow must not be a riddle"
)]
pub fn fallback<D: FromProvider<Simulator>>(error: D::Error) -> Result<D, D::Error> {
    let Ok(simulator) = Simulator::new(Config::new()) else {
        return Err(error);
    };
    eprintln!("No usable GPU; falling back to the simulator: {error}");
    simulator.driver()
}
