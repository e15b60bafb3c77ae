//! Memory pools as resources.

use std::sync::Arc;

use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Result, Stream, call};

use super::MemoryPool;
use crate::Resource;
use crate::capture_advice::ALLOCATE;
use crate::resource::{free_in_order, refused};
use crate::size::{DRIVER_ALIGNMENT, Request};

// SAFETY: the driver upholds the contract for stream-ordered memory, which lives until it is freed,
// even if the pool is destroyed first.
unsafe impl Resource for MemoryPool {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        Request::new("MemoryPool::allocate", bytes, alignment, DRIVER_ALIGNMENT)?;
        self.driver()
            .check_same(stream.driver(), "MemoryPool::allocate")?;
        let operation = stream.enqueue_or("MemoryPool::allocate", ALLOCATE)?;
        let mut raw: CUdeviceptr = 0;
        let pool = self.as_raw();
        // SAFETY: `raw` is a valid pointer, and the pool and the stream are live.
        let result = unsafe {
            call!(self.driver(), cuMemAllocFromPoolAsync(&raw mut raw, bytes, pool, operation.raw_stream()) creates raw)
        };
        result.map_err(|error| refused(error, stream, bytes))?;
        Ok(DevicePointer::from_raw(raw))
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        _bytes: usize,
        _alignment: usize,
    ) -> Result<()> {
        // SAFETY: the memory came from a pool, and the caller guarantees that only earlier work on
        // `stream` uses it.
        unsafe { free_in_order(stream, pointer) }
    }

    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(self.clone()))
    }
}
