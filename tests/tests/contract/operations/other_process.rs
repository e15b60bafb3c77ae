//! The other process of operations that share objects between processes: a simulator of its own.

use curium_driver::{Device, Driver, Result, Stream};
use curium_sim::{Config, Simulator};

use super::Fixture;

/// The objects of the other process. The simulator ends after every object created from it.
pub(super) struct OtherProcess {
    pub(super) stream: Stream,
    pub(super) device: Device,
    pub(super) driver: Driver,
    _simulator: Simulator,
}

impl OtherProcess {
    /// Returns an error if the fixture's driver is unusable.
    pub(super) fn new(fixture: &Fixture) -> Result<Self> {
        fixture.driver.device_count()?;
        let simulator = Simulator::new(Config::new()).expect("a simulator can be created");
        let driver = simulator.driver::<Driver>()?;
        let device = driver.device(0)?;
        Ok(Self { stream: device.primary_context()?.stream()?, device, driver, _simulator: simulator })
    }
}
