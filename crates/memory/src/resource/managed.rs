//! Memory that moves between host and device.

use std::sync::Arc;

use curium_driver::sys::{CUdeviceptr, CUmemAttach_flags};
use curium_driver::{DevicePointer, Result, Stream, call};

use super::driver_memory::{free_after, refused};
use super::request::DRIVER_ALIGNMENT;
use super::{Request, Resource};

/// Managed (unified) memory: the driver moves it to whoever uses it, so that there may be more of it than the device has.
///
/// Every stream and every device may use it. Freeing waits for the work on the stream. Memory is aligned to 256 bytes.
///
/// CUDA: `cuMemAllocManaged`, `cuMemFree_v2`, `cuStreamQuery`, `cuStreamSynchronize`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[doc(alias = "cuMemAllocManaged")]
pub struct Managed;

// SAFETY: the driver promises all of it for memory that it allocated, which lives until it is freed; it is freed once the stream
// has been waited for.
unsafe impl Resource for Managed {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        Request::new("Managed::allocate", bytes, alignment, DRIVER_ALIGNMENT)?;
        let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
        stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid place for the answer, and the context is current.
            let result = unsafe { call!(driver, cuMemAllocManaged(&raw mut raw, bytes, flags)) };
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
        // SAFETY: the caller's promises are the same, and the memory came from here.
        unsafe { free_after(stream, pointer) }
    }

    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(*self))
    }
}
