//! Synchronously allocated device memory as a resource.

use std::sync::Arc;

use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Result, Stream, call};

use super::Resource;
use super::driver_memory::{free_after, refused};
use crate::size::{DRIVER_ALIGNMENT, Request};

/// Synchronously allocated device memory (`cuMemAlloc`), which belongs to the stream's context and
/// not to a memory pool.
///
/// Allocating and freeing are slow, and freeing waits for the work on the stream. Use it for memory
/// that lives as long as the program, is shared through CUDA IPC, or is inspected by a memory
/// checker. Memory is aligned to 256 bytes.
///
/// CUDA: `cuMemAlloc_v2`, `cuMemFree_v2`, `cuStreamQuery`, `cuStreamSynchronize`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[doc(alias = "cuMemAlloc")]
#[doc(alias = "cudaMalloc")]
#[doc(alias = "cuMemFree")]
#[doc(alias = "cudaFree")]
pub struct SyncAlloc;

// SAFETY: the driver upholds the contract for memory that it allocated, which lives until it is
// freed, after the stream has been synchronized.
unsafe impl Resource for SyncAlloc {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        Request::new("SyncAlloc::allocate", bytes, alignment, DRIVER_ALIGNMENT)?;
        stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid pointer, and the context is current.
            let result = unsafe { call!(driver, cuMemAlloc_v2(&raw mut raw, bytes) creates raw) };
            result.map_err(|error| refused(error, stream, bytes))?;
            Ok(DevicePointer::from_raw(raw))
        })
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        _bytes: usize,
        _alignment: usize,
    ) -> Result<()> {
        // SAFETY: this resource allocated the memory, and the caller guarantees that only earlier
        // work on `stream` uses it.
        unsafe { free_after(stream, pointer) }
    }

    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(*self))
    }
}
