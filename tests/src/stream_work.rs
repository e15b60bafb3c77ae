//! Work on buffers as a kernel does it, without a kernel: on any stream, tracked like an argument of a launch.

use std::thread;
use std::time::Duration;

use curium_driver::hazard::AccessGuard;
use curium_driver::{Argument, Result, Stream, call};
use curium_memory::DeviceBuffer;

/// Sets every element of `buffer` to `value` on `stream`.
///
/// # Errors
///
/// An error returned by the driver.
pub fn fill(stream: &Stream, mut buffer: &mut DeviceBuffer<u32>, value: u32) -> Result<()> {
    let (len, mut guard) = (buffer.len(), AccessGuard::new(stream)?);
    // SAFETY: the work below is noted by `launched`, and the buffer is not used in between.
    let pointer = unsafe { Argument::<&mut [u32]>::bind(&mut buffer, &mut guard) }?;
    // SAFETY: the buffer is live with this many words, and `bind` had the stream wait for whatever uses it.
    unsafe { call!(stream.driver(), cuMemsetD32Async(pointer, value, len, stream.as_raw())) }?;
    // SAFETY: the buffer was bound to this stream above, and not used since.
    unsafe { Argument::<&mut [u32]>::launched(&mut buffer, &mut guard) };
    Ok(())
}

/// Returns the accesses of an operation on `stream`.
///
/// # Panics
///
/// If the stream belongs to a capture, and this thread is in the middle of an access.
#[must_use]
pub fn guard(stream: &Stream) -> AccessGuard<'_> {
    AccessGuard::new(stream).expect("this thread orders no access")
}

/// Copies `source` to `target`, which is as long, on `stream`.
///
/// # Errors
///
/// An error returned by the driver.
///
/// # Panics
///
/// If the lengths differ.
pub fn copy(stream: &Stream, mut target: &mut DeviceBuffer<u32>, mut source: &DeviceBuffer<u32>) -> Result<()> {
    let bytes = source.byte_len();
    assert_eq!(target.byte_len(), bytes, "both sides of a copy are of one length");
    let mut guard = AccessGuard::new(stream)?;
    // SAFETY: the work below is noted by `launched`, and the buffer is not used in between.
    let to = unsafe { Argument::<&mut [u32]>::bind(&mut target, &mut guard) }?;
    // SAFETY: the work below is noted by `launched`, and the buffer is not used in between.
    let from = unsafe { Argument::<&[u32]>::bind(&mut source, &mut guard) }?;
    // SAFETY: both buffers are live with this many bytes, and `bind` had the stream wait for whatever uses them.
    unsafe { call!(stream.driver(), cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())) }?;
    // SAFETY: the buffer was bound to this stream above, and not used since.
    unsafe { Argument::<&mut [u32]>::launched(&mut target, &mut guard) };
    // SAFETY: the buffer was bound to this stream above, and not used since.
    unsafe { Argument::<&[u32]>::launched(&mut source, &mut guard) };
    Ok(())
}

/// Copies `source` to `target`, which is as long, on `stream`, and waits for nothing: what a program does that passes raw
/// addresses and forgets to synchronize.
///
/// # Safety
///
/// Both buffers outlive the work on `stream`. What the copy reads is not determined.
///
/// # Errors
///
/// An error returned by the driver.
pub unsafe fn copy_without_waiting(
    stream: &Stream,
    target: &DeviceBuffer<u32>,
    source: &DeviceBuffer<u32>,
) -> Result<()> {
    let (to, from, bytes) = (target.as_pointer().as_raw(), source.as_pointer().as_raw(), source.byte_len());
    assert_eq!(target.byte_len(), bytes, "both sides of a copy are of one length");
    // SAFETY: both buffers have this many bytes, and the caller keeps them.
    unsafe { call!(stream.driver(), cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())) }
}

/// Returns `true` if the work on `stream` waits for something, given that it would be done at once if it did not.
///
/// # Panics
///
/// If the driver refuses to say.
#[must_use]
pub fn is_held_up(stream: &Stream) -> bool {
    thread::sleep(Duration::from_millis(10));
    !stream.is_finished().expect("a stream can be asked")
}
