//! Device memory for other devices on the bus.

use std::os::fd::{FromRawFd, OwnedFd};

use curium_driver::sys::CUmemRangeHandleType;
use curium_driver::{Context, DevicePointer, Error, Result, call};

/// A descriptor by which other devices, such as network adapters and disks, read and write `bytes` bytes of device memory from `pointer`
/// on (a dma-buf of Linux). Both are multiples of a page of the host; memory that was mapped must be so as a whole.
///
/// The memory must stay for as long as the descriptor, or what was made of it, is in use, and nobody orders what other devices do with
/// it: wait for the device before they begin, and for them before it goes on.
///
/// CUDA: `cuMemGetHandleForAddressRange`. Needs a driver for CUDA 11.7.
///
/// # Errors
///
/// An argument error for no bytes; `CUDA_ERROR_NOT_SUPPORTED` where the device's attribute `DMA_BUF_SUPPORTED` says so;
/// `CUDA_ERROR_INVALID_VALUE` for a range that is not aligned, or not memory of the device.
#[doc(alias = "cuMemGetHandleForAddressRange")]
#[inline]
pub fn export_dma_buf<T>(context: &Context, pointer: DevicePointer<T>, bytes: usize) -> Result<OwnedFd> {
    if bytes == 0 {
        return Err(Error::argument("export_dma_buf", "empty range"));
    }
    let (mut descriptor, kind) = (-1_i32, CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
    let (place, address) = ((&raw mut descriptor).cast(), pointer.as_raw());
    let result = context.entered(|driver| {
        // SAFETY: for this kind the driver writes an `int`, which `descriptor` is a place for; it looks the range up, and a context is
        // current.
        unsafe { call!(driver, cuMemGetHandleForAddressRange(place, address, bytes, kind, 0)) }
    });
    result.map_err(|error| error.about(format!("{bytes} bytes at {pointer:?}")))?;
    // SAFETY: the driver opened the descriptor for the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
