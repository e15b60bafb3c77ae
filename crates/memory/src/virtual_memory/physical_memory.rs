//! Physical memory allocations.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::sys::{CUmemAllocationProp, CUmemGenericAllocationHandle};
use curium_driver::{Device, DevicePointer, Driver, Error, Result, Returned, call};

use super::{Granularity, PhysicalOptions};

/// A physical memory allocation without an address. It can be mapped into one or more
/// [`AddressRange`](super::AddressRange)s.
///
/// It is freed with its last clone and its last [`Mapping`](super::Mapping), in this process and
/// all processes that it is shared with.
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
    /// Allocates `bytes` bytes on `device`: a multiple of the granularity. The contents are
    /// undefined.
    ///
    /// CUDA: `cuMemCreate`.
    ///
    /// # Errors
    ///
    /// As for [`PhysicalMemory::with_options`].
    pub fn new(device: &Device, bytes: usize) -> Result<Self> {
        Self::with_options(device.driver(), bytes, &PhysicalOptions::new(device))
    }

    /// Allocates `bytes` bytes with options: a multiple of their
    /// [granularity](PhysicalOptions::granularity). The contents are undefined.
    ///
    /// CUDA: `cuMemCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; `CUDA_ERROR_INVALID_VALUE`, with the granularity, if it
    /// is not a multiple; `CUDA_ERROR_NOT_SUPPORTED` or `CUDA_ERROR_NOT_PERMITTED` for handle types
    /// that the system does not support; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemCreate")]
    pub fn with_options(driver: &Driver, bytes: usize, options: &PhysicalOptions) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::argument(
                "PhysicalMemory::with_options",
                "zero length",
            ));
        }
        let properties = options.to_raw();
        let mut raw = 0;
        // SAFETY: `raw` and `properties` are valid pointers.
        let result = unsafe {
            call!(driver, cuMemCreate(&raw mut raw, bytes, &raw const properties, 0) creates raw)
        };
        result.map_err(|error| explain(error, driver, bytes, options))?;
        Ok(Self::owning(driver, raw, bytes))
    }

    /// Retains the memory of `bytes` bytes that is mapped at `pointer`.
    pub(super) fn retained(
        driver: &Driver,
        pointer: DevicePointer<u8>,
        bytes: usize,
    ) -> Result<Self> {
        let address = std::ptr::with_exposed_provenance_mut::<c_void>(pointer.as_raw() as usize);
        let mut raw = 0;
        // SAFETY: `raw` is a valid pointer, and the driver validates the address.
        let result = unsafe {
            call!(driver, cuMemRetainAllocationHandle(&raw mut raw, address) creates raw)
        };
        result.map_err(|error| error.about(format!("address {pointer:?}")))?;
        Ok(Self::owning(driver, raw, bytes))
    }

    /// Takes ownership of a handle of `bytes` bytes of memory.
    ///
    /// # Safety
    ///
    /// - `raw` is a live handle of this driver to memory of this size.
    /// - No other code releases this reference.
    #[must_use]
    pub unsafe fn from_raw(
        driver: &Driver,
        raw: CUmemGenericAllocationHandle,
        bytes: usize,
    ) -> Self {
        Self::owning(driver, raw, bytes)
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUmemGenericAllocationHandle {
        self.shared.raw
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.shared.bytes
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.shared.driver
    }

    /// Queries the options of the memory.
    ///
    /// CUDA: `cuMemGetAllocationPropertiesFromHandle`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemGetAllocationPropertiesFromHandle")]
    pub fn options(&self) -> Result<PhysicalOptions> {
        let mut properties = CUmemAllocationProp::default();
        let raw = self.as_raw();
        // SAFETY: `properties` is a valid pointer, and the handle is live.
        unsafe {
            call!(
                self.driver(),
                cuMemGetAllocationPropertiesFromHandle(&raw mut properties, raw)
            )
        }?;
        Ok(PhysicalOptions::from_raw(&properties))
    }

    /// Releases this reference to the memory, as [`Drop`] does, and returns any error.
    ///
    /// CUDA: `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// Returns the memory together with the error if clones or mappings of it exist or the driver
    /// fails.
    #[doc(alias = "cuMemRelease")]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            let others = Arc::strong_count(&shared) - 1;
            let reason = format!("the memory has {others} other owners: clones or mappings");
            Returned::new(
                Self { shared },
                Error::argument("PhysicalMemory::close", reason),
            )
        })?;
        shared.release().map_err(|error| {
            Returned::new(
                Self {
                    shared: Arc::new(shared),
                },
                error,
            )
        })
    }

    pub(crate) fn owning(driver: &Driver, raw: CUmemGenericAllocationHandle, bytes: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                driver: driver.clone(),
                raw,
                bytes,
            }),
        }
    }
}

impl Shared {
    fn release(&mut self) -> Result<()> {
        // SAFETY: the handle is live, and it is not used after this call.
        unsafe { call!(&self.driver, cuMemRelease(self.raw)) }
            .map_err(|error| error.about(format!("physical memory {:#x}", self.raw)))?;
        self.raw = 0;
        Ok(())
    }
}

impl AsRef<Driver> for PhysicalMemory {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for PhysicalMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "PhysicalMemory({} bytes, handle {:#x})",
            self.byte_len(),
            self.as_raw()
        )
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.raw != 0 {
            release(|| self.release());
        }
    }
}

/// Adds the request to an error, and the granularity if the size may be the cause.
#[cold]
fn explain(error: Error, driver: &Driver, bytes: usize, options: &PhysicalOptions) -> Error {
    let error = error.about(format!("{bytes} bytes of {}", options.location));
    let granularity = options.granularity(driver, Granularity::Minimum).ok();
    let missed =
        granularity.filter(|granularity| *granularity != 0 && !bytes.is_multiple_of(*granularity));
    error
        .advised(|_| Some(format!("use a multiple of the granularity of {} bytes", missed?).into()))
}
