//! Enqueues copies between host and device memory, and other work on memory that may span several
//! mappings.

use std::ffi::c_void;

use curium_driver::hazard::Operation;
use curium_driver::sys::{CUdeviceptr, CUresult};
use curium_driver::{Result, call};

/// Enqueues a copy from the host.
///
/// # Safety
///
/// Both operands have `bytes` bytes, the device operand is live in the order of the stream, and the
/// host operand is not written before the copy has completed.
pub(crate) unsafe fn to_device(
    operation: &Operation<'_>,
    to: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
) -> Result<()> {
    spanning(operation, || {
        // SAFETY: the caller guarantees both operands, and the operation keeps the stream.
        unsafe {
            call!(
                operation.driver(),
                cuMemcpyHtoDAsync_v2(to, from, bytes, operation.raw_stream())
            )
        }
    })
}

/// Enqueues a copy to the host.
///
/// # Safety
///
/// Both operands have `bytes` bytes, the device operand is live in the order of the stream, and the
/// host operand is not accessed before the copy has completed.
pub(crate) unsafe fn to_host(
    operation: &Operation<'_>,
    to: *mut c_void,
    from: CUdeviceptr,
    bytes: usize,
) -> Result<()> {
    spanning(operation, || {
        // SAFETY: the caller guarantees both operands, and the operation keeps the stream.
        unsafe {
            call!(
                operation.driver(),
                cuMemcpyDtoHAsync_v2(to, from, bytes, operation.raw_stream())
            )
        }
    })
}

/// Calls `enqueue` to enqueue a copy or a fill. Drivers reject ranges that span several mappings as
/// invalid values if no context is current, so a failed call is repeated with the stream's context
/// current.
pub(crate) fn spanning(operation: &Operation<'_>, enqueue: impl Fn() -> Result<()>) -> Result<()> {
    let result = enqueue();
    match &result {
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => {
            operation.stream().context().entered(|_| enqueue())
        }
        _ => result,
    }
}
