//! Bounce buffers: pinned memory through which small copies pass.
//!
//! The bytes of a copy to the device are in a bounce buffer when the copy is enqueued, so the host
//! does not wait for it. A copy to the host is enqueued into a bounce buffer, from which the host
//! copies once it has waited.
//!
//! - A bounce buffer belongs to one stream at a time. Its copies use the bytes in a circle, in the
//!   order of the stream.
//! - Each event covers several copies. When the buffer is full, the host waits for the oldest event
//!   of the same stream, never for another stream, whose work may depend on this copy.
//! - A thread takes the buffer from its stream during a copy, so no lock is held across driver
//!   calls. Other threads meanwhile use other buffers on the same stream.
//! - When its stream ends, a buffer returns to the context, and another stream gets it once its
//!   copies have completed.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use curium_driver::extend::{dropping, with_relaxed_capture_mode};
use curium_driver::{Context, Event, EventFlags, Result, Stream, call};
use parking_lot::Mutex;

use super::{Direction, Staging, is_pageable};
use crate::{PinnedBuffer, PinnedFlags, wait};

/// The bounce buffers of a context.
#[derive(Default)]
pub(super) struct BouncePool {
    /// The buffers of no stream, in the order in which their streams ended.
    #[expect(clippy::vec_box, reason = "copies move buffers between owners")]
    idle: Vec<Box<BounceBuffer>>,
    /// The size of all buffers, including those of streams.
    bytes: usize,
}

/// The bounce buffers of a stream, which are attached to it.
struct StreamBuffers {
    /// Dropped before the stream, which keeps the context alive.
    staging: Arc<Staging>,
    /// The buffers that no copy has taken.
    #[expect(
        clippy::vec_box,
        reason = "every copy takes a buffer out and returns it"
    )]
    idle: Mutex<Vec<Box<BounceBuffer>>>,
    stream: Stream,
}

/// The pinned memory of copies on one stream.
struct BounceBuffer {
    context: Context,
    /// The device may be using parts of it, so no reference to the whole is created.
    memory: ManuallyDrop<PinnedBuffer<u8>>,
    circle: Circle,
    /// The recorded events, each with the position that it covers, the oldest first.
    recorded: VecDeque<(u64, Event)>,
    unused: Vec<Event>,
    /// The number of events that can be created.
    missing: usize,
}

/// The bytes in use, as positions: numbers of bytes since the buffer was created.
#[derive(Debug)]
struct Circle {
    /// A power of two.
    capacity: u64,
    /// The device has completed all copies before this position.
    completed: u64,
    /// Events cover all copies before this position.
    covered: u64,
    /// The position of the next copy.
    end: u64,
}

/// Bytes of a bounce buffer, for one copy on a stream. Dropping it returns the buffer to the
/// stream.
pub(crate) struct Bounce<'a> {
    stream: &'a Stream,
    buffers: &'a StreamBuffers,
    /// `None` once it has been returned.
    buffer: Option<Box<BounceBuffer>>,
    address: *mut u8,
    bytes: usize,
}

/// The maximum size in bytes of all bounce buffers of a context. Streams that get none use the
/// driver's own copy.
const MAX_BYTES: usize = 64 << 20;

/// The size in bytes of a buffer for small copies, which stays in the CPU's cache, and the maximum
/// size of these copies.
const SMALL_BUFFER: usize = 512 << 10;
const MAX_SMALL_COPY: usize = 64 << 10;

/// The size in bytes of a buffer for longer copies, and the maximum size of any copy.
const LARGE_BUFFER: usize = 2 << 20;
const MAX_COPY: usize = LARGE_BUFFER / 2;

/// The number of events of a buffer. A full buffer waits for the copies of one event only.
const EVENTS: usize = 4;

/// The maximum size in bytes of a copy to the host that passes through a bounce buffer even if the
/// host memory is pinned: a query takes as long as the additional copy.
const MAX_UNCHECKED_BYTES: usize = 32 << 10;

/// The alignment of copies in a buffer: a cache line.
const ALIGNMENT: u64 = 64;

/// Returns the size of the bounce buffers for copies of `bytes` bytes.
fn buffer_bytes(bytes: usize) -> usize {
    if bytes <= MAX_SMALL_COPY {
        SMALL_BUFFER
    } else {
        LARGE_BUFFER
    }
}

impl<'a> Bounce<'a> {
    /// Reserves bytes of a bounce buffer for a copy of `bytes` bytes on `stream` between the device
    /// and `host`. Returns `None` if another copy is preferable.
    #[inline]
    pub(crate) fn reserve(
        stream: &'a Stream,
        host: *const c_void,
        bytes: usize,
        direction: Direction,
    ) -> Option<Self> {
        let buffers = StreamBuffers::attached_to(stream);
        if bytes > buffers.max_copy(direction) {
            return None;
        }
        // The host waits for a copy to the host anyway. To pinned memory, it is faster without
        // another copy by the CPU.
        let is_direct = direction == Direction::ToHost
            && bytes > MAX_UNCHECKED_BYTES
            && !is_pageable(stream.driver(), host, bytes);
        if is_direct {
            return None;
        }
        buffers.reserve(stream, bytes)
    }

    /// Returns the address of the bytes.
    #[inline]
    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        self.address
    }

    /// Returns the bytes.
    ///
    /// # Safety
    ///
    /// The copy is not enqueued yet.
    #[inline]
    pub(crate) unsafe fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are initialized, and reserved for this copy, which the caller has not
        // enqueued yet.
        unsafe { slice::from_raw_parts_mut(self.address, self.bytes) }
    }

    /// Returns the buffer to its stream after the copy was enqueued.
    #[inline]
    pub(crate) fn finish_enqueued(mut self) {
        if let Some(buffer) = &mut self.buffer
            && buffer.circle.is_event_due()
        {
            buffer.cover(self.stream);
        }
    }

    /// Returns the buffer to its stream after a wait for all copies on the stream.
    #[inline]
    pub(crate) fn finish_completed(mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer
                .unused
                .extend(buffer.recorded.drain(..).map(|(_, event)| event));
            buffer.circle.complete_all();
        }
    }
}

impl Drop for Bounce<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.buffers.idle.lock().push(buffer);
        }
    }
}

impl Staging {
    /// Returns a bounce buffer of `bytes` bytes that no stream uses any more, or a new one. Returns
    /// `None` if there are too many.
    #[cold]
    fn bounce_buffer(&self, bytes: usize) -> Option<Box<BounceBuffer>> {
        let oldest = self.take_idle_buffer(bytes);
        if let Some(mut oldest) = oldest {
            if oldest.is_completed() {
                return Some(oldest);
            }
            self.bounce.lock().idle.push(oldest);
        }
        {
            let mut pool = self.bounce.lock();
            if pool.bytes + bytes > MAX_BYTES {
                return None;
            }
            pool.bytes += bytes;
        }
        // This must not invalidate captures on other threads.
        let buffer = with_relaxed_capture_mode(self.context.driver(), || {
            BounceBuffer::new(&self.context, bytes)
        });
        match buffer {
            Ok(buffer) => Some(Box::new(buffer)),
            Err(_) => {
                self.bounce.lock().bytes -= bytes;
                None
            }
        }
    }

    /// Takes the buffer of `bytes` bytes whose stream ended first.
    fn take_idle_buffer(&self, bytes: usize) -> Option<Box<BounceBuffer>> {
        let mut pool = self.bounce.lock();
        let index = pool
            .idle
            .iter()
            .position(|buffer| buffer.memory.byte_len() == bytes)?;
        Some(pool.idle.remove(index))
    }

    /// Frees the bounce buffers that no stream uses any more.
    pub(super) fn trim_bounce_buffers(&self) {
        let idle = std::mem::take(&mut self.bounce.lock().idle);
        for mut buffer in idle {
            if buffer.is_completed() {
                self.bounce.lock().bytes -= buffer.memory.byte_len();
                drop(buffer);
            } else {
                self.bounce.lock().idle.push(buffer);
            }
        }
    }
}

impl StreamBuffers {
    fn new(stream: Stream) -> Self {
        Self {
            staging: Staging::for_context(stream.context()),
            idle: Mutex::new(Vec::new()),
            stream,
        }
    }

    /// Returns the bounce buffers of a stream.
    #[inline]
    fn attached_to(stream: &Stream) -> &Self {
        // SAFETY: the stream is a field of the value, which drops it, and is not cloned.
        unsafe { stream.attached(Self::new) }
    }

    /// Returns the maximum size in bytes of a copy through a bounce buffer.
    #[inline]
    fn max_copy(&self, direction: Direction) -> usize {
        let staging = &self.staging;
        let staged = staging.threshold.load(Ordering::Relaxed);
        staging
            .bounce_bytes(direction)
            .min(staged.saturating_sub(1))
            .min(MAX_COPY)
    }

    /// Reserves bytes for a copy of `bytes` bytes, at most [`StreamBuffers::max_copy`], on
    /// `stream`, to which this value is attached. Returns `None` if no buffer has room.
    #[inline]
    fn reserve<'a>(&'a self, stream: &'a Stream, bytes: usize) -> Option<Bounce<'a>> {
        let mut bounce = Bounce {
            stream,
            buffers: self,
            buffer: Some(self.take(bytes)?),
            address: std::ptr::null_mut(),
            bytes,
        };
        let buffer = bounce.buffer.as_mut()?;
        let offset = match buffer.circle.reserve(bytes as u64) {
            Some(offset) => offset,
            None => buffer.reserve_completed(stream, bytes as u64)?,
        };
        bounce.address = buffer.memory.address().wrapping_add(offset as usize);
        Some(bounce)
    }

    /// Takes a buffer for a copy of `bytes` bytes. Returns `None` if there are too many buffers.
    #[inline]
    fn take(&self, bytes: usize) -> Option<Box<BounceBuffer>> {
        let bytes = buffer_bytes(bytes);
        let own = {
            let mut idle = self.idle.lock();
            let index = idle
                .iter()
                .rposition(|buffer| buffer.memory.byte_len() == bytes);
            index.map(|index| idle.swap_remove(index))
        };
        own.or_else(|| self.staging.bounce_buffer(bytes))
    }
}

impl Drop for StreamBuffers {
    fn drop(&mut self) {
        let buffers = std::mem::take(self.idle.get_mut());
        // At the exit of the process, and in a forked child, the buffers are leaked.
        let _ = dropping(|| {
            for mut buffer in buffers {
                buffer.cover(&self.stream);
                self.staging.bounce.lock().idle.push(buffer);
            }
        });
    }
}

impl BounceBuffer {
    fn new(context: &Context, bytes: usize) -> Result<Self> {
        let memory = PinnedBuffer::zeroed(context, bytes, PinnedFlags::empty())?;
        Ok(Self {
            context: context.clone(),
            memory: ManuallyDrop::new(memory),
            circle: Circle::new(bytes as u64),
            recorded: VecDeque::new(),
            unused: Vec::new(),
            missing: EVENTS,
        })
    }

    /// Reserves bytes in a buffer that seems full. Waits for the oldest copies if it is. Returns
    /// `None` if the bytes do not fit, or if no event covers the copies. An error is returned by
    /// the driver's own copy, which is used then.
    #[cold]
    fn reserve_completed(&mut self, stream: &Stream, bytes: u64) -> Option<u64> {
        loop {
            self.release_completed().ok()?;
            if let Some(offset) = self.circle.reserve(bytes) {
                return Some(offset);
            }
            self.cover(stream);
            let (_, oldest) = self.recorded.front()?;
            with_relaxed_capture_mode(oldest.driver(), || oldest.synchronize()).ok()?;
        }
    }

    /// Records an event after the copies that no event covers. Does nothing if this fails, if other
    /// code captures the stream, or if all events are in use.
    fn cover(&mut self, stream: &Stream) {
        if self.circle.covered == self.circle.end {
            return;
        }
        let Some(event) = self.unused_event() else {
            return;
        };
        match record(stream, &event) {
            Ok(true) => {
                self.circle.covered = self.circle.end;
                self.recorded.push_back((self.circle.end, event));
            }
            Ok(false) | Err(_) => self.unused.push(event),
        }
    }

    /// Returns an event that is not in use. Creates it if all that exist are in use.
    fn unused_event(&mut self) -> Option<Event> {
        if self.unused.is_empty() {
            self.release_completed().ok()?;
        }
        if self.unused.is_empty() && self.missing > 0 {
            let event = Event::new(&self.context, EventFlags::DISABLE_TIMING).ok()?;
            self.missing -= 1;
            return Some(event);
        }
        self.unused.pop()
    }

    /// Releases the bytes of the copies whose event has completed.
    fn release_completed(&mut self) -> Result<()> {
        with_relaxed_capture_mode(self.context.driver(), || {
            while let Some((_, event)) = self.recorded.front()
                && event.is_finished()?
                && let Some((position, event)) = self.recorded.pop_front()
            {
                self.circle.completed = position;
                self.unused.push(event);
            }
            Ok(())
        })
    }

    /// Returns `true` if the device has completed all copies.
    fn is_completed(&mut self) -> bool {
        self.release_completed().is_ok() && self.circle.is_empty()
    }

    /// Waits for the copies.
    fn wait(&self) -> Result<()> {
        match self.recorded.back() {
            _ if self.circle.is_empty() => Ok(()),
            Some((_, event)) if self.circle.covered == self.circle.end => {
                wait::before_free_event(event)
            }
            _ => wait::before_free_context(&self.context),
        }
    }
}

impl Drop for BounceBuffer {
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so the field is not used again.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let bytes = memory.byte_len() as u64;
        wait::drop_or_leak(self.context.driver(), bytes, memory, || self.wait());
    }
}

/// Records an event after all work on `stream`. Returns `false` if other code captures the stream.
fn record(stream: &Stream, event: &Event) -> Result<bool> {
    if stream.is_capturing()? {
        return Ok(false);
    }
    let operation = stream.enqueue_release("Event::record")?;
    // SAFETY: the event and the stream are live, and belong to the same context and driver.
    unsafe {
        call!(
            stream.driver(),
            cuEventRecord(event.as_raw(), operation.raw_stream())
        )
    }?;
    Ok(true)
}

impl Circle {
    fn new(capacity: u64) -> Self {
        Self {
            capacity,
            completed: 0,
            covered: 0,
            end: 0,
        }
    }

    /// Reserves `bytes` consecutive bytes and returns their offset in the buffer. Returns `None` if
    /// they are in use.
    #[inline]
    fn reserve(&mut self, bytes: u64) -> Option<u64> {
        if self.is_empty() {
            // The start of the buffer is most likely in the CPU's cache.
            self.end = self.end.next_multiple_of(self.capacity);
            self.complete_all();
        }
        let offset = self.end & (self.capacity - 1);
        let start = if offset + bytes <= self.capacity {
            self.end
        } else {
            self.end - offset + self.capacity
        };
        let end = (start + bytes).next_multiple_of(ALIGNMENT);
        if end - self.completed > self.capacity {
            return None;
        }
        self.end = end;
        Some(start & (self.capacity - 1))
    }

    fn complete_all(&mut self) {
        self.completed = self.end;
        self.covered = self.end;
    }

    fn is_empty(&self) -> bool {
        self.completed == self.end
    }

    /// Returns `true` if so many bytes are not covered that an event should be recorded.
    #[inline]
    fn is_event_due(&self) -> bool {
        self.end - self.covered >= self.capacity / EVENTS as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_circle_reserves_nothing() {
        let mut circle = Circle::new(1024);
        assert_eq!(circle.reserve(1), Some(0));
        assert_eq!(circle.reserve(512), Some(64));
        assert_eq!(circle.reserve(512), None, "448 bytes are left");
        assert_eq!(circle.reserve(448), Some(576));
        assert_eq!(circle.reserve(1), None);
        circle.completed = 64;
        assert_eq!(circle.reserve(64), Some(0));
        assert_eq!(circle.reserve(1), None);
    }

    #[test]
    fn copies_do_not_wrap_around() {
        let mut circle = Circle::new(1024);
        assert_eq!(circle.reserve(640), Some(0));
        circle.completed = 640;
        circle.end = 704;
        assert_eq!(
            circle.reserve(512),
            Some(0),
            "the last 320 bytes are skipped"
        );
        assert_eq!(circle.end, 1536);
        assert_eq!(
            circle.reserve(129),
            None,
            "the bytes from 640 on are in use until the copy has completed"
        );
        assert_eq!(circle.reserve(128), Some(512));
    }

    #[test]
    fn empty_circle_starts_at_its_first_byte() {
        let mut circle = Circle::new(1024);
        assert_eq!(circle.reserve(100), Some(0));
        circle.complete_all();
        assert_eq!(circle.reserve(1024), Some(0));
        assert_eq!(circle.reserve(1), None);
        circle.complete_all();
        assert_eq!(circle.reserve(1025), None, "it never fits");
    }

    /// No byte is reserved while an earlier copy uses it.
    #[test]
    fn reserved_bytes_do_not_overlap() {
        let mut random = 1_u64;
        let mut circle = Circle::new(4096);
        let mut copies: VecDeque<(u64, u64, u64)> = VecDeque::new();
        let mut reservations = 0;
        for _ in 0..2000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bytes = (random >> 33) % 1024 + 1;
            match circle.reserve(bytes) {
                Some(offset) => {
                    reservations += 1;
                    assert!(offset + bytes <= 4096);
                    for (other, length, _) in &copies {
                        assert!(offset + bytes <= *other || other + length <= offset);
                    }
                    copies.push_back((offset, bytes, circle.end));
                }
                None => {
                    let (_, _, end) = copies.pop_front().unwrap_or_default();
                    circle.completed = end;
                }
            }
        }
        assert!(reservations > 500);
    }
}
