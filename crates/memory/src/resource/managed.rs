//! Managed memory as a resource.

use std::sync::Arc;

use curium_driver::sys::{CUdeviceptr, CUmemAttach_flags};
use curium_driver::{DevicePointer, Result, Stream, call};

use super::Resource;
use super::driver_memory::{free_after, refused};
use crate::size::{DRIVER_ALIGNMENT, Request};

/// Managed (unified) memory (`cuMemAllocManaged`). Pages migrate to the processor that accesses
/// them, so allocations may exceed the memory of the device.
///
/// It is accessible to every stream and device. Freeing waits for the work on the stream. Memory is
/// aligned to 256 bytes.
///
/// CUDA: `cuMemAllocManaged`, `cuMemFree_v2`, `cuStreamQuery`, `cuStreamSynchronize`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[doc(alias = "cuMemAllocManaged")]
#[doc(alias = "cudaMallocManaged")]
pub struct Managed;

// SAFETY: the driver upholds the contract for memory that it allocated, which lives until it is
// freed, after the stream has been synchronized.
unsafe impl Resource for Managed {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        Request::new("Managed::allocate", bytes, alignment, DRIVER_ALIGNMENT)?;
        let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
        stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid pointer, and the context is current.
            let result =
                unsafe { call!(driver, cuMemAllocManaged(&raw mut raw, bytes, flags) creates raw) };
            result.map_err(|error| refused(error, stream, bytes))?;
            Ok(DevicePointer::from_raw(raw))
        })
    }

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

    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(*self))
    }
}
