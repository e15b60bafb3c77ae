//! Look-up of devices by ordinal, PCI bus identifier and UUID.

use std::ffi::CString;

use curium_sys::CUdevice;

use crate::call;
use crate::{Device, Driver, Error, Result};

impl Driver {
    /// Returns the device number `ordinal`, counted from 0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if there are not that many.
    #[inline]
    pub fn device(&self, ordinal: usize) -> Result<Device> {
        Device::new(self, ordinal)
    }

    /// Returns every device that this process may use.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub fn devices(&self) -> Result<Vec<Device>> {
        (0..self.device_count()?).map(|ordinal| self.device(ordinal)).collect()
    }

    /// Returns the device at a place on the PCI bus: `domain:bus:device.function`, `domain:bus:device` or `bus:device.function`, in
    /// hexadecimal.
    ///
    /// CUDA: `cuDeviceGetByPCIBusId`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if none of this process's devices is there, `CUDA_ERROR_INVALID_VALUE` if the text has another
    /// form, an argument error if it has a NUL in it.
    #[doc(alias = "cuDeviceGetByPCIBusId")]
    #[inline]
    pub fn device_by_pci_bus_id(&self, id: &str) -> Result<Device> {
        let text = CString::new(id)
            .map_err(|_| Error::argument("Driver::device_by_pci_bus_id", format!("there is a NUL in {id:?}")))?;
        let mut raw: CUdevice = 0;
        // SAFETY: `raw` is valid for writes, and `text` ends in NUL and outlives the call.
        let result = unsafe { call!(self, cuDeviceGetByPCIBusId(&raw mut raw, text.as_ptr())) };
        result.map_err(|error| error.about(format!("the device at {id:?}")))?;
        Ok(Device::from_raw(self, raw))
    }

    /// Returns the device with an identifier that [`Device::uuid`] gave, in this process or another.
    ///
    /// CUDA: `cuDeviceGetUuid_v2` of one device after the other.
    ///
    /// # Errors
    ///
    /// An argument error if none of this process's devices has it, and an error of the driver.
    #[inline]
    pub fn device_by_uuid(&self, uuid: [u8; 16]) -> Result<Device> {
        for device in self.devices()? {
            if device.uuid()? == uuid {
                return Ok(device);
            }
        }
        let wanted = u128::from_be_bytes(uuid);
        Err(Error::argument("Driver::device_by_uuid", format!("no device of this process has the UUID {wanted:032x}")))
    }
}
