//! Memory pools (`CUmemoryPool`).

mod allocation;
mod attribute;
mod options;
mod sharing;
mod statistics;

use std::fmt;
use std::sync::Arc;

use curium_driver::extend::{release, with_relaxed_capture_mode};
use curium_driver::sys::{CUmemAccess_flags, CUmemAccessDesc, CUmemoryPool};
use curium_driver::{Device, Driver, Error, Result, Returned, call};

pub use self::options::{PoolKind, PoolOptions, PoolUsage};
pub use self::sharing::{PoolMemory, PoolPointerHandle};
pub use self::statistics::PoolStatistics;
use crate::{MemoryAccess, MemoryLocation};

/// A memory pool of the driver, for stream-ordered allocation. It is a
/// [`Resource`](crate::Resource), so buffers can be allocated from it.
///
/// Clones are cheap and refer to the same pool. The driver keeps a dropped pool until all memory
/// allocated from it is freed.
#[derive(Clone)]
pub struct MemoryPool {
    shared: Arc<Shared>,
}

struct Shared {
    driver: Driver,
    raw: CUmemoryPool,
    /// `true` if dropping the last clone destroys the pool; otherwise other code owns it.
    is_owned: bool,
}

// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Send for Shared {}
// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Sync for Shared {}

impl MemoryPool {
    /// Creates a pool on `device` with the options of [`PoolOptions::new`].
    ///
    /// CUDA: `cuMemPoolCreate`, `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`MemoryPool::with_options`].
    pub fn new(device: &Device) -> Result<Self> {
        Self::with_options(device.driver(), &PoolOptions::new(device))
    }

    /// Creates a pool with options.
    ///
    /// CUDA: `cuMemPoolCreate`, `cuMemPoolSetAttribute`. Host pools require a driver for CUDA 12.2,
    /// managed pools one for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` or `CUDA_ERROR_INVALID_VALUE` for locations and handle types that
    /// the driver or the system does not support.
    #[doc(alias = "cuMemPoolCreate")]
    #[doc(alias = "cudaMemPoolCreate")]
    pub fn with_options(driver: &Driver, options: &PoolOptions) -> Result<Self> {
        let properties = options.to_raw(driver)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` and `properties` are valid pointers.
        let result = unsafe {
            call!(driver, cuMemPoolCreate(&raw mut raw, &raw const properties) creates raw)
        };
        result.map_err(|error| error.about(options.to_string()))?;
        let pool = Self::from_parts(driver, raw, true);
        pool.set_release_threshold(options.release_threshold)?;
        Ok(pool)
    }

    /// Returns the default pool of `device`.
    ///
    /// CUDA: `cuDeviceGetDefaultMemPool`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no memory pools.
    #[doc(alias = "cuDeviceGetDefaultMemPool")]
    #[doc(alias = "cudaDeviceGetDefaultMemPool")]
    pub fn default_for(device: &Device) -> Result<Self> {
        Self::found(device.driver(), |driver, raw| {
            // SAFETY: `raw` is a valid pointer, and the device belongs to this driver.
            unsafe { call!(driver, cuDeviceGetDefaultMemPool(raw, device.as_raw()) creates *raw) }
        })
    }

    /// Returns the current pool of `device`, from which [`StreamOrdered`](crate::StreamOrdered)
    /// memory comes.
    ///
    /// CUDA: `cuDeviceGetMemPool`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no memory pools.
    #[doc(alias = "cuDeviceGetMemPool")]
    #[doc(alias = "cudaDeviceGetMemPool")]
    pub fn current_for(device: &Device) -> Result<Self> {
        Self::found(device.driver(), |driver, raw| {
            // SAFETY: `raw` is a valid pointer, and the device belongs to this driver.
            unsafe { call!(driver, cuDeviceGetMemPool(raw, device.as_raw()) creates *raw) }
        })
    }

    /// Makes this pool the current pool of `device` for the whole process;
    /// [`StreamOrdered`](crate::StreamOrdered) memory is allocated from it. When the pool is
    /// destroyed, the device returns to its default pool.
    ///
    /// CUDA: `cuDeviceSetMemPool`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool is on another device or on the host.
    #[doc(alias = "cuDeviceSetMemPool")]
    #[doc(alias = "cudaDeviceSetMemPool")]
    pub fn set_current_for(&self, device: &Device) -> Result<()> {
        self.driver()
            .check_same(device.driver(), "MemoryPool::set_current_for")?;
        // SAFETY: the pool is live, and the device belongs to this driver.
        unsafe {
            call!(
                self.driver(),
                cuDeviceSetMemPool(device.as_raw(), self.as_raw())
            )
        }
    }

    /// Returns the default pool of a location and kind. `None` selects managed memory without a
    /// preferred location.
    ///
    /// CUDA: `cuMemGetDefaultMemPool`. Requires a driver for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the location does not support this kind of memory.
    #[doc(alias = "cuMemGetDefaultMemPool")]
    pub fn default_for_location(
        driver: &Driver,
        location: Option<MemoryLocation>,
        kind: PoolKind,
    ) -> Result<Self> {
        let mut raw_location = options::raw_location(location);
        Self::found(driver, |driver, raw| {
            // SAFETY: `raw` and `raw_location` are valid pointers.
            unsafe {
                call!(driver, cuMemGetDefaultMemPool(raw, &raw mut raw_location, kind.to_raw()) creates *raw)
            }
        })
    }

    /// Returns the current pool of a location and kind.
    ///
    /// CUDA: `cuMemGetMemPool`. Requires a driver for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the location does not support this kind of memory.
    #[doc(alias = "cuMemGetMemPool")]
    pub fn current_for_location(
        driver: &Driver,
        location: Option<MemoryLocation>,
        kind: PoolKind,
    ) -> Result<Self> {
        let mut raw_location = options::raw_location(location);
        Self::found(driver, |driver, raw| {
            // SAFETY: `raw` and `raw_location` are valid pointers.
            unsafe {
                call!(driver, cuMemGetMemPool(raw, &raw mut raw_location, kind.to_raw()) creates *raw)
            }
        })
    }

    /// Makes this pool the current pool of a location and kind, for the whole process.
    ///
    /// CUDA: `cuMemSetMemPool`. Requires a driver for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool has another location or kind.
    #[doc(alias = "cuMemSetMemPool")]
    pub fn set_current_for_location(
        &self,
        location: Option<MemoryLocation>,
        kind: PoolKind,
    ) -> Result<()> {
        let mut raw_location = options::raw_location(location);
        // SAFETY: `raw_location` is a valid pointer, and the pool is live.
        unsafe {
            call!(
                self.driver(),
                cuMemSetMemPool(&raw mut raw_location, kind.to_raw(), self.as_raw())
            )
        }
    }

    /// Borrows a pool that other code owns.
    ///
    /// # Safety
    ///
    /// `raw` is a pool of this driver that outlives every clone of the result.
    #[must_use]
    pub unsafe fn borrow_raw(driver: &Driver, raw: CUmemoryPool) -> Self {
        Self::from_parts(driver, raw, false)
    }

    /// Takes ownership of a pool. It is destroyed with the last clone of the result.
    ///
    /// # Safety
    ///
    /// `raw` is a live pool of this driver that no other code destroys.
    #[must_use]
    pub unsafe fn from_raw(driver: &Driver, raw: CUmemoryPool) -> Self {
        Self::from_parts(driver, raw, true)
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUmemoryPool {
        self.shared.raw
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.shared.driver
    }

    /// Releases unused memory to the system until the pool holds at most `keep_bytes` bytes,
    /// including used memory. Memory whose free is still pending is kept.
    ///
    /// CUDA: `cuMemPoolTrimTo`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemPoolTrimTo")]
    #[doc(alias = "cudaMemPoolTrimTo")]
    pub fn trim_to(&self, keep_bytes: usize) -> Result<()> {
        // SAFETY: the pool is live.
        unsafe { call!(self.driver(), cuMemPoolTrimTo(self.as_raw(), keep_bytes)) }
    }

    /// Sets the access rights of a device to the memory of the pool, including memory that is
    /// already allocated. The pool's own device always has read and write access. Peer access
    /// between contexts does not apply to pools.
    ///
    /// CUDA: `cuMemPoolSetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` or `CUDA_ERROR_INVALID_VALUE` if the device cannot access the
    /// pool's device.
    #[doc(alias = "cuMemPoolSetAccess")]
    #[doc(alias = "cudaMemPoolSetAccess")]
    pub fn set_access(
        &self,
        location: impl Into<MemoryLocation>,
        access: MemoryAccess,
    ) -> Result<()> {
        let location = location.into();
        let raw = CUmemAccessDesc {
            location: location.to_raw(),
            flags: access.to_raw(),
        };
        // SAFETY: the pool is live, and `raw` is the only descriptor passed.
        let result = unsafe {
            call!(
                self.driver(),
                cuMemPoolSetAccess(self.as_raw(), &raw const raw, 1)
            )
        };
        result.map_err(|error| error.about(format!("{access} by {location}")))
    }

    /// Returns the access rights of a location to the memory of the pool.
    ///
    /// CUDA: `cuMemPoolGetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` or `CUDA_ERROR_INVALID_VALUE` for a location that does not
    /// exist.
    #[doc(alias = "cuMemPoolGetAccess")]
    #[doc(alias = "cudaMemPoolGetAccess")]
    pub fn access(&self, location: impl Into<MemoryLocation>) -> Result<MemoryAccess> {
        let location = location.into();
        let mut raw = location.to_raw();
        let mut flags = CUmemAccess_flags(0);
        with_relaxed_capture_mode(self.driver(), || {
            // SAFETY: `flags` and `raw` are valid pointers, and the pool is live.
            unsafe {
                call!(
                    self.driver(),
                    cuMemPoolGetAccess(&raw mut flags, self.as_raw(), &raw mut raw)
                )
            }
        })
        .map_err(|error| error.about(location.to_string()))?;
        Ok(MemoryAccess::from_raw(flags))
    }

    /// Destroys the pool, as [`Drop`] does, and returns any error. Memory that was allocated from
    /// it stays valid.
    ///
    /// CUDA: `cuMemPoolDestroy`, unless the pool is borrowed.
    ///
    /// # Errors
    ///
    /// Returns the pool together with the error if clones of it exist or the driver fails.
    #[doc(alias = "cuMemPoolDestroy")]
    #[doc(alias = "cudaMemPoolDestroy")]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            let clones = Arc::strong_count(&shared) - 1;
            let reason = format!("the pool has {clones} other owners");
            Returned::new(
                Self { shared },
                Error::argument("MemoryPool::close", reason),
            )
        })?;
        shared.destroy().map_err(|error| {
            Returned::new(
                Self {
                    shared: Arc::new(shared),
                },
                error,
            )
        })
    }

    /// Returns the pool that `find` looks up or creates.
    fn found(
        driver: &Driver,
        find: impl FnOnce(&Driver, &mut CUmemoryPool) -> Result<()>,
    ) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        with_relaxed_capture_mode(driver, || find(driver, &mut raw))?;
        Ok(Self::from_parts(driver, raw, false))
    }

    fn from_parts(driver: &Driver, raw: CUmemoryPool, is_owned: bool) -> Self {
        Self {
            shared: Arc::new(Shared {
                driver: driver.clone(),
                raw,
                is_owned,
            }),
        }
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        if self.is_owned {
            // SAFETY: the pool is live and owned by this value, and it is not used after this call.
            unsafe { call!(&self.driver, cuMemPoolDestroy(self.raw)) }
                .map_err(|error| error.about(format!("memory pool {:?}", self.raw)))?;
            self.is_owned = false;
        }
        Ok(())
    }
}

impl AsRef<Driver> for MemoryPool {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("MemoryPool")
            .field(&self.as_raw())
            .finish()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}
