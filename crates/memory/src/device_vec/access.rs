//! Peer access to vectors.

use curium_driver::{Device, Error, Result};

use super::DeviceVec;

impl<T> DeviceVec<T> {
    /// Enables access by `device` to the current and future elements, if the devices are peers.
    ///
    /// CUDA: `cuDeviceCanAccessPeer`, `cuMemSetAccess`.
    ///
    /// # Errors
    ///
    /// An argument error if the device cannot access the memory, or belongs to another driver.
    #[doc(alias = "cuMemSetAccess")]
    pub fn enable_access(&mut self, device: &Device) -> Result<()> {
        const OPERATION: &str = "DeviceVec::enable_access";
        self.stream()
            .driver()
            .expect_same(device.driver(), OPERATION)?;
        let owner = self.stream().device();
        if owner.as_raw() == device.as_raw() || self.segments.is_reached_by(device) {
            return Ok(());
        }
        if !device.can_access_peer(owner)? {
            let owner = owner.as_raw();
            let other = device.as_raw();
            let reason =
                format!("device {other} cannot use memory on device {owner}: copy the elements");
            return Err(Error::argument(OPERATION, reason));
        }
        self.segments.allow(device)?;
        self.tracked.grant_access(device);
        Ok(())
    }
}
