//! A device: one GPU, or one part of it.

use std::ffi::c_char;
use std::fmt;

use curium_sys::{CUdevice, CUdevice_attribute, CUuuid};

use crate::call;
use crate::{Context, Driver, Result};

/// A device that this process may use.
///
/// A device is only a number with its driver: it is cheap to clone and holds nothing on the GPU. Work needs a [`Context`].
#[derive(Clone)]
pub struct Device {
    driver: Driver,
    raw: CUdevice,
}

/// The version of a device's architecture, such as 9.0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ComputeCapability {
    /// The generation.
    pub major: u32,
    /// The variant within the generation.
    pub minor: u32,
}

impl Device {
    /// The first device of this machine's driver, which is loaded on first use.
    ///
    /// # Errors
    ///
    /// As for [`Driver::load`], and `CUDA_ERROR_INVALID_DEVICE` if there is no device.
    pub fn first() -> Result<Self> {
        Driver::load()?.device(0)
    }

    pub(crate) fn new(driver: &Driver, ordinal: usize) -> Result<Self> {
        let number = i32::try_from(ordinal).unwrap_or(i32::MAX);
        let mut raw = 0;
        // SAFETY: `raw` is a valid place for the answer.
        let result = unsafe { call!(driver, cuDeviceGet(&raw mut raw, number)) };
        result.map_err(|error| {
            let count = driver.device_count().unwrap_or_default();
            error.about(format!("device {ordinal} of {count}"))
        })?;
        Ok(Self { driver: driver.clone(), raw })
    }

    /// The driver that this device belongs to.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The driver's handle of this device.
    #[must_use]
    pub fn as_raw(&self) -> CUdevice {
        self.raw
    }

    /// The name, such as `NVIDIA H100 80GB HBM3`.
    ///
    /// CUDA: `cuDeviceGetName`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDeviceGetName")]
    pub fn name(&self) -> Result<String> {
        let mut name = [0_u8; 256];
        // SAFETY: `name` has room for the number of bytes that is passed.
        unsafe { call!(&self.driver, cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 256, self.raw)) }?;
        Ok(text(&name))
    }

    /// The identifier that no other device has.
    ///
    /// CUDA: `cuDeviceGetUuid_v2`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDeviceGetUuid")]
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: `uuid` is a valid place for the answer.
        unsafe { call!(&self.driver, cuDeviceGetUuid_v2(&raw mut uuid, self.raw)) }?;
        Ok(uuid.bytes.map(c_char::cast_unsigned))
    }

    /// Where the device sits on the PCI bus, as `domain:bus:device.function` in hexadecimal.
    ///
    /// CUDA: `cuDeviceGetPCIBusId`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDeviceGetPCIBusId")]
    pub fn pci_bus_id(&self) -> Result<String> {
        let mut id = [0_u8; 32];
        // SAFETY: `id` has room for the number of bytes that is passed.
        unsafe { call!(&self.driver, cuDeviceGetPCIBusId(id.as_mut_ptr().cast::<c_char>(), 32, self.raw)) }?;
        Ok(text(&id))
    }

    /// The memory of the device in bytes.
    ///
    /// CUDA: `cuDeviceTotalMem_v2`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDeviceTotalMem")]
    pub fn total_memory(&self) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: `bytes` is a valid place for the answer.
        unsafe { call!(&self.driver, cuDeviceTotalMem_v2(&raw mut bytes, self.raw)) }?;
        Ok(bytes)
    }

    /// One attribute, in the unit that CUDA documents for it.
    ///
    /// CUDA: `cuDeviceGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that this driver does not know.
    #[doc(alias = "cuDeviceGetAttribute")]
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        let mut value = 0;
        // SAFETY: `value` is a valid place for the answer.
        let result = unsafe { call!(&self.driver, cuDeviceGetAttribute(&raw mut value, attribute, self.raw)) };
        result.map_err(|error| error.about(format!("attribute {}", attribute.0)))?;
        Ok(value)
    }

    /// The version of the architecture.
    ///
    /// CUDA: `cuDeviceGetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDeviceComputeCapability")]
    pub fn compute_capability(&self) -> Result<ComputeCapability> {
        let part = |attribute| -> Result<u32> { Ok(self.attribute(attribute)?.try_into().unwrap_or_default()) };
        Ok(ComputeCapability {
            major: part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        })
    }

    /// Retains the primary context: the one that the runtime API and most libraries use. It stays for as long as a clone of the
    /// result, or anything made from it, exists.
    ///
    /// CUDA: `cuDevicePrimaryCtxRetain`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    pub fn primary_context(&self) -> Result<Context> {
        Context::retain_primary(self)
    }

    /// Whether anybody in this process has retained the primary context.
    pub(crate) fn has_primary_context(&self) -> Result<bool> {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: `flags` and `active` are valid places for the answers, and the device belongs to this driver.
        unsafe { call!(&self.driver, cuDevicePrimaryCtxGetState(self.raw, &raw mut flags, &raw mut active)) }?;
        Ok(active != 0)
    }
}

impl AsRef<Driver> for Device {
    fn as_ref(&self) -> &Driver {
        &self.driver
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Device({})", self.raw)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The text before the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
