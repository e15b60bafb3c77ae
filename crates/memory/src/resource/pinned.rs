//! Pinned host memory as a resource.

use std::sync::Arc;

use std::ffi::c_void;

use curium_driver::extend::with_relaxed_capture_mode_if_possible;
use curium_driver::sys::{CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr};
use curium_driver::{DevicePointer, Driver, Error, Result, Stream, call};

use super::Resource;
use super::driver_memory::refused;
use crate::size::{DRIVER_ALIGNMENT, Request};
use crate::wait;

/// Pinned host memory (`cuMemHostAlloc`), which every device accesses in place over PCIe or NVLink:
/// slow, but plentiful.
///
/// Allocating and freeing are slow, and freeing waits for the work on the stream. Memory is aligned
/// to 256 bytes.
///
/// CUDA: `cuMemHostAlloc`, `cuMemHostGetDevicePointer_v2`, `cuMemFreeHost`, `cuStreamQuery`,
/// `cuStreamSynchronize`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[doc(alias = "cuMemHostAlloc")]
#[doc(alias = "cudaHostAlloc")]
#[doc(alias = "cudaMallocHost")]
#[doc(alias = "cuMemHostGetDevicePointer")]
#[doc(alias = "cudaHostGetDevicePointer")]
pub struct Pinned;

// SAFETY: the driver upholds the contract for memory that it allocated and mapped, which lives
// until it is freed, after the stream has been synchronized.
unsafe impl Resource for Pinned {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        Request::new("Pinned::allocate", bytes, alignment, DRIVER_ALIGNMENT)?;
        let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
        stream.context().entered(|driver| {
            let mut host: *mut c_void = std::ptr::null_mut();
            // SAFETY: `host` is a valid pointer, and the context is current.
            let result =
                unsafe { call!(driver, cuMemHostAlloc(&raw mut host, bytes, flags) creates host) };
            result.map_err(|error| refused(error, stream, bytes))?;
            mapped(driver, host).or_else(|error| free(driver, host).and(Err(error)))
        })
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        _bytes: usize,
        _alignment: usize,
    ) -> Result<()> {
        // As for device memory that was not allocated in stream order.
        with_relaxed_capture_mode_if_possible(stream.driver(), || {
            wait::before_free(stream)?;
            free(
                stream.driver(),
                std::ptr::with_exposed_provenance_mut(pointer.as_raw() as usize),
            )
        })
    }

    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(*self))
    }
}

/// Returns the device address of host memory, which equals the host address on every supported
/// system.
fn mapped(driver: &Driver, host: *mut c_void) -> Result<DevicePointer<u8>> {
    let mut raw: CUdeviceptr = 0;
    // SAFETY: `raw` is a valid pointer, the memory is live and mapped, and 0 is the only valid
    // value of the flags.
    unsafe { call!(driver, cuMemHostGetDevicePointer_v2(&raw mut raw, host, 0) creates raw) }?;
    if raw != host.expose_provenance() as u64 {
        return Err(Error::argument(
            "Pinned::allocate",
            "the device address of pinned memory differs from the host address",
        ));
    }
    Ok(DevicePointer::from_raw(raw))
}

fn free(driver: &Driver, host: *mut c_void) -> Result<()> {
    // SAFETY: the memory is live, not in use, and its address is not used after this call.
    unsafe { call!(driver, cuMemFreeHost(host)) }
}
