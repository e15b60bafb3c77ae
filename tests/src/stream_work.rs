//! Fills and copies on any stream, whose accesses are recorded like those of a kernel's arguments.

use std::thread;
use std::time::Duration;

use curium_driver::AsRawStream as _;
use curium_driver::hazard::Operation;
use curium_driver::{Argument, Result, Stream, call};
use curium_memory::DeviceBuffer;

/// Sets every element of `buffer` to `value` on `stream`.
///
/// # Errors
///
/// An error returned by the driver.
pub fn fill(stream: &Stream, mut buffer: &mut DeviceBuffer<u32>, value: u32) -> Result<()> {
    let len = buffer.len();
    let mut operation = stream.enqueue("stream_work::fill")?;
    // SAFETY: `launched` records the access below, and the buffer is not used in between.
    let pointer = unsafe { Argument::<&mut [u32]>::bind(&mut buffer, &mut operation) }?;
    // SAFETY: the buffer is live with this many words, and `bind` made the stream wait for its
    // earlier accesses.
    unsafe {
        call!(
            stream.driver(),
            cuMemsetD32Async(pointer, value, len, operation.raw_stream())
        )
    }?;
    // SAFETY: the buffer was bound to this stream above and has not been used since.
    unsafe { Argument::<&mut [u32]>::launched(&mut buffer, &mut operation) };
    Ok(())
}

/// Begins an operation on `stream`.
///
/// # Panics
///
/// Panics if the stream is capturing, or this thread is in the middle of another access.
#[must_use]
pub fn begin(stream: &Stream) -> Operation<'_> {
    stream
        .enqueue("stream_work::begin")
        .expect("no access is in progress on this thread")
}

/// Copies `source` to `target`, which has the same length, on `stream`.
///
/// # Errors
///
/// An error returned by the driver.
///
/// # Panics
///
/// Panics if the lengths differ.
pub fn copy(
    stream: &Stream,
    mut target: &mut DeviceBuffer<u32>,
    mut source: &DeviceBuffer<u32>,
) -> Result<()> {
    let bytes = source.byte_len();
    assert_eq!(
        target.byte_len(),
        bytes,
        "both sides of a copy have the same length"
    );
    let mut operation = stream.enqueue("stream_work::copy")?;
    // SAFETY: `launched` records the access below, and the buffer is not used in between.
    let to = unsafe { Argument::<&mut [u32]>::bind(&mut target, &mut operation) }?;
    // SAFETY: `launched` records the access below, and the buffer is not used in between.
    let from = unsafe { Argument::<&[u32]>::bind(&mut source, &mut operation) }?;
    // SAFETY: both buffers are live with this many bytes, and `bind` made the stream wait for their
    // earlier accesses.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyDtoDAsync_v2(to, from, bytes, operation.raw_stream())
        )
    }?;
    // SAFETY: the buffer was bound to this stream above and has not been used since.
    unsafe { Argument::<&mut [u32]>::launched(&mut target, &mut operation) };
    // SAFETY: the buffer was bound to this stream above and has not been used since.
    unsafe { Argument::<&[u32]>::launched(&mut source, &mut operation) };
    Ok(())
}

/// Copies `source` to `target`, which has the same length, on `stream` without any wait, like a
/// program that passes raw addresses and does not synchronize.
///
/// # Safety
///
/// Both buffers outlive the work on `stream`. The copied values are unspecified.
///
/// # Errors
///
/// An error returned by the driver.
pub unsafe fn copy_without_waiting(
    stream: &Stream,
    target: &DeviceBuffer<u32>,
    source: &DeviceBuffer<u32>,
) -> Result<()> {
    let to = target.as_pointer().as_raw();
    let from = source.as_pointer().as_raw();
    let bytes = source.byte_len();
    assert_eq!(
        target.byte_len(),
        bytes,
        "both sides of a copy have the same length"
    );
    // SAFETY: both buffers have this many bytes, and the caller keeps them.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())
        )
    }
}

/// Returns `true` if the work on `stream` waits for other work, given that it would complete
/// immediately otherwise.
///
/// # Panics
///
/// Panics if the driver call fails.
#[must_use]
pub fn is_held_up(stream: &Stream) -> bool {
    thread::sleep(Duration::from_millis(10));
    !stream.is_finished().expect("stream query failed")
}
