//! Copies on a device and between devices.

use curium_driver::hazard::Operation;
use curium_driver::sys::CUmemcpyAttributes;
use curium_driver::{Function, Result, call};

use super::{CopyOptions, peer};
use crate::enqueue;
use crate::operand::{Operand, transfer};

/// Enqueues a copy of `from` to `to`, which must have the same size.
#[inline]
pub(crate) fn copy(operation: Operation<'_>, to: Operand<'_>, from: Operand<'_>) -> Result<()> {
    if to.bytes == 0 {
        return Ok(());
    }
    let stream = operation.stream();
    // `cuMemcpyDtoDAsync` cannot access memory of another device, even if both operands are on it.
    let is_reached =
        to.is_at(stream) && from.is_at(stream) || to.is_everywhere() || from.is_everywhere();
    if !is_reached {
        return peer::copy(operation, to, from);
    }
    transfer(operation, &to, &from, |operation| {
        if to.is_everywhere() || from.is_everywhere() {
            return any(operation, &to, &from);
        }
        let driver = operation.driver();
        let raw = operation.raw_stream();
        let bytes = to.bytes;
        enqueue::spanning(operation, || {
            // SAFETY: both operands have this many bytes and are live on this stream, which has
            // waited for conflicting accesses.
            unsafe {
                call!(
                    driver,
                    cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, raw)
                )
            }
        })
    })
}

/// Enqueues a copy between operands on any device. The operation has waited for conflicting
/// accesses.
pub(crate) fn any(operation: &Operation<'_>, to: &Operand<'_>, from: &Operand<'_>) -> Result<()> {
    enqueue::spanning(operation, || {
        // SAFETY: both operands have this many bytes and are live on this stream, which has waited
        // for conflicting accesses.
        unsafe {
            call!(
                operation.driver(),
                cuMemcpyAsync(to.address, from.address, to.bytes, operation.raw_stream())
            )
        }
    })
}

/// Copies like [`copy`], with hints if the driver supports them and both operands are on the
/// stream's device.
pub(crate) fn copy_with(
    operation: Operation<'_>,
    to: Operand<'_>,
    from: Operand<'_>,
    options: CopyOptions,
) -> Result<()> {
    let stream = operation.stream();
    let is_single = stream.driver().has(Function::cuMemcpyWithAttributesAsync);
    let takes_options = is_single || stream.driver().has(Function::cuMemcpyBatchAsync_v2);
    let is_on_device = to.is_at(stream) && from.is_at(stream);
    if to.bytes == 0 || options == CopyOptions::new() || !takes_options || !is_on_device {
        return copy(operation, to, from);
    }
    let mut attributes = options.to_raw();
    let attributes = &raw mut attributes;
    transfer(operation, &to, &from, |operation| {
        if is_single {
            return enqueue::spanning(operation, || {
                // SAFETY: both operands have this many bytes and are live on this stream, which has
                // waited for conflicting accesses; the attributes outlive the call and request
                // stream order.
                unsafe { with_attributes(operation, &to, &from, attributes) }
            });
        }
        // SAFETY: both operands have this many bytes and are live on this stream, which has waited
        // for conflicting accesses; the attributes outlive the call and request stream order.
        unsafe { single_copy_batch(operation, &to, &from, attributes) }
    })
}

/// Enqueues a copy with attributes.
///
/// # Safety
///
/// Both operands are live on the stream, which has waited for conflicting accesses, and the
/// attributes are readable.
unsafe fn with_attributes(
    operation: &Operation<'_>,
    to: &Operand<'_>,
    from: &Operand<'_>,
    attributes: *mut CUmemcpyAttributes,
) -> Result<()> {
    let bytes = to.bytes;
    let to = to.address;
    let from = from.address;
    let raw = operation.raw_stream();
    // SAFETY: the caller guarantees the operands and the attributes.
    unsafe {
        call!(
            operation.driver(),
            cuMemcpyWithAttributesAsync(to, from, bytes, attributes, raw)
        )
    }
}

/// Enqueues a copy with attributes as a batch of one copy.
///
/// # Safety
///
/// Both operands are live on the stream, which has waited for conflicting accesses, and the
/// attributes are readable.
unsafe fn single_copy_batch(
    operation: &Operation<'_>,
    to: &Operand<'_>,
    from: &Operand<'_>,
    attributes: *mut CUmemcpyAttributes,
) -> Result<()> {
    let mut bytes = to.bytes;
    let mut to = to.address;
    let mut from = from.address;
    let mut first = 0;
    let raw = operation.raw_stream();
    let to = &raw mut to;
    let from = &raw mut from;
    let bytes = &raw mut bytes;
    let first = &raw mut first;
    operation.stream().context().entered(|driver| {
        // SAFETY: the caller guarantees the operands and the attributes, each array has one entry,
        // and a context is current.
        unsafe {
            call!(
                driver,
                cuMemcpyBatchAsync_v2(to, from, bytes, 1, attributes, first, 1, raw)
            )
        }
    })
}
