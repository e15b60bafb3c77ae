//! Enqueues copies between host and device memory.

use std::ffi::c_void;

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Result, call};

use crate::spanning;

/// Enqueues a copy from the host.
///
/// # Safety
///
/// Both operands have `bytes` bytes, the device operand is live in the order of the stream, and the host operand is not
/// written before the copy has completed.
pub(crate) unsafe fn to_device(
    operation: &Operation<'_>,
    to: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
) -> Result<()> {
    spanning::enqueue(operation, || {
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
/// Both operands have `bytes` bytes, the device operand is live in the order of the stream, and the host operand is not
/// accessed before the copy has completed.
pub(crate) unsafe fn to_host(
    operation: &Operation<'_>,
    to: *mut c_void,
    from: CUdeviceptr,
    bytes: usize,
) -> Result<()> {
    spanning::enqueue(operation, || {
        // SAFETY: the caller guarantees both operands, and the operation keeps the stream.
        unsafe {
            call!(
                operation.driver(),
                cuMemcpyDtoHAsync_v2(to, from, bytes, operation.raw_stream())
            )
        }
    })
}
