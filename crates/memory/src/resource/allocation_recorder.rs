//! A resource that writes down what is asked of it.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use curium_driver::{DevicePointer, Error, Result, Stream, contain};
use parking_lot::Mutex;

use super::{Resource, SegmentChange};
use crate::allocation_log::{AllocationEvent, EventKind, Site};

/// A resource that writes down every allocation and every free, in the order in which they happened. A free that fails is followed by
/// an allocation of the same memory. What the resource inside did to its segments stands before the first event that was written down
/// since.
///
/// - [`AllocationRecorder::ring`] keeps the last so many events, for a [`Snapshot`](crate::Snapshot).
/// - [`AllocationRecorder::to_writer`] writes each event as a line of text, which [`AllocationLog`](crate::AllocationLog) reads, draws and replays.
///
/// The line of code is that of the caller where the resource is known by its type; through `dyn Resource` it is not known.
pub struct AllocationRecorder<R> {
    inner: R,
    sink: Mutex<Sink>,
    /// How many changes of segments were written down, which is changed with the sink.
    changes: AtomicU64,
    begin: Instant,
    lost: AtomicU64,
}

enum Sink {
    Ring { events: VecDeque<AllocationEvent>, capacity: usize },
    Lines(Lines),
}

/// Events that are written as lines. The writer is the user's: it is called without the lock, by one thread at a time, and may panic.
struct Lines {
    waiting: VecDeque<AllocationEvent>,
    /// None while a thread writes.
    writer: Option<Box<dyn Write + Send>>,
    writing: Option<ThreadId>,
}

impl<R: Resource> AllocationRecorder<R> {
    /// Keeps the last `capacity` events of `inner`.
    #[inline]
    pub fn ring(inner: R, capacity: usize) -> Self {
        Self::new(inner, Sink::Ring { events: VecDeque::new(), capacity })
    }

    /// Writes the events of `inner` to `writer`, a line each. A writer with a buffer makes it quick.
    ///
    /// A line that cannot be written is [lost](AllocationRecorder::lost), also if the writer panics; the allocation takes place all the same. The
    /// writer
    /// may use the resource: what it allocates is written after the line at hand.
    #[inline]
    pub fn to_writer(inner: R, mut writer: impl Write + Send + 'static) -> Self {
        let is_begun = contained(|| writeln!(writer, "{}", AllocationEvent::HEADER)).is_ok();
        let lines = Lines { waiting: VecDeque::new(), writer: Some(Box::new(writer)), writing: None };
        let recording = Self::new(inner, Sink::Lines(lines));
        recording.lost.store(u64::from(!is_begun), Ordering::Relaxed);
        recording
    }

    /// The resource inside.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// The events that are kept, the oldest first; none if they are written.
    #[inline]
    pub fn events(&self) -> Vec<AllocationEvent> {
        match &*self.sink.lock() {
            Sink::Ring { events, .. } => events.iter().cloned().collect(),
            Sink::Lines(_) => Vec::new(),
        }
    }

    /// How many events were dropped for want of room, or could not be written.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what the writer still holds.
    ///
    /// # Errors
    ///
    /// The writer's error; an error if the writer panics, or if it calls this itself.
    #[inline]
    pub fn flush(&self) -> io::Result<()> {
        loop {
            if let Some(mut writing) = self.take_writer()? {
                let written = self.write_waiting(&mut writing);
                return contained(|| writing.writer.flush()).and(written);
            }
            // Another thread writes, or there is no writer.
            if matches!(*self.sink.lock(), Sink::Ring { .. }) {
                return Ok(());
            }
            thread::sleep(Duration::from_micros(50));
        }
    }

    #[inline]
    fn new(inner: R, sink: Sink) -> Self {
        // What came before is known from the resource, and lies before the first event.
        let next = inner.segment_changes(0).last().map_or(0, |change| change.number + 1);
        let (changes, lost) = (AtomicU64::new(next), AtomicU64::new(0));
        Self { inner, sink: Mutex::new(sink), changes, begin: Instant::now(), lost }
    }

    /// Writes an event down. The resource inside is not called meanwhile: what it does may be recorded as well.
    #[inline]
    fn record(&self, kind: EventKind, stream: &Stream, figures: (u64, usize, usize), site: Option<Site>) {
        let (address, bytes, alignment) = figures;
        let stream = stream.identity();
        let changes = self.inner.segment_changes(self.changes.load(Ordering::Relaxed));
        let mut sink = self.sink.lock();
        // Within the lock, so that times rise from event to event.
        let nanoseconds = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record_changes(&mut sink, &changes, nanoseconds);
        self.push(&mut sink, AllocationEvent { kind, nanoseconds, address, bytes, alignment, stream, site });
        drop(sink);
        self.write();
    }

    /// Writes down what became of segments, unless another thread has done so meanwhile.
    #[inline]
    fn record_changes(&self, sink: &mut Sink, changes: &[SegmentChange], nanoseconds: u64) {
        let written = self.changes.load(Ordering::Relaxed);
        for change in changes.iter().filter(|change| change.number >= written) {
            let SegmentChange { number, kind, address, bytes } = *change;
            let (bytes, alignment, stream) = (usize::try_from(bytes).unwrap_or(usize::MAX), 1, 0);
            self.push(sink, AllocationEvent { kind, nanoseconds, address, bytes, alignment, stream, site: None });
            self.changes.store(number + 1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn push(&self, sink: &mut Sink, event: AllocationEvent) {
        if !sink.push(event) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes down what became of segments by other ways than allocations.
    #[inline]
    fn catch_up(&self) {
        let changes = self.inner.segment_changes(self.changes.load(Ordering::Relaxed));
        let mut sink = self.sink.lock();
        let nanoseconds = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record_changes(&mut sink, &changes, nanoseconds);
        drop(sink);
        self.write();
    }

    /// Writes the lines that wait, unless a thread is writing, which then writes these as well.
    #[inline]
    fn write(&self) {
        while let Ok(Some(mut writing)) = self.take_writer() {
            let _ = self.write_waiting(&mut writing);
            drop(writing);
            if !self.sink.lock().has_waiting() {
                return;
            }
        }
    }

    /// Writes lines until none waits. The error of the first that is lost.
    fn write_waiting(&self, writing: &mut Writing<'_>) -> io::Result<()> {
        let mut result = Ok(());
        while let Some(event) = writing.next() {
            let written = contained(|| writeln!(writing.writer, "{event}"));
            self.lost.fetch_add(u64::from(written.is_err()), Ordering::Relaxed);
            result = result.and(written);
        }
        result
    }

    /// The writer, for this thread alone; nothing if another thread has it, or if there is none.
    #[inline]
    fn take_writer(&self) -> io::Result<Option<Writing<'_>>> {
        let mut sink = self.sink.lock();
        let Sink::Lines(lines) = &mut *sink else { return Ok(None) };
        let this = thread::current().id();
        if lines.writing == Some(this) {
            return Err(io::Error::other("the writer is in use on this thread"));
        }
        let Some(writer) = lines.writer.take() else { return Ok(None) };
        lines.writing = Some(this);
        Ok(Some(Writing { sink: &self.sink, writer: ManuallyDrop::new(writer) }))
    }
}

/// The writer while a thread uses it, which gives it back.
struct Writing<'a> {
    sink: &'a Mutex<Sink>,
    writer: ManuallyDrop<Box<dyn Write + Send>>,
}

impl Writing<'_> {
    #[inline]
    fn next(&self) -> Option<AllocationEvent> {
        match &mut *self.sink.lock() {
            Sink::Lines(lines) => lines.waiting.pop_front(),
            Sink::Ring { .. } => None,
        }
    }
}

/// Runs the writer's code such that a panic is an error.
fn contained(operation: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut result = Err(io::Error::other("the writer panicked"));
    contain(|| result = operation());
    result
}

impl Sink {
    /// Adds an event, and says whether none was lost for it.
    #[inline]
    fn push(&mut self, event: AllocationEvent) -> bool {
        match self {
            Self::Ring { events, capacity } => {
                let is_full = events.len() >= *capacity;
                if is_full {
                    events.pop_front();
                }
                if *capacity != 0 {
                    events.push_back(event);
                }
                !is_full
            }
            Self::Lines(lines) => {
                lines.waiting.push_back(event);
                true
            }
        }
    }

    #[inline]
    fn has_waiting(&self) -> bool {
        matches!(self, Self::Lines(lines) if !lines.waiting.is_empty())
    }
}

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so that nobody uses the field again.
        let writer = unsafe { ManuallyDrop::take(&mut self.writer) };
        if let Sink::Lines(lines) = &mut *self.sink.lock() {
            (lines.writer, lines.writing) = (Some(writer), None);
        }
    }
}

impl Drop for Lines {
    #[inline]
    fn drop(&mut self) {
        // The writer may write what it still holds, and panic.
        contain(|| drop(self.writer.take()));
    }
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource> Resource for AllocationRecorder<R> {
    #[track_caller]
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let site = Location::caller();
        let result = self.inner.allocate(stream, bytes, alignment);
        let (kind, address) = match &result {
            Ok(pointer) => (EventKind::Allocate, pointer.as_raw()),
            Err(error) => (EventKind::Fail, free_bytes(error)),
        };
        self.record(kind, stream, (address, bytes, alignment), Some(site.into()));
        result
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        let figures = (pointer.as_raw(), bytes, alignment);
        // It is written down first: once it is free, another thread may be given the same address.
        self.record(EventKind::Free, stream, figures, None);
        // SAFETY: the caller's promises are those of the resource inside, where the memory came from.
        let freed = unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) };
        freed.inspect_err(|_| self.record(EventKind::Allocate, stream, figures, None))
    }

    #[inline]
    fn purge(&self) -> Result<()> {
        self.inner.purge()
    }

    #[inline]
    fn synchronize(&self, stream: &Stream) -> Result<()> {
        self.inner.synchronize(stream)
    }

    #[inline]
    fn trim(&self, stream: &Stream, keep: usize) -> Result<()> {
        let trimmed = self.inner.trim(stream, keep);
        self.catch_up();
        trimmed
    }

    #[inline]
    fn segment_changes(&self, since: u64) -> Vec<SegmentChange> {
        self.inner.segment_changes(since)
    }
}

/// How many bytes of the device were free when memory was short, as far as the error knows.
#[cold]
#[inline]
fn free_bytes(error: &Error) -> u64 {
    match error {
        Error::OutOfMemory(error) => error.free.map_or(0, |free| free as u64),
        _ => 0,
    }
}

impl<R: fmt::Debug> fmt::Debug for AllocationRecorder<R> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("AllocationRecorder").field(&self.inner).finish()
    }
}
