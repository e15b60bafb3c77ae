//! A resource that records allocations.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use curium_driver::extend::contain;
use curium_driver::{DevicePointer, Error, Result, Stream};
use curium_memory::{Resource, SegmentChange};
use parking_lot::Mutex;

use crate::{AllocationEvent, CallSite, EventKind};

/// A resource adaptor that records every allocation and free in the order in which they happened. A
/// failed free is followed by an allocation event for the same memory. Segment changes of the inner
/// resource precede the next recorded event.
///
/// - [`AllocationRecorder::ring`] keeps the most recent events, for a
///   [`Snapshot`](crate::Snapshot).
/// - [`AllocationRecorder::to_writer`] writes each event as a line of text, which
///   [`AllocationLog`](crate::AllocationLog) parses and replays.
///
/// The call site is the caller of the buffer's constructor if the resource is a concrete type. It
/// is unknown through `dyn Resource`.
pub struct AllocationRecorder<R> {
    inner: R,
    sink: Mutex<Sink>,
    /// The number of recorded segment changes, which is updated under the sink's lock.
    changes: AtomicU64,
    begin: Instant,
    lost: AtomicU64,
}

enum Sink {
    Ring {
        events: VecDeque<AllocationEvent>,
        capacity: usize,
    },
    Lines(Lines),
}

/// A writer of events as lines. The writer is user code: it is called without the lock, by one
/// thread at a time, and may panic.
struct Lines {
    waiting: VecDeque<AllocationEvent>,
    /// `None` while a thread writes.
    writer: Option<Box<dyn Write + Send>>,
    writing: Option<ThreadId>,
}

impl<R: Resource> AllocationRecorder<R> {
    /// Records the last `capacity` events of `inner` in memory.
    pub fn ring(inner: R, capacity: usize) -> Self {
        Self::new(
            inner,
            Sink::Ring {
                events: VecDeque::new(),
                capacity,
            },
        )
    }

    /// Writes the events of `inner` to `writer`, one per line. Use a buffered writer for speed.
    ///
    /// A line that cannot be written is counted as [lost](AllocationRecorder::lost), even if the
    /// writer panics; the allocation itself is not affected. If the writer allocates from the
    /// resource, those events are written after the current line.
    pub fn to_writer(inner: R, mut writer: impl Write + Send + 'static) -> Self {
        let is_begun = contained(|| writeln!(writer, "{}", AllocationEvent::HEADER)).is_ok();
        let lines = Lines {
            waiting: VecDeque::new(),
            writer: Some(Box::new(writer)),
            writing: None,
        };
        let recording = Self::new(inner, Sink::Lines(lines));
        recording
            .lost
            .store(u64::from(!is_begun), Ordering::Relaxed);
        recording
    }

    /// Returns the inner resource.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Returns the recorded events, oldest first; empty if they go to a writer.
    pub fn events(&self) -> Vec<AllocationEvent> {
        match &*self.sink.lock() {
            Sink::Ring { events, .. } => events.iter().cloned().collect(),
            Sink::Lines(_) => Vec::new(),
        }
    }

    /// Returns the number of events that were dropped for lack of space or could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Flushes the writer.
    ///
    /// # Errors
    ///
    /// The error of the writer; an error if the writer panics or calls this function itself.
    pub fn flush(&self) -> io::Result<()> {
        loop {
            if let Some(mut writing) = self.take_writer()? {
                let written = self.write_waiting(&mut writing);
                return contained(|| writing.writer.flush()).and(written);
            }
            // Another thread is writing, or there is no writer.
            if matches!(*self.sink.lock(), Sink::Ring { .. }) {
                return Ok(());
            }
            thread::sleep(Duration::from_micros(50));
        }
    }

    fn new(inner: R, sink: Sink) -> Self {
        // Earlier changes are queried from the resource and precede the first event.
        let next = inner
            .segment_changes(0)
            .last()
            .map_or(0, |change| change.number + 1);
        let changes = AtomicU64::new(next);
        let lost = AtomicU64::new(0);
        Self {
            inner,
            sink: Mutex::new(sink),
            changes,
            begin: Instant::now(),
            lost,
        }
    }

    /// Records an event. The inner resource is not called in the meantime, so that its own events
    /// can be recorded too.
    fn record(
        &self,
        kind: EventKind,
        stream: &Stream,
        figures: (u64, usize, usize),
        site: Option<CallSite>,
    ) {
        let (address, bytes, alignment) = figures;
        let stream = stream.identity();
        let changes = self
            .inner
            .segment_changes(self.changes.load(Ordering::Relaxed));
        let mut sink = self.sink.lock();
        // Read under the lock, so that times are monotonic.
        let nanoseconds = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record_changes(&mut sink, &changes, nanoseconds);
        self.push(
            &mut sink,
            AllocationEvent {
                kind,
                nanoseconds,
                address,
                bytes,
                alignment,
                stream,
                site,
            },
        );
        drop(sink);
        self.write();
    }

    /// Records segment changes, unless another thread has recorded them.
    fn record_changes(&self, sink: &mut Sink, changes: &[SegmentChange], nanoseconds: u64) {
        let written = self.changes.load(Ordering::Relaxed);
        for change in changes.iter().filter(|change| change.number >= written) {
            let SegmentChange {
                number,
                kind,
                address,
                bytes,
                ..
            } = *change;
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let alignment = 1;
            let stream = 0;
            self.push(
                sink,
                AllocationEvent {
                    kind: kind.into(),
                    nanoseconds,
                    address,
                    bytes,
                    alignment,
                    stream,
                    site: None,
                },
            );
            self.changes.store(number + 1, Ordering::Relaxed);
        }
    }

    fn push(&self, sink: &mut Sink, event: AllocationEvent) {
        if !sink.push(event) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records segment changes that were not caused by allocations.
    fn catch_up(&self) {
        let changes = self
            .inner
            .segment_changes(self.changes.load(Ordering::Relaxed));
        let mut sink = self.sink.lock();
        let nanoseconds = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record_changes(&mut sink, &changes, nanoseconds);
        drop(sink);
        self.write();
    }

    /// Writes the queued lines, unless another thread is writing, which then writes these too.
    fn write(&self) {
        while let Ok(Some(mut writing)) = self.take_writer() {
            let _ = self.write_waiting(&mut writing);
            drop(writing);
            if !self.sink.lock().has_waiting() {
                return;
            }
        }
    }

    /// Writes lines until the queue is empty. Returns the error of the first lost line.
    fn write_waiting(&self, writing: &mut Writing<'_>) -> io::Result<()> {
        let mut result = Ok(());
        while let Some(event) = writing.next() {
            let written = contained(|| writeln!(writing.writer, "{event}"));
            self.lost
                .fetch_add(u64::from(written.is_err()), Ordering::Relaxed);
            result = result.and(written);
        }
        result
    }

    /// Takes the writer for this thread; `None` if another thread has it, or if there is none.
    fn take_writer(&self) -> io::Result<Option<Writing<'_>>> {
        let mut sink = self.sink.lock();
        let Sink::Lines(lines) = &mut *sink else {
            return Ok(None);
        };
        let this = thread::current().id();
        if lines.writing == Some(this) {
            return Err(io::Error::other("the writer is in use on this thread"));
        }
        let Some(writer) = lines.writer.take() else {
            return Ok(None);
        };
        lines.writing = Some(this);
        Ok(Some(Writing {
            sink: &self.sink,
            writer: ManuallyDrop::new(writer),
        }))
    }
}

/// The writer while a thread uses it. Dropping it returns the writer.
struct Writing<'a> {
    sink: &'a Mutex<Sink>,
    writer: ManuallyDrop<Box<dyn Write + Send>>,
}

impl Writing<'_> {
    fn next(&self) -> Option<AllocationEvent> {
        match &mut *self.sink.lock() {
            Sink::Lines(lines) => lines.waiting.pop_front(),
            Sink::Ring { .. } => None,
        }
    }
}

/// Calls the writer and converts a panic to an error.
fn contained(operation: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut result = Err(io::Error::other("the writer panicked"));
    contain(|| result = operation());
    result
}

impl Sink {
    /// Adds an event. Returns `false` if another one was dropped for it.
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

    fn has_waiting(&self) -> bool {
        matches!(self, Self::Lines(lines) if !lines.waiting.is_empty())
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so the field is not used again.
        let writer = unsafe { ManuallyDrop::take(&mut self.writer) };
        if let Sink::Lines(lines) = &mut *self.sink.lock() {
            (lines.writer, lines.writing) = (Some(writer), None);
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The writer may flush its buffer, and panic.
        contain(|| drop(self.writer.take()));
    }
}

// SAFETY: all memory comes from the inner resource, which upholds the contract.
unsafe impl<R: Resource> Resource for AllocationRecorder<R> {
    #[track_caller]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        let site = Location::caller();
        let result = self.inner.allocate(stream, bytes, alignment);
        let (kind, address) = match &result {
            Ok(pointer) => (EventKind::Allocate, pointer.as_raw()),
            Err(error) => (EventKind::Fail, free_bytes(error)),
        };
        self.record(kind, stream, (address, bytes, alignment), Some(site.into()));
        result
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        let figures = (pointer.as_raw(), bytes, alignment);
        // Recorded first: once the memory is free, another thread may allocate the same address.
        self.record(EventKind::Free, stream, figures, None);
        // SAFETY: the inner resource allocated the memory with this size and alignment, and the
        // caller guarantees that only earlier work on `stream` uses it.
        let freed = unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) };
        freed.inspect_err(|_| self.record(EventKind::Allocate, stream, figures, None))
    }

    fn purge(&self) -> Result<()> {
        self.inner.purge()
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        self.inner.synchronize(stream)
    }

    fn trim(&self, stream: &Stream, keep: usize) -> Result<()> {
        let trimmed = self.inner.trim(stream, keep);
        self.catch_up();
        trimmed
    }

    fn segment_changes(&self, since: u64) -> Vec<SegmentChange> {
        self.inner.segment_changes(since)
    }
}

/// Returns the free memory of the device at the failure in bytes, if the error contains it.
#[cold]
fn free_bytes(error: &Error) -> u64 {
    match error {
        Error::OutOfMemory(error) => error.free.map_or(0, |free| free as u64),
        _ => 0,
    }
}

impl<R: fmt::Debug> fmt::Debug for AllocationRecorder<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("AllocationRecorder")
            .field(&self.inner)
            .finish()
    }
}
