//! Copies on a device and between devices.

use curium_driver::sys::CUmemcpyAttributes;
use curium_driver::{Function, Result, Stream, call};

use super::{CopyOptions, End, peer, spanning, transfer};

/// Puts a copy of `from` to `to`, which has as many bytes, on `stream`.
#[inline]
pub(crate) fn copy(operation: &'static str, stream: &Stream, to: End<'_>, from: End<'_>) -> Result<()> {
    if to.bytes == 0 {
        return Ok(());
    }
    // What belongs to another device than the stream's is not reached by a plain copy, even from one end of it to another.
    let is_reached = to.is_at(stream) && from.is_at(stream) || to.is_everywhere() || from.is_everywhere();
    if !is_reached {
        return peer::copy(operation, stream, to, from);
    }
    transfer(operation, stream, &to, &from, || {
        if to.is_everywhere() || from.is_everywhere() {
            return any(stream, &to, &from);
        }
        let (driver, raw, bytes) = (stream.driver(), stream.as_raw(), to.bytes);
        spanning::enqueue(stream, || {
            // SAFETY: both ends have this many bytes and are live on this stream, which has waited for all that they must wait for.
            unsafe { call!(driver, cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, raw)) }
        })
    })
}

/// Puts a copy on `stream`, which has waited for what both ends must wait for, wherever they are.
#[inline]
pub(crate) fn any(stream: &Stream, to: &End<'_>, from: &End<'_>) -> Result<()> {
    spanning::enqueue(stream, || {
        // SAFETY: both ends have this many bytes and are live on this stream, which has waited for all that they must wait for.
        unsafe { call!(stream.driver(), cuMemcpyAsync(to.address, from.address, to.bytes, stream.as_raw())) }
    })
}

/// As [`copy`], telling the driver the options if it has a function that takes them, and both ends are on the stream's device.
#[inline]
pub(crate) fn copy_with(
    operation: &'static str,
    stream: &Stream,
    (to, from): (End<'_>, End<'_>),
    options: CopyOptions,
) -> Result<()> {
    let has = |function| stream.driver().has(function);
    let knows = has(Function::cuMemcpyWithAttributesAsync) || has(Function::cuMemcpyBatchAsync_v2);
    let is_here = to.is_at(stream) && from.is_at(stream);
    if to.bytes == 0 || options == CopyOptions::new() || !knows || !is_here {
        return copy(operation, stream, to, from);
    }
    let mut attributes = options.to_raw();
    let attributes = &raw mut attributes;
    transfer(operation, stream, &to, &from, || {
        if has(Function::cuMemcpyWithAttributesAsync) {
            return spanning::enqueue(stream, || {
                // SAFETY: as in `copy`; the attributes outlive the call, and their order is that of the stream.
                unsafe { with_attributes(stream, &to, &from, attributes) }
            });
        }
        // SAFETY: as above.
        unsafe { batch_of_one(stream, &to, &from, attributes) }
    })
}

/// # Safety
///
/// Both ends are live on `stream`, which has waited for what they must wait for, and the attributes can be read.
#[inline]
unsafe fn with_attributes(
    stream: &Stream,
    to: &End<'_>,
    from: &End<'_>,
    attributes: *mut CUmemcpyAttributes,
) -> Result<()> {
    let (to, from, bytes, raw) = (to.address, from.address, to.bytes, stream.as_raw());
    // SAFETY: the caller vouches for the ends and for the attributes.
    unsafe { call!(stream.driver(), cuMemcpyWithAttributesAsync(to, from, bytes, attributes, raw)) }
}

/// # Safety
///
/// As for [`with_attributes`].
#[inline]
unsafe fn batch_of_one(
    stream: &Stream,
    to: &End<'_>,
    from: &End<'_>,
    attributes: *mut CUmemcpyAttributes,
) -> Result<()> {
    let (mut to, mut from, mut bytes, mut first, raw) = (to.address, from.address, to.bytes, 0, stream.as_raw());
    let (to, from, bytes, first) = (&raw mut to, &raw mut from, &raw mut bytes, &raw mut first);
    stream.context().entered(|driver| {
        // SAFETY: the caller vouches for the ends and for the attributes, each list has one entry, and a context is current.
        unsafe { call!(driver, cuMemcpyBatchAsync_v2(to, from, bytes, 1, attributes, first, 1, raw)) }
    })
}
