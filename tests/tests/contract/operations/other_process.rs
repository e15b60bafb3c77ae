//! The other process of operations that share objects between processes: a simulator of its own.

use curium_driver::{Device, Driver, Result, Stream};
use curium_sim::{Config, Simulator};

use super::Fixture;

/// The objects of the other process. The simulator ends after every object created from it.
pub(crate) struct OtherProcess {
    pub(crate) stream: Stream,
    pub(crate) device: Device,
    pub(crate) driver: Driver,
    _simulator: Simulator,
}

impl OtherProcess {
    /// Returns an error if the fixture's driver is unusable.
    pub(crate) fn new(fixture: &Fixture) -> Result<Self> {
        fixture.driver.device_count()?;
        let simulator = Simulator::new(Config::new()).expect("failed to create a simulator");
        let driver = simulator.driver::<Driver>()?;
        let device = driver.device(0)?;
        Ok(Self {
            stream: device.primary_context()?.stream()?,
            device,
            driver,
            _simulator: simulator,
        })
    }
}
