//! Helpers of the resources that call the driver for each allocation.

use curium_driver::extend::with_relaxed_capture_mode_if_possible;
use curium_driver::{DevicePointer, Error, Result, Stream, call};

use crate::wait;

/// Adds the requested size and the memory usage to the error of an allocation.
#[cold]
pub(crate) fn refused(error: Error, stream: &Stream, bytes: usize) -> Error {
    error
        .about(format!("{bytes} bytes"))
        .with_memory_figures(stream, bytes, None)
}

/// Waits for the work on `stream` and frees memory that was not allocated in stream order. Captures
/// of other code on other threads neither prevent this nor are invalidated by it.
///
/// # Safety
///
/// As for [`Resource::deallocate`](super::Resource::deallocate); the memory came from `cuMemAlloc`
/// or `cuMemAllocManaged`.
pub(super) unsafe fn free_after(stream: &Stream, pointer: DevicePointer<u8>) -> Result<()> {
    with_relaxed_capture_mode_if_possible(stream.driver(), || {
        // The driver does not guarantee that freeing waits.
        wait::before_free(stream)?;
        // SAFETY: the caller guarantees that the memory is live and that the stream, which has
        // completed, waited for every access.
        unsafe { call!(stream.driver(), cuMemFree_v2(pointer.as_raw())) }
    })
}

/// Frees memory of a pool in stream order.
///
/// # Safety
///
/// As for [`Resource::deallocate`](super::Resource::deallocate); the memory came from a pool.
pub(crate) unsafe fn free_in_order(stream: &Stream, pointer: DevicePointer<u8>) -> Result<()> {
    let operation = stream.enqueue_release("Resource::deallocate")?;
    // SAFETY: the caller guarantees that the memory is live and that the stream waits for every
    // access.
    unsafe {
        call!(
            stream.driver(),
            cuMemFreeAsync(pointer.as_raw(), operation.raw_stream())
        )
    }
}
