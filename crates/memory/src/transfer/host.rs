//! Synchronous copies from and to slices.

use std::mem::MaybeUninit;

use crate::{AnyBitPattern, NoUninit};
use curium_driver::hazard::Operation;
use curium_driver::{Error, Result, Stream};

use super::device;
use crate::capture_advice::{ON_MUT, READ_LATER};
use crate::operand::Operand;
use crate::staging::{self, Bounce, Direction};
use crate::{MappedBuffer, enqueue, wait};

/// Copies `source` to `target`, which must have the same size, on `stream`. Waits until the copy
/// has completed, unless it is small: its bytes are then in a bounce buffer.
pub(crate) fn upload<T: NoUninit>(
    name: &'static str,
    stream: &Stream,
    target: Operand<'_>,
    source: &[T],
) -> Result<()> {
    if stream.is_capture_active() {
        return upload_captured(name, stream, target, source);
    }
    let operation = stream.enqueue_now(name, ON_MUT)?;
    if target.bytes == 0 {
        return Ok(());
    }
    let source: &[u8] = bytemuck::cast_slice(source);
    let host = source.as_ptr().cast();
    if let Some(bounce) = Bounce::reserve(stream, host, source.len(), Direction::ToDevice) {
        return upload_through(bounce, operation, target, source);
    }
    let mut operation = operation.blocking();
    let access = |staging: &Stream, copy: &mut dyn FnMut(&Operation<'_>) -> Result<()>| {
        let mut operation = staging.enqueue(name)?;
        target.tracked.before_write(&mut operation)?;
        // A failed copy may have enqueued a part.
        let copied = copy(&operation);
        // No other code accesses memory without leases before this function returns.
        if operation.holds_leases() {
            target.tracked.after_partial_write(&mut operation);
        }
        copied
    };
    // SAFETY: the memory is live, has this many bytes, and is borrowed exclusively until the copy
    // has completed.
    if let Some(result) = unsafe { staging::upload(stream, target.address, source, access) } {
        return result;
    }
    target.tracked.before_write(&mut operation)?;
    // SAFETY: both operands have this many bytes, the device operand is live on this stream, and
    // `source` is borrowed until the stream has been synchronized below.
    unsafe {
        enqueue::to_device(
            &operation,
            target.address,
            source.as_ptr().cast(),
            target.bytes,
        )
    }
    .map_err(|error| target.explain(error))?;
    target.tracked.after_partial_write(&mut operation);
    drop(operation);
    wait::until_done(stream)
}

/// Copies `source` to a bounce buffer, and enqueues a copy from there to `target`.
#[inline]
fn upload_through(
    mut bounce: Bounce<'_>,
    mut operation: Operation<'_>,
    target: Operand<'_>,
    source: &[u8],
) -> Result<()> {
    // SAFETY: the copy is not enqueued yet.
    unsafe { bounce.as_mut_slice() }.copy_from_slice(source);
    target.tracked.before_write(&mut operation)?;
    let staged = bounce.as_mut_ptr().cast_const().cast();
    // SAFETY: both operands have this many bytes, the device operand is live on this stream, and
    // the bytes of the bounce buffer are not reserved again before the copy has completed.
    unsafe { enqueue::to_device(&operation, target.address, staged, target.bytes) }
        .map_err(|error| target.explain(error))?;
    target.tracked.after_partial_write(&mut operation);
    bounce.finish_enqueued();
    Ok(())
}

/// Copies `source` to pinned host memory, which the graph leases, so no staging is needed.
#[cold]
fn upload_captured<T: NoUninit>(
    name: &'static str,
    stream: &Stream,
    target: Operand<'_>,
    source: &[T],
) -> Result<()> {
    stream.check_enqueue(name, ON_MUT)?;
    if source.is_empty() {
        return Ok(());
    }
    let kept = kept(stream, source)?;
    device::copy(stream.enqueue(name)?, target, kept.operand())
}

/// Returns mapped host memory with a copy of `source`, which the graph of the capture of `stream`
/// can lease.
#[cold]
pub(crate) fn kept<T: NoUninit>(stream: &Stream, source: &[T]) -> Result<MappedBuffer<T>> {
    MappedBuffer::from_slice(&stream.context().stream()?, source)
}

/// Copies `source` to `target`, which must have the same size, on `stream`. Waits until the copy
/// has completed.
pub(crate) fn download<T: AnyBitPattern>(
    name: &'static str,
    stream: &Stream,
    source: Operand<'_>,
    target: &mut [T],
) -> Result<()> {
    let mut operation = stream.enqueue_now(name, READ_LATER)?.blocking();
    if source.bytes == 0 {
        return Ok(());
    }
    let to = target.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the bytes are those of `target`, which is borrowed exclusively, and every bit pattern
    // is a valid element.
    let target_bytes = unsafe { std::slice::from_raw_parts_mut(to, source.bytes) };
    if let Some(bounce) = Bounce::reserve(stream, to.cast(), source.bytes, Direction::ToHost) {
        return download_through(bounce, operation, source, target_bytes);
    }
    let access = |staging: &Stream, copy: &mut dyn FnMut(&Operation<'_>) -> Result<()>| {
        let mut operation = staging.enqueue(name)?;
        source.tracked.before_read(&mut operation)?;
        let copied = copy(&operation);
        // A failed copy may have enqueued a part.
        if operation.holds_leases() {
            source.tracked.after_read(&mut operation);
        }
        copied
    };
    // SAFETY: the memory is live, has this many bytes, and is not written while it is borrowed.
    if let Some(result) = unsafe { staging::download(stream, target_bytes, source.address, access) }
    {
        return result;
    }
    source.tracked.before_read(&mut operation)?;
    // SAFETY: both operands have this many bytes, the device operand is live on this stream, every
    // bit pattern is a valid element, and `target` is borrowed until the stream has been
    // synchronized below.
    unsafe { enqueue::to_host(&operation, to.cast(), source.address, source.bytes) }
        .map_err(|error| source.explain(error))?;
    source.tracked.after_read(&mut operation);
    drop(operation);
    wait::until_done(stream)
}

/// Enqueues a copy of `source` to a bounce buffer, waits, and copies from there to `target`.
#[inline]
fn download_through(
    bounce: Bounce<'_>,
    mut operation: Operation<'_>,
    source: Operand<'_>,
    target: &mut [MaybeUninit<u8>],
) -> Result<()> {
    let stream = operation.stream();
    source.tracked.before_read(&mut operation)?;
    // SAFETY: both operands have this many bytes, the device operand is live on this stream, and
    // the bytes of the bounce buffer are not accessed before the stream has been synchronized
    // below.
    unsafe {
        enqueue::to_host(
            &operation,
            bounce.as_mut_ptr().cast(),
            source.address,
            source.bytes,
        )
    }
    .map_err(|error| source.explain(error))?;
    source.tracked.after_read(&mut operation);
    drop(operation);
    let waited = wait::until_done(stream);
    if !waited.as_ref().is_err_and(Error::is_sticky) {
        let staged = bounce.as_mut_ptr().cast_const();
        let to = target.as_mut_ptr().cast();
        // SAFETY: both operands have this many bytes. The copy has completed, also if the first of
        // several waits failed, and the bytes of the bounce buffer are reserved for it.
        unsafe { std::ptr::copy_nonoverlapping(staged, to, target.len()) };
        bounce.finish_completed();
    }
    waited
}
