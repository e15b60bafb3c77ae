//! A resource that writes down what is asked of it.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use curium_driver::lock::Mutex;
use curium_driver::{DevicePointer, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;
use crate::allocation_log::{AllocationEvent, EventKind, Site};

/// A resource that writes down every allocation and every free, in the order in which they happened. A free that fails is followed by
/// an allocation of the same memory.
///
/// - [`Recording::ring`] keeps the last so many events, for a [`Snapshot`](crate::Snapshot).
/// - [`Recording::to_writer`] writes each event as a line of text, which [`AllocationLog`](crate::AllocationLog) reads, draws and replays.
///
/// The line of code is that of the caller where the resource is known by its type; through `dyn Resource` it is not known.
pub struct Recording<R> {
    inner: R,
    sink: Mutex<Sink>,
    begin: Instant,
    lost: AtomicU64,
}

enum Sink {
    Ring { events: VecDeque<AllocationEvent>, capacity: usize },
    Writer(Box<dyn Write + Send>),
}

impl<R: Resource> Recording<R> {
    /// Keeps the last `capacity` events of `inner`.
    #[inline]
    pub fn ring(inner: R, capacity: usize) -> Self {
        Self::new(inner, Sink::Ring { events: VecDeque::new(), capacity })
    }

    /// Writes the events of `inner` to `writer`, a line each. A writer with a buffer makes it quick.
    ///
    /// A line that cannot be written is [lost](Recording::lost); the allocation takes place all the same.
    #[inline]
    pub fn to_writer(inner: R, mut writer: impl Write + Send + 'static) -> Self {
        let is_begun = writeln!(writer, "{}", AllocationEvent::HEADER).is_ok();
        let recording = Self::new(inner, Sink::Writer(Box::new(writer)));
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
            Sink::Writer(_) => Vec::new(),
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
    /// The writer's error.
    #[inline]
    pub fn flush(&self) -> std::io::Result<()> {
        match &mut *self.sink.lock() {
            Sink::Ring { .. } => Ok(()),
            Sink::Writer(writer) => writer.flush(),
        }
    }

    #[inline]
    fn new(inner: R, sink: Sink) -> Self {
        Self { inner, sink: Mutex::new(sink), begin: Instant::now(), lost: AtomicU64::new(0) }
    }

    /// Writes an event down. The resource inside is not called meanwhile: what it does may be recorded as well.
    #[inline]
    fn record(&self, kind: EventKind, stream: &Stream, figures: (u64, usize, usize), site: Option<Site>) {
        let (address, bytes, alignment) = figures;
        let stream = stream.identity();
        let mut sink = self.sink.lock();
        // Within the lock, so that times rise from event to event.
        let nanoseconds = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let event = AllocationEvent { kind, nanoseconds, address, bytes, alignment, stream, site };
        if !sink.push(event) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
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
            Self::Writer(writer) => writeln!(writer, "{event}").is_ok(),
        }
    }
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource> Resource for Recording<R> {
    #[track_caller]
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let site = Location::caller();
        let result = self.inner.allocate(stream, bytes, alignment);
        let (kind, address) = match &result {
            Ok(pointer) => (EventKind::Allocate, pointer.as_raw()),
            Err(_) => (EventKind::Fail, 0),
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

    upkeep_of_inner!();
}

impl<R: fmt::Debug> fmt::Debug for Recording<R> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Recording").field(&self.inner).finish()
    }
}
