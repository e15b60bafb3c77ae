//! Memory without an address.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use curium_driver::sys::{CUmemAllocationProp, CUmemGenericAllocationHandle};
use curium_driver::{Device, DevicePointer, Driver, Error, Result, Returned, call, release};

use super::{Granularity, PhysicalOptions};

/// Memory that has no address until it is mapped into an [`AddressRange`](super::AddressRange), once or several times.
///
/// It is freed when neither a clone of this value nor a [`Mapping`](super::Mapping) of it exists, here and in every process that it was
/// shared with.
#[derive(Clone)]
pub struct PhysicalMemory {
    shared: Arc<Shared>,
}

struct Shared {
    driver: Driver,
    raw: CUmemGenericAllocationHandle,
    bytes: usize,
}

impl PhysicalMemory {
    /// `bytes` of memory on `device`, a multiple of the granularity. What it holds is undefined.
    ///
    /// CUDA: `cuMemCreate`.
    ///
    /// # Errors
    ///
    /// As for [`PhysicalMemory::with_options`].
    #[inline]
    pub fn new(device: &Device, bytes: usize) -> Result<Self> {
        Self::with_options(device.driver(), bytes, &PhysicalOptions::new(device))
    }

    /// `bytes` of memory as `options` say, a multiple of their [granularity](PhysicalOptions::granularity). What it holds is
    /// undefined.
    ///
    /// CUDA: `cuMemCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; `CUDA_ERROR_INVALID_VALUE` with the granularity if it is no multiple of that;
    /// `CUDA_ERROR_NOT_SUPPORTED` or `CUDA_ERROR_NOT_PERMITTED` for kinds of handle that the system does not have;
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemCreate")]
    #[inline]
    pub fn with_options(driver: &Driver, bytes: usize, options: &PhysicalOptions) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::argument("PhysicalMemory::with_options", "zero length"));
        }
        let (properties, mut raw) = (options.to_raw(), 0);
        // SAFETY: `raw` and `properties` are valid places.
        let result = unsafe { call!(driver, cuMemCreate(&raw mut raw, bytes, &raw const properties, 0) creates raw) };
        result.map_err(|error| explain(error, driver, bytes, options))?;
        Ok(Self::owning(driver, raw, bytes))
    }

    /// The memory of `bytes` bytes that is mapped at `pointer`: another hold on it.
    #[inline]
    pub(super) fn retained(driver: &Driver, pointer: DevicePointer<u8>, bytes: usize) -> Result<Self> {
        let (address, mut raw) = (std::ptr::with_exposed_provenance_mut::<c_void>(pointer.as_raw() as usize), 0);
        // SAFETY: `raw` is a valid place for the answer; the address is only looked up.
        let result = unsafe { call!(driver, cuMemRetainAllocationHandle(&raw mut raw, address) creates raw) };
        result.map_err(|error| error.about(format!("address {pointer:?}")))?;
        Ok(Self::owning(driver, raw, bytes))
    }

    /// Takes a handle over that was made elsewhere, of memory of `bytes` bytes.
    ///
    /// # Safety
    ///
    /// - `raw` is a live handle of this driver of memory of this size.
    /// - Nobody else releases this hold on it.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(driver: &Driver, raw: CUmemGenericAllocationHandle, bytes: usize) -> Self {
        Self::owning(driver, raw, bytes)
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUmemGenericAllocationHandle {
        self.shared.raw
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.shared.bytes
    }

    /// The driver.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        &self.shared.driver
    }

    /// What the memory was asked for with, as the driver knows it.
    ///
    /// CUDA: `cuMemGetAllocationPropertiesFromHandle`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuMemGetAllocationPropertiesFromHandle")]
    #[inline]
    pub fn options(&self) -> Result<PhysicalOptions> {
        let mut properties = CUmemAllocationProp::default();
        let raw = self.as_raw();
        // SAFETY: `properties` is a valid place for the answer, and the handle is live.
        unsafe { call!(self.driver(), cuMemGetAllocationPropertiesFromHandle(&raw mut properties, raw)) }?;
        Ok(PhysicalOptions::from_raw(&properties))
    }

    /// Gives this hold on the memory back, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// Gives the memory back if clones or mappings of it still exist, or if the driver refuses.
    #[doc(alias = "cuMemRelease")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            let others = Arc::strong_count(&shared) - 1;
            let reason = format!("the memory has {others} other owners: clones or mappings");
            Returned::new(Self { shared }, Error::argument("PhysicalMemory::close", reason))
        })?;
        shared.release().map_err(|error| Returned::new(Self { shared: Arc::new(shared) }, error))
    }

    #[inline]
    pub(crate) fn owning(driver: &Driver, raw: CUmemGenericAllocationHandle, bytes: usize) -> Self {
        Self { shared: Arc::new(Shared { driver: driver.clone(), raw, bytes }) }
    }
}

impl Shared {
    #[inline]
    fn release(&mut self) -> Result<()> {
        // SAFETY: the handle is live, and is forgotten once it is released.
        unsafe { call!(&self.driver, cuMemRelease(self.raw)) }
            .map_err(|error| error.about(format!("physical memory {:#x}", self.raw)))?;
        self.raw = 0;
        Ok(())
    }
}

impl AsRef<Driver> for PhysicalMemory {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for PhysicalMemory {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PhysicalMemory({} bytes, handle {:#x})", self.byte_len(), self.as_raw())
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        if self.raw != 0 {
            release(|| self.release());
        }
    }
}

/// Adds to the error of an allocation what was asked for, and the granularity if that may be the cause.
#[cold]
#[inline]
fn explain(error: Error, driver: &Driver, bytes: usize, options: &PhysicalOptions) -> Error {
    let error = error.about(format!("{bytes} bytes of {}", options.location));
    let granularity = options.granularity(driver, Granularity::Minimum).ok();
    let missed = granularity.filter(|granularity| *granularity != 0 && !bytes.is_multiple_of(*granularity));
    error.advised(|_| Some(format!("use a multiple of the granularity of {} bytes", missed?).into()))
}
