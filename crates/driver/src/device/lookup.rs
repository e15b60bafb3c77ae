//! Look-up of devices by ordinal, PCI bus identifier and UUID.

use std::ffi::CString;

use curium_sys::CUdevice;

use crate::call;
use crate::{Device, Driver, Error, Result};

impl Driver {
    /// Returns the device with this ordinal. The first device has ordinal 0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if there is no device with this ordinal.
    pub fn device(&self, ordinal: usize) -> Result<Device> {
        Device::new(self, ordinal)
    }

    /// Returns all devices visible to this process.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn devices(&self) -> Result<Vec<Device>> {
        (0..self.device_count()?)
            .map(|ordinal| self.device(ordinal))
            .collect()
    }

    /// Returns the device with this PCI bus identifier: `domain:bus:device.function`,
    /// `domain:bus:device` or `bus:device.function`, in hexadecimal.
    ///
    /// CUDA: `cuDeviceGetByPCIBusId`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if no visible device has this identifier,
    /// `CUDA_ERROR_INVALID_VALUE` if the identifier is malformed, an argument error if it contains
    /// a NUL.
    #[doc(alias = "cuDeviceGetByPCIBusId")]
    #[doc(alias = "cudaDeviceGetByPCIBusId")]
    pub fn device_by_pci_bus_id(&self, id: &str) -> Result<Device> {
        let text = CString::new(id).map_err(|_| {
            Error::argument(
                "Driver::device_by_pci_bus_id",
                format!("identifier contains a NUL ({id:?})"),
            )
        })?;
        let mut raw: CUdevice = 0;
        // SAFETY: `raw` is valid for writes, and `text` is NUL-terminated and outlives the call.
        let result = unsafe { call!(self, cuDeviceGetByPCIBusId(&raw mut raw, text.as_ptr())) };
        result.map_err(|error| error.about(format!("the device at {id:?}")))?;
        Ok(Device::from_raw(self, raw))
    }

    /// Returns the device with the UUID that [`Device::uuid`] returned, in this process or another.
    ///
    /// CUDA: `cuDeviceGetUuid_v2` for each device.
    ///
    /// # Errors
    ///
    /// An argument error if no visible device has this UUID, and any error returned by the driver.
    pub fn device_by_uuid(&self, uuid: [u8; 16]) -> Result<Device> {
        for device in self.devices()? {
            if device.uuid()? == uuid {
                return Ok(device);
            }
        }
        let wanted = u128::from_be_bytes(uuid);
        Err(Error::argument(
            "Driver::device_by_uuid",
            format!("no device of this process has the UUID {wanted:032x}"),
        ))
    }
}
