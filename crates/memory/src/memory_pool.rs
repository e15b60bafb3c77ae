//! Pools that memory is allocated from in stream order.

mod allocation;
mod attribute;
mod options;
#[cfg(feature = "interop")]
mod sharing;
mod statistics;

use std::fmt;
use std::sync::Arc;

use curium_driver::sys::{CUmemAccess_flags, CUmemAccessDesc, CUmemoryPool};
use curium_driver::{Device, Driver, Error, Result, Returned, call, release, with_relaxed_capture_mode};

pub use self::options::{PoolKind, PoolOptions, PoolUsage};
#[cfg(feature = "interop")]
pub use self::sharing::{PoolMemory, PoolPointerHandle};
pub use self::statistics::PoolStatistics;
use crate::{MemoryAccess, MemoryLocation};

/// Memory that a driver keeps, so that allocating and freeing in stream order seldom has to ask the system. It is a
/// [`Resource`](crate::Resource): buffers can be made in it.
///
/// Cloning is cheap, and all clones are the same pool. A pool that is dropped lives on, for the driver, until what was allocated
/// from it is freed.
#[derive(Clone)]
pub struct MemoryPool {
    shared: Arc<Shared>,
}

struct Shared {
    driver: Driver,
    raw: CUmemoryPool,
    /// Whether the pool ends with this value; otherwise it belongs to the driver or to somebody else.
    is_owned: bool,
}

// SAFETY: the pointer is a name that only the driver looks behind, from any thread.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl MemoryPool {
    /// A pool of memory of `device`, as [`PoolOptions::new`] describes it.
    ///
    /// CUDA: `cuMemPoolCreate`, `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`MemoryPool::with_options`].
    #[inline]
    pub fn new(device: &Device) -> Result<Self> {
        Self::with_options(device.driver(), &PoolOptions::new(device))
    }

    /// A pool as `options` say.
    ///
    /// CUDA: `cuMemPoolCreate`, `cuMemPoolSetAttribute`. Pools of the host need a driver for CUDA 12.2, and managed pools one for 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` or `CUDA_ERROR_INVALID_VALUE` for locations and kinds of handle that the driver or the system does not
    /// have.
    #[doc(alias = "cuMemPoolCreate")]
    #[inline]
    pub fn with_options(driver: &Driver, options: &PoolOptions) -> Result<Self> {
        let properties = options.to_raw(driver)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` and `properties` are valid places.
        let result = unsafe { call!(driver, cuMemPoolCreate(&raw mut raw, &raw const properties)) };
        result.map_err(|error| error.about(options.to_string()))?;
        let pool = Self::from_parts(driver, raw, true);
        pool.set_release_threshold(options.release_threshold)?;
        Ok(pool)
    }

    /// The pool that `device` has from the start.
    ///
    /// CUDA: `cuDeviceGetDefaultMemPool`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` where the device has no pools.
    #[doc(alias = "cuDeviceGetDefaultMemPool")]
    #[inline]
    pub fn default_of(device: &Device) -> Result<Self> {
        Self::found(device.driver(), |driver, raw| {
            // SAFETY: `raw` is a valid place for the answer, and the device is one of this driver.
            unsafe { call!(driver, cuDeviceGetDefaultMemPool(raw, device.as_raw())) }
        })
    }

    /// The pool that [`StreamOrdered`](crate::StreamOrdered) memory of `device` comes from.
    ///
    /// CUDA: `cuDeviceGetMemPool`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` where the device has no pools.
    #[doc(alias = "cuDeviceGetMemPool")]
    #[inline]
    pub fn current_of(device: &Device) -> Result<Self> {
        Self::found(device.driver(), |driver, raw| {
            // SAFETY: `raw` is a valid place for the answer, and the device is one of this driver.
            unsafe { call!(driver, cuDeviceGetMemPool(raw, device.as_raw())) }
        })
    }

    /// Has [`StreamOrdered`](crate::StreamOrdered) memory of `device` come from this pool, in the whole process. When the pool ends, the
    /// device goes back to its default pool.
    ///
    /// CUDA: `cuDeviceSetMemPool`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool is one of another device or of the host.
    #[doc(alias = "cuDeviceSetMemPool")]
    #[inline]
    pub fn set_current_of(&self, device: &Device) -> Result<()> {
        self.driver().expect_same(device.driver(), "MemoryPool::set_current_of")?;
        // SAFETY: the pool is live, and the device is one of this driver.
        unsafe { call!(self.driver(), cuDeviceSetMemPool(device.as_raw(), self.as_raw())) }
    }

    /// The pool of a kind that a location has from the start; no location stands for managed memory that prefers none.
    ///
    /// CUDA: `cuMemGetDefaultMemPool`. Needs a driver for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a location that has no such memory.
    #[doc(alias = "cuMemGetDefaultMemPool")]
    #[inline]
    pub fn default_at(driver: &Driver, location: Option<MemoryLocation>, kind: PoolKind) -> Result<Self> {
        let mut place = options::raw_location(location);
        Self::found(driver, |driver, raw| {
            // SAFETY: `raw` and `place` are valid places.
            unsafe { call!(driver, cuMemGetDefaultMemPool(raw, &raw mut place, kind.to_raw())) }
        })
    }

    /// The pool of a kind that memory at a location comes from unless another is named.
    ///
    /// CUDA: `cuMemGetMemPool`. Needs a driver for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a location that has no such memory.
    #[doc(alias = "cuMemGetMemPool")]
    #[inline]
    pub fn current_at(driver: &Driver, location: Option<MemoryLocation>, kind: PoolKind) -> Result<Self> {
        let mut place = options::raw_location(location);
        Self::found(driver, |driver, raw| {
            // SAFETY: `raw` and `place` are valid places.
            unsafe { call!(driver, cuMemGetMemPool(raw, &raw mut place, kind.to_raw())) }
        })
    }

    /// Has memory of a kind at a location come from this pool unless another is named, in the whole process.
    ///
    /// CUDA: `cuMemSetMemPool`. Needs a driver for CUDA 13.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool is of another location or kind.
    #[doc(alias = "cuMemSetMemPool")]
    #[inline]
    pub fn set_current_at(&self, location: Option<MemoryLocation>, kind: PoolKind) -> Result<()> {
        let mut place = options::raw_location(location);
        // SAFETY: `place` is a valid place, and the pool is live.
        unsafe { call!(self.driver(), cuMemSetMemPool(&raw mut place, kind.to_raw(), self.as_raw())) }
    }

    /// A pool that was made elsewhere and stays somebody else's.
    ///
    /// # Safety
    ///
    /// `raw` is a pool of this driver that lives for as long as any clone of the result.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_borrowed(driver: &Driver, raw: CUmemoryPool) -> Self {
        Self::from_parts(driver, raw, false)
    }

    /// Takes a pool over that was made elsewhere: it ends with the last clone of the result.
    ///
    /// # Safety
    ///
    /// `raw` is a live pool of this driver, and nobody else destroys it.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(driver: &Driver, raw: CUmemoryPool) -> Self {
        Self::from_parts(driver, raw, true)
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUmemoryPool {
        self.shared.raw
    }

    /// The driver.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        &self.shared.driver
    }

    /// Gives memory that is not in use back to the system, but keeps `keep_bytes` bytes, those in use included. Frees that are on
    /// streams and not yet done keep their memory.
    ///
    /// CUDA: `cuMemPoolTrimTo`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuMemPoolTrimTo")]
    #[inline]
    pub fn trim_to(&self, keep_bytes: usize) -> Result<()> {
        // SAFETY: the pool is live.
        unsafe { call!(self.driver(), cuMemPoolTrimTo(self.as_raw(), keep_bytes)) }
    }

    /// Says what a device may do with memory of the pool, that which is allocated already included. The pool's own device may always
    /// read and write. For pools, peer access between contexts is not enough.
    ///
    /// CUDA: `cuMemPoolSetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` or `CUDA_ERROR_INVALID_VALUE` for a device that has no link to the pool's.
    #[doc(alias = "cuMemPoolSetAccess")]
    #[inline]
    pub fn set_access(&self, location: impl Into<MemoryLocation>, access: MemoryAccess) -> Result<()> {
        let location = location.into();
        let raw = CUmemAccessDesc { location: location.to_raw(), flags: access.to_raw() };
        // SAFETY: the pool is live, and `raw` is the one description that is passed.
        let result = unsafe { call!(self.driver(), cuMemPoolSetAccess(self.as_raw(), &raw const raw, 1)) };
        result.map_err(|error| error.about(format!("{access} by {location}")))
    }

    /// What a location may do with memory of the pool.
    ///
    /// CUDA: `cuMemPoolGetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` or `CUDA_ERROR_INVALID_VALUE` for a location that there is not.
    #[doc(alias = "cuMemPoolGetAccess")]
    #[inline]
    pub fn access(&self, location: impl Into<MemoryLocation>) -> Result<MemoryAccess> {
        let location = location.into();
        let (mut raw, mut flags) = (location.to_raw(), CUmemAccess_flags(0));
        with_relaxed_capture_mode(self.driver(), || {
            // SAFETY: `flags` and `raw` are valid places, and the pool is live.
            unsafe { call!(self.driver(), cuMemPoolGetAccess(&raw mut flags, self.as_raw(), &raw mut raw)) }
        })
        .map_err(|error| error.about(location.to_string()))?;
        Ok(MemoryAccess::from_raw(flags))
    }

    /// Ends the pool, which [`Drop`] does as well, and says whether it succeeded. Memory that was allocated from it stays valid.
    ///
    /// CUDA: `cuMemPoolDestroy`, unless the pool is somebody else's.
    ///
    /// # Errors
    ///
    /// Gives the pool back if clones of it exist, or if the driver refuses.
    #[doc(alias = "cuMemPoolDestroy")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            let clones = Arc::strong_count(&shared) - 1;
            let reason = format!("the pool has {clones} other owners");
            Returned::new(Self { shared }, Error::argument("MemoryPool::close", reason))
        })?;
        shared.destroy().map_err(|error| Returned::new(Self { shared: Arc::new(shared) }, error))
    }

    /// The pool that `find` writes, which may create it.
    #[inline]
    fn found(driver: &Driver, find: impl FnOnce(&Driver, *mut CUmemoryPool) -> Result<()>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        with_relaxed_capture_mode(driver, || find(driver, &raw mut raw))?;
        Ok(Self::from_parts(driver, raw, false))
    }

    #[inline]
    fn from_parts(driver: &Driver, raw: CUmemoryPool, is_owned: bool) -> Self {
        Self { shared: Arc::new(Shared { driver: driver.clone(), raw, is_owned }) }
    }
}

impl Shared {
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        if self.is_owned {
            // SAFETY: the pool is live and ours, and is forgotten once it has ended.
            unsafe { call!(&self.driver, cuMemPoolDestroy(self.raw)) }?;
            self.is_owned = false;
        }
        Ok(())
    }
}

impl AsRef<Driver> for MemoryPool {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for MemoryPool {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("MemoryPool").field(&self.as_raw()).finish()
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}
