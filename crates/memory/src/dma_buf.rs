//! Export of device memory as a dma-buf.

use std::os::fd::{FromRawFd, OwnedFd};

use curium_driver::sys::CUmemRangeHandleType;
use curium_driver::{Context, DevicePointer, Error, Result, call};

/// Exports `bytes` bytes of device memory at `pointer` as a Linux dma-buf, which network adapters
/// and storage devices can import. The address and the size must be multiples of the host's page
/// size, and mapped memory must be exported as a whole.
///
/// The memory must outlive the descriptor and every import of it. Accesses by other devices are not
/// ordered with CUDA work: synchronize before they start, and wait for them before enqueuing new
/// work.
///
/// CUDA: `cuMemGetHandleForAddressRange`. Requires a driver for CUDA 11.7.
///
/// # Errors
///
/// An argument error if `bytes` is 0; `CUDA_ERROR_NOT_SUPPORTED` if the device attribute
/// `DMA_BUF_SUPPORTED` is 0; `CUDA_ERROR_INVALID_VALUE` if the range is misaligned or not device
/// memory.
#[doc(alias = "cuMemGetHandleForAddressRange")]
pub fn export_dma_buf<T>(
    context: &Context,
    pointer: DevicePointer<T>,
    bytes: usize,
) -> Result<OwnedFd> {
    if bytes == 0 {
        return Err(Error::argument("export_dma_buf", "empty range"));
    }
    let mut descriptor = -1_i32;
    let kind = CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    let output = (&raw mut descriptor).cast();
    let address = pointer.as_raw();
    let result = context.entered(|driver| {
        // SAFETY: for this handle type the driver writes an `int`, for which `descriptor` has room.
        // The driver validates the range, and a context is current.
        unsafe {
            call!(
                driver,
                cuMemGetHandleForAddressRange(output, address, bytes, kind, 0)
            )
        }
    });
    result.map_err(|error| error.about(format!("{bytes} bytes at {pointer:?}")))?;
    // SAFETY: the driver opened the descriptor for the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
