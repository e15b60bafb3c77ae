//! Copies on a device and between devices.

use curium_driver::extend::PASS_THE_SCOPE;
use curium_driver::sys::CUmemcpyAttributes;
use curium_driver::{Function, Result, Stream, call};

use super::{CopyOptions, Operand, peer, spanning, transfer};

/// Enqueues a copy of `from` to `to`, which must have the same size, on `stream`.
#[inline]
pub(crate) fn copy(
    operation: &'static str,
    stream: &Stream,
    to: Operand<'_>,
    from: Operand<'_>,
) -> Result<()> {
    if to.bytes == 0 {
        return stream.refuse_outside_scope(operation, PASS_THE_SCOPE);
    }
    // `cuMemcpyDtoDAsync` cannot access memory of another device, even if both operands are on it.
    let is_reached =
        to.is_at(stream) && from.is_at(stream) || to.is_everywhere() || from.is_everywhere();
    if !is_reached {
        return peer::copy(operation, stream, to, from);
    }
    transfer(operation, stream, &to, &from, || {
        if to.is_everywhere() || from.is_everywhere() {
            return any(stream, &to, &from);
        }
        let driver = stream.driver();
        let raw = stream.as_raw();
        let bytes = to.bytes;
        spanning::enqueue(stream, || {
            // SAFETY: both operands have this many bytes and are live on this stream, which has waited for conflicting
            // accesses.
            unsafe {
                call!(
                    driver,
                    cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, raw)
                )
            }
        })
    })
}

/// Enqueues a copy between operands on any device on `stream`, which has waited for conflicting accesses.
pub(crate) fn any(stream: &Stream, to: &Operand<'_>, from: &Operand<'_>) -> Result<()> {
    spanning::enqueue(stream, || {
        // SAFETY: both operands have this many bytes and are live on this stream, which has waited for conflicting
        // accesses.
        unsafe {
            call!(
                stream.driver(),
                cuMemcpyAsync(to.address, from.address, to.bytes, stream.as_raw())
            )
        }
    })
}

/// Copies like [`copy`], with hints if the driver supports them and both operands are on the stream's device.
pub(crate) fn copy_with(
    operation: &'static str,
    stream: &Stream,
    to: Operand<'_>,
    from: Operand<'_>,
    options: CopyOptions,
) -> Result<()> {
    let is_single = stream.driver().has(Function::cuMemcpyWithAttributesAsync);
    let takes_options = is_single || stream.driver().has(Function::cuMemcpyBatchAsync_v2);
    let is_on_device = to.is_at(stream) && from.is_at(stream);
    if to.bytes == 0 || options == CopyOptions::new() || !takes_options || !is_on_device {
        return copy(operation, stream, to, from);
    }
    let mut attributes = options.to_raw();
    let attributes = &raw mut attributes;
    transfer(operation, stream, &to, &from, || {
        if is_single {
            return spanning::enqueue(stream, || {
                // SAFETY: both operands have this many bytes and are live on this stream, which has waited for conflicting
                // accesses; the attributes outlive the call and request stream order.
                unsafe { with_attributes(stream, &to, &from, attributes) }
            });
        }
        // SAFETY: both operands have this many bytes and are live on this stream, which has waited for conflicting
        // accesses; the attributes outlive the call and request stream order.
        unsafe { single_copy_batch(stream, &to, &from, attributes) }
    })
}

/// Enqueues a copy with attributes.
///
/// # Safety
///
/// Both operands are live on `stream`, which has waited for conflicting accesses, and the attributes are readable.
unsafe fn with_attributes(
    stream: &Stream,
    to: &Operand<'_>,
    from: &Operand<'_>,
    attributes: *mut CUmemcpyAttributes,
) -> Result<()> {
    let bytes = to.bytes;
    let to = to.address;
    let from = from.address;
    let raw = stream.as_raw();
    // SAFETY: the caller guarantees the operands and the attributes.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyWithAttributesAsync(to, from, bytes, attributes, raw)
        )
    }
}

/// Enqueues a copy with attributes as a batch of one copy.
///
/// # Safety
///
/// Both operands are live on `stream`, which has waited for conflicting accesses, and the attributes are readable.
unsafe fn single_copy_batch(
    stream: &Stream,
    to: &Operand<'_>,
    from: &Operand<'_>,
    attributes: *mut CUmemcpyAttributes,
) -> Result<()> {
    let mut bytes = to.bytes;
    let mut to = to.address;
    let mut from = from.address;
    let mut first = 0;
    let raw = stream.as_raw();
    let to = &raw mut to;
    let from = &raw mut from;
    let bytes = &raw mut bytes;
    let first = &raw mut first;
    stream.context().entered(|driver| {
        // SAFETY: the caller guarantees the operands and the attributes, each array has one entry, and a context is
        // current.
        unsafe {
            call!(
                driver,
                cuMemcpyBatchAsync_v2(to, from, bytes, 1, attributes, first, 1, raw)
            )
        }
    })
}
