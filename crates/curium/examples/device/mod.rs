//! Selects the device of the examples: `--device gpu`, `--device sim`, or `--device auto`, which
//! falls back to the simulator.

use std::error::Error;

use curium::prelude::*;
use curium_sim::{Config, Simulator};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Returns the driver that the command line selects. The simulator has two devices, for the example
/// of peers.
pub(crate) fn driver() -> Outcome<Driver> {
    let asked = std::env::args()
        .skip_while(|argument| argument != "--device")
        .nth(1);
    match asked.as_deref() {
        Some("gpu") => Ok(Driver::load()?),
        Some("sim") => simulated(),
        Some("auto") | None => Driver::load().or_else(|_| simulated()),
        Some(other) => Err(format!("--device {other}: it may be auto, gpu or sim").into()),
    }
}

fn simulated() -> Outcome<Driver> {
    let simulator = Simulator::new(Config::new().with_devices(2))?;
    let api = simulator.api();
    // SAFETY: the simulator implements the driver's functions, and the driver keeps it for as long
    // as they are used.
    Ok(unsafe { Driver::from_api_with_owner(api, simulator) }?)
}
