//! Synchronous copies from and to slices.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::{AnyBitPattern, NoUninit};
use curium_driver::extend::PASS_THE_SCOPE;
use curium_driver::hazard::AccessGuard;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Result, Stream, call};

use super::spanning;
use crate::capture_advice::READ_LATER;
use crate::{DeviceSlice, DeviceSliceMut, MappedBuffer, staging, wait};

/// Copies `source` to `target`, which must have the same length, on `stream`. Waits until the copy has completed.
pub(crate) fn upload<T: NoUninit>(
    operation: &'static str,
    stream: &Stream,
    target: DeviceSliceMut<'_, T>,
    source: &[T],
) -> Result<()> {
    if stream.is_capture_active() {
        return upload_captured(operation, stream, target, source);
    }
    stream.refuse_capture(operation, PASS_THE_SCOPE)?;
    let end = target.into_end();
    if end.bytes == 0 {
        return Ok(());
    }
    let source: &[u8] = bytemuck::cast_slice(source);
    let access = |staging: &Stream, copy: &mut dyn FnMut() -> Result<()>| {
        let mut guard = AccessGuard::new(staging)?;
        end.tracked.before_write(operation, &mut guard)?;
        // A failed copy may have enqueued a part.
        let copied = copy();
        // No other code accesses memory without leases before this function returns.
        if guard.holds_leases() {
            end.tracked.after_partial_write(&mut guard);
        }
        copied
    };
    // SAFETY: the memory is live, has this many bytes, and is borrowed exclusively until the copy has completed.
    if let Some(result) = unsafe { staging::upload(stream, end.address, source, access) } {
        return result;
    }
    let mut guard = AccessGuard::blocking(stream)?;
    end.tracked.before_write(operation, &mut guard)?;
    // SAFETY: both operands have this many bytes, the device operand is live on this stream, and `source` is borrowed
    // until the stream has been synchronized below.
    unsafe { to_device(stream, end.address, source.as_ptr().cast(), end.bytes) }
        .map_err(|error| end.explain(error))?;
    end.tracked.after_partial_write(&mut guard);
    drop(guard);
    wait::until_done(stream)
}

/// Copies `source` to pinned host memory, which the graph leases, so no staging is needed.
#[cold]
fn upload_captured<T: NoUninit>(
    operation: &'static str,
    stream: &Stream,
    mut target: DeviceSliceMut<'_, T>,
    source: &[T],
) -> Result<()> {
    stream.refuse_outside_scope(operation, PASS_THE_SCOPE)?;
    if source.is_empty() {
        return Ok(());
    }
    target.copy_from_device_on(stream, &kept(stream, source)?)
}

/// Returns mapped host memory with a copy of `source`, which the graph of the capture of `stream` can lease.
#[cold]
pub(crate) fn kept<T: NoUninit>(stream: &Stream, source: &[T]) -> Result<MappedBuffer<T>> {
    MappedBuffer::from_slice(&stream.context().stream()?, source)
}

/// Copies `source` to `target`, which must have the same length, on `stream`. Waits until the copy has completed.
pub(crate) fn download<T: AnyBitPattern>(
    operation: &'static str,
    stream: &Stream,
    source: DeviceSlice<'_, T>,
    target: &mut [T],
) -> Result<()> {
    stream.refuse_capture(operation, READ_LATER)?;
    let end = source.end();
    if end.bytes == 0 {
        return Ok(());
    }
    let to = target.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the bytes are those of `target`, which is borrowed exclusively, and every bit pattern is a valid element.
    let target_bytes = unsafe { std::slice::from_raw_parts_mut(to, end.bytes) };
    let access = |staging: &Stream, copy: &mut dyn FnMut() -> Result<()>| {
        let mut guard = AccessGuard::new(staging)?;
        end.tracked.before_read(operation, &mut guard)?;
        let copied = copy();
        // A failed copy may have enqueued a part.
        if guard.holds_leases() {
            end.tracked.after_read(&mut guard);
        }
        copied
    };
    // SAFETY: the memory is live, has this many bytes, and is not written while it is borrowed.
    if let Some(result) = unsafe { staging::download(stream, target_bytes, end.address, access) } {
        return result;
    }
    let mut guard = AccessGuard::blocking(stream)?;
    end.tracked.before_read(operation, &mut guard)?;
    // SAFETY: both operands have this many bytes, the device operand is live on this stream, every bit pattern is a
    // valid element, and `target` is borrowed until the stream has been synchronized below.
    unsafe { to_host(stream, to.cast(), end.address, end.bytes) }
        .map_err(|error| end.explain(error))?;
    end.tracked.after_read(&mut guard);
    drop(guard);
    wait::until_done(stream)
}

/// Enqueues a copy from the host on `stream`.
///
/// # Safety
///
/// Both operands have `bytes` bytes, the device operand is live in the order of `stream`, and the host operand is not
/// written before the copy has completed.
pub(crate) unsafe fn to_device(
    stream: &Stream,
    to: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
) -> Result<()> {
    spanning::enqueue(stream, || {
        // SAFETY: the caller guarantees both operands, and the stream is live.
        unsafe {
            call!(
                stream.driver(),
                cuMemcpyHtoDAsync_v2(to, from, bytes, stream.as_raw())
            )
        }
    })
}

/// Enqueues a copy to the host on `stream`.
///
/// # Safety
///
/// Both operands have `bytes` bytes, the device operand is live in the order of `stream`, and the host operand is not
/// accessed before the copy has completed.
pub(crate) unsafe fn to_host(
    stream: &Stream,
    to: *mut c_void,
    from: CUdeviceptr,
    bytes: usize,
) -> Result<()> {
    spanning::enqueue(stream, || {
        // SAFETY: the caller guarantees both operands, and the stream is live.
        unsafe {
            call!(
                stream.driver(),
                cuMemcpyDtoHAsync_v2(to, from, bytes, stream.as_raw())
            )
        }
    })
}
