//! What the sources share that ask the driver for each allocation.

use curium_driver::{DevicePointer, Error, Result, Stream, call};

use crate::wait;

/// Adds to the error of an allocation what was asked for, and how much memory there is.
#[cold]
#[inline]
pub(crate) fn refused(error: Error, stream: &Stream, bytes: usize) -> Error {
    error.about(format!("{bytes} bytes")).with_memory_figures(stream, bytes, None)
}

/// Frees memory that was allocated at once, when the work on `stream` is done.
///
/// # Safety
///
/// As for [`Resource::deallocate`](super::Resource::deallocate); the memory came from `cuMemAlloc` or `cuMemAllocManaged`.
#[inline]
pub(super) unsafe fn free_behind(stream: &Stream, pointer: DevicePointer<u8>) -> Result<()> {
    // The driver may wait as well, and does not promise to.
    wait::before_free(stream)?;
    // SAFETY: the caller vouches that the memory is live and that the stream, which has been waited for, comes after every use.
    unsafe { call!(stream.driver(), cuMemFree_v2(pointer.as_raw())) }
}

/// Frees memory of a pool in the order of `stream`.
///
/// # Safety
///
/// As for [`Resource::deallocate`](super::Resource::deallocate); the memory came from a pool.
#[inline]
pub(crate) unsafe fn free_in_order(stream: &Stream, pointer: DevicePointer<u8>) -> Result<()> {
    // SAFETY: the caller vouches that the memory is live and that the stream has waited for every use.
    unsafe { call!(stream.driver(), cuMemFreeAsync(pointer.as_raw(), stream.as_raw())) }
}
