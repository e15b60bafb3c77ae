//! Devices: a GPU, or a partition of one.

mod atomics;
mod attribute;
mod fabric;
mod lookup;
mod luid;
mod notification;
mod peer;
mod topology;

use std::ffi::{CStr, c_char};
use std::fmt;

use curium_sys::{ApiProvider, CUarray_format, CUdevice, CUexecAffinityType, CUuuid, FromProvider};

pub use self::atomics::{AtomicForms, AtomicOperation};
pub use self::attribute::{
    AttributeKey, ComputeMode, DecompressAlgorithms, DeviceAttribute, EndpointHandleTypes,
    MemoryHandleTypes, NumaConfig, RdmaFlushOptions, RdmaWritesOrdering,
};
pub use self::fabric::{Clique, CliqueKind};
pub use self::luid::Luid;
pub use self::notification::{Notification, NotificationListener};
pub use self::peer::PeerLink;
pub use self::topology::{Topology, TopologyDevice};
use crate::call;
use crate::{Driver, Error, Result};

/// A CUDA device.
///
/// A device consists of its handle and its driver. It is cheap to clone and holds no resources on
/// the GPU. Work requires a [`Context`](crate::Context).
#[derive(Clone)]
pub struct Device {
    driver: Driver,
    raw: CUdevice,
}

/// The compute capability of a device, such as 9.0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ComputeCapability {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl Device {
    /// Returns the device with ordinal 0. Loads the driver on first use.
    ///
    /// # Errors
    ///
    /// As for [`Driver::load`], and `CUDA_ERROR_INVALID_DEVICE` if there is no device.
    pub fn first() -> Result<Self> {
        Driver::load()?.device(0)
    }

    pub(crate) fn new(driver: &Driver, ordinal: usize) -> Result<Self> {
        let raw_ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
        let mut raw = 0;
        // SAFETY: `raw` is valid for writes.
        let result = unsafe { call!(driver, cuDeviceGet(&raw mut raw, raw_ordinal)) };
        result.map_err(|error| {
            let count = driver.device_count().unwrap_or_default();
            error.about(format!("device {ordinal} of {count}"))
        })?;
        Ok(Self {
            driver: driver.clone(),
            raw,
        })
    }

    /// Creates a device from a handle obtained elsewhere. The handle is not checked: if it is
    /// invalid, calls that use the device fail.
    #[must_use]
    pub fn from_raw(driver: &Driver, raw: CUdevice) -> Self {
        Self {
            driver: driver.clone(),
            raw,
        }
    }

    /// Returns the driver of this device.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the raw handle.
    #[must_use]
    pub fn as_raw(&self) -> CUdevice {
        self.raw
    }

    /// Returns the name of the device, such as `NVIDIA H100 80GB HBM3`.
    ///
    /// CUDA: `cuDeviceGetName`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetName")]
    #[doc(alias = "cudaGetDeviceProperties")]
    pub fn name(&self) -> Result<String> {
        let mut name = [0_u8; 256];
        // SAFETY: `name` has room for the number of bytes that is passed.
        unsafe {
            call!(
                &self.driver,
                cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 256, self.raw)
            )
        }?;
        Ok(string_until_nul(&name))
    }

    /// Returns the UUID of the device.
    ///
    /// CUDA: `cuDeviceGetUuid_v2`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetUuid")]
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: `uuid` is valid for writes.
        unsafe { call!(&self.driver, cuDeviceGetUuid_v2(&raw mut uuid, self.raw)) }?;
        // `c_char` is signed on some targets only.
        Ok(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// Returns the PCI bus identifier, in the form `domain:bus:device.function` in hexadecimal.
    ///
    /// CUDA: `cuDeviceGetPCIBusId`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetPCIBusId")]
    #[doc(alias = "cudaDeviceGetPCIBusId")]
    pub fn pci_bus_id(&self) -> Result<String> {
        let mut id = [0_u8; 32];
        // SAFETY: `id` has room for the number of bytes that is passed.
        unsafe {
            call!(
                &self.driver,
                cuDeviceGetPCIBusId(id.as_mut_ptr().cast::<c_char>(), 32, self.raw)
            )
        }?;
        Ok(string_until_nul(&id))
    }

    /// Returns the total memory of the device in bytes.
    ///
    /// CUDA: `cuDeviceTotalMem_v2`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceTotalMem")]
    pub fn total_memory(&self) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: `bytes` is valid for writes.
        unsafe { call!(&self.driver, cuDeviceTotalMem_v2(&raw mut bytes, self.raw)) }?;
        Ok(bytes)
    }

    /// Returns an attribute of the device. The value has a specific type if `attribute` is a
    /// [`DeviceAttribute`], and is an `i32` if it is a
    /// [`CUdevice_attribute`](curium_sys::CUdevice_attribute).
    ///
    /// CUDA: `cuDeviceGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that this driver does not support.
    #[doc(alias = "cuDeviceGetAttribute")]
    #[doc(alias = "cudaDeviceGetAttribute")]
    pub fn attribute<A: AttributeKey>(&self, attribute: A) -> Result<A::Value> {
        let raw = attribute.raw();
        let mut value = 0;
        // SAFETY: `value` is valid for writes.
        let result = unsafe {
            call!(
                &self.driver,
                cuDeviceGetAttribute(&raw mut value, raw, self.raw)
            )
        };
        result.map_err(|error| match attribute.name() {
            Some(name) => error.about(format!("attribute {name}")),
            None => error.about(format!("attribute {}", raw.0)),
        })?;
        Ok(attribute.value(value))
    }

    /// Returns the compute capability of the device.
    ///
    /// CUDA: `cuDeviceGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceComputeCapability")]
    pub fn compute_capability(&self) -> Result<ComputeCapability> {
        Ok(ComputeCapability {
            major: self.attribute(DeviceAttribute::COMPUTE_CAPABILITY_MAJOR)?,
            minor: self.attribute(DeviceAttribute::COMPUTE_CAPABILITY_MINOR)?,
        })
    }

    /// Returns `true` if a context can be limited to a number of multiprocessors, as the
    /// Multi-Process Service (MPS) allows. See
    /// [`ContextOptions::with_multiprocessors`](crate::ContextOptions::with_multiprocessors).
    ///
    /// CUDA: `cuDeviceGetExecAffinitySupport`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetExecAffinitySupport")]
    pub fn supports_affinity(&self) -> Result<bool> {
        let kind = CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT;
        let mut supported = 0;
        // SAFETY: `supported` is valid for writes.
        unsafe {
            call!(
                &self.driver,
                cuDeviceGetExecAffinitySupport(&raw mut supported, kind, self.raw)
            )
        }?;
        Ok(supported != 0)
    }

    /// Returns the maximum width of a 1D texture over linear memory, in elements with `channels`
    /// channels of `format`.
    ///
    /// CUDA: `cuDeviceGetTexture1DLinearMaxWidth`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a format, or a number of channels, that textures do not
    /// support.
    #[doc(alias = "cuDeviceGetTexture1DLinearMaxWidth")]
    pub fn linear_texture_width(&self, format: CUarray_format, channels: u32) -> Result<usize> {
        let mut width = 0;
        // SAFETY: `width` is valid for writes.
        let result = unsafe {
            call!(
                &self.driver,
                cuDeviceGetTexture1DLinearMaxWidth(&raw mut width, format, channels, self.raw)
            )
        };
        result
            .map_err(|error| error.about(format!("{channels} channels of format {}", format.0)))?;
        Ok(width)
    }
}

/// The device with ordinal 0.
impl<P: ApiProvider> FromProvider<P> for Device {
    type Error = Error;

    fn from_provider(provider: P) -> Result<Self> {
        Driver::from_provider(provider)?.device(0)
    }
}

impl AsRef<Driver> for Device {
    fn as_ref(&self) -> &Driver {
        &self.driver
    }
}

/// Devices are equal if they have the same handle and driver.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.driver.is_same(&other.driver)
    }
}

impl Eq for Device {}

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

/// Returns the text before the first NUL.
fn string_until_nul(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    String::from_utf8_lossy(text).into_owned()
}
