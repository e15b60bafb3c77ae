//! The memory usage in out-of-memory errors.

use curium_sys::{CUmemPool_attribute, CUmemoryPool, CUresult};

use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::error::{CallError, OutOfMemoryError};
use crate::call;
use crate::{Device, Driver, Error, MemoryInfo, Result, Stream};

impl Error {
    /// Adds the size requested on `stream` and the memory usage of its device to an out-of-memory
    /// error. Other errors are returned unchanged.
    #[cold]
    #[must_use]
    pub fn with_memory_figures(
        self,
        stream: &Stream,
        requested: usize,
        largest_free: Option<usize>,
    ) -> Self {
        match self {
            Self::Call(call) if call.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let error = OutOfMemoryError::new(*call, stream, requested, largest_free);
                Self::OutOfMemory(Box::new(error))
            }
            // An inner resource has already added the figures, unless it rejected the request
            // without a driver call; a caching resource adds its own.
            Self::OutOfMemory(mut error) => {
                error.requested = requested;
                error.largest_free = largest_free.or(error.largest_free);
                if error.free.is_none() {
                    error.look_up(stream);
                }
                Self::OutOfMemory(error)
            }
            other => other,
        }
    }
}

impl OutOfMemoryError {
    fn new(
        call: CallError,
        stream: &Stream,
        requested: usize,
        largest_free: Option<usize>,
    ) -> Self {
        let mut error = Self {
            call: Some(call),
            largest_free,
            ..Self::bare(requested)
        };
        error.look_up(stream);
        error
    }

    /// Queries the memory usage of the device.
    fn look_up(&mut self, stream: &Stream) {
        let memory =
            with_relaxed_capture_mode(stream.driver(), || stream.context().memory_info()).ok();
        let pool =
            with_relaxed_capture_mode(stream.driver(), || PoolFigures::query(stream.device())).ok();
        self.free = memory.map(|MemoryInfo { free, .. }| free);
        self.total = memory.map(|MemoryInfo { total, .. }| total);
        self.pool_used = pool.as_ref().map(|pool| pool.used);
        self.pool_reserved = pool.as_ref().map(|pool| pool.reserved);
    }
}

struct PoolFigures {
    used: usize,
    reserved: usize,
}

impl PoolFigures {
    /// Queries the memory usage of the device's current memory pool.
    fn query(device: &Device) -> Result<Self> {
        let driver = device.driver();
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `pool` is valid for writes, and the device belongs to this driver.
        unsafe { call!(driver, cuDeviceGetMemPool(&raw mut pool, device.as_raw()) creates pool) }?;
        let used = figure(
            driver,
            pool,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        )?;
        let reserved = figure(
            driver,
            pool,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        )?;
        Ok(Self { used, reserved })
    }
}

fn figure(driver: &Driver, pool: CUmemoryPool, attribute: CUmemPool_attribute) -> Result<usize> {
    let mut value: u64 = 0;
    // SAFETY: the device's current pool is live, and both attributes are 64-bit integers, for which
    // `value` is valid for writes.
    unsafe {
        call!(
            driver,
            cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast())
        )
    }?;
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}
