//! Stream-ordered memory as a resource.

use std::sync::Arc;

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::sys::{CUdeviceptr, CUmemoryPool};
use curium_driver::{DevicePointer, Result, Stream, call};

use super::Resource;
use super::driver_memory::{free_in_order, refused};
use crate::capture_advice::ALLOCATE;
use crate::size::{DRIVER_ALIGNMENT, Request};

/// Stream-ordered memory from the current memory pool of the stream's device (`cuMemAllocAsync`).
/// It is the default resource of buffers.
///
/// It requires no current context and never waits. Memory is aligned to 256 bytes.
///
/// CUDA: `cuMemAllocAsync`, `cuMemFreeAsync`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[doc(alias = "cuMemAllocAsync")]
#[doc(alias = "cudaMallocAsync")]
#[doc(alias = "cuMemFreeAsync")]
#[doc(alias = "cudaFreeAsync")]
pub struct StreamOrdered;

// SAFETY: the driver upholds the contract for stream-ordered memory, which lives until it is freed.
unsafe impl Resource for StreamOrdered {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        Request::new(
            "StreamOrdered::allocate",
            bytes,
            alignment,
            DRIVER_ALIGNMENT,
        )?;
        let operation = stream.enqueue_or("StreamOrdered::allocate", ALLOCATE)?;
        let mut raw: CUdeviceptr = 0;
        // SAFETY: `raw` is a valid pointer, and the stream is live.
        let result = unsafe {
            call!(stream.driver(), cuMemAllocAsync(&raw mut raw, bytes, operation.raw_stream()) creates raw)
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

    /// CUDA: `cuDeviceGetMemPool`, `cuMemPoolTrimTo`.
    fn trim(&self, stream: &Stream, keep: usize) -> Result<()> {
        let driver = stream.driver();
        let device = stream.device().as_raw();
        with_relaxed_capture_mode(driver, || {
            let mut pool: CUmemoryPool = std::ptr::null_mut();
            // SAFETY: `pool` is a valid pointer, and the device belongs to this driver.
            unsafe { call!(driver, cuDeviceGetMemPool(&raw mut pool, device) creates pool) }?;
            // SAFETY: the device's current pool is live.
            unsafe { call!(driver, cuMemPoolTrimTo(pool, keep)) }
        })
    }

    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(*self))
    }

    #[inline]
    fn allocates_in_graphs(&self) -> bool {
        true
    }
}
