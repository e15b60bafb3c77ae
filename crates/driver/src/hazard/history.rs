//! The accesses to one allocation, either by running work or by the work of one capture.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::lease_lock::{FreeAccesses, Log};
use super::sync_point::{StreamPoint, wait};
use crate::stream::hazard_wait::{Hazard, Memory};
use crate::{Result, Stream};

/// The accesses that a later access may have to wait for, except those on other streams than the
/// writer's: they are in an [`AccessList`], which the caller has locked.
#[derive(Debug)]
pub(super) struct History {
    /// The *owner stream*: that of the last write of the whole allocation. Allocating counts as the
    /// first write.
    writer: Stream,
    /// The number of sync points of that stream when its last write, of the whole or a part, was
    /// enqueued.
    written: AtomicU64,
    /// The number of sync points of that stream when its last read was enqueued.
    read: AtomicU64,
    /// The identity of the stream whose reads need no wait: the writer's, or 0 if parts were
    /// written on other streams.
    reads_freely: AtomicU64,
    /// The identity of the stream whose writes need no wait: the writer's, or 0 if there were
    /// accesses on other streams.
    writes_freely: AtomicU64,
    /// `true` if the stream of the next write of the whole has waited for all accesses; `false` if
    /// that wait is only an edge in a capture of other code.
    has_waited: AtomicBool,
    /// The memory, for reports of waits.
    memory: Memory,
}

/// An access on a stream other than the writer's.
#[derive(Debug)]
pub(super) struct Access {
    point: StreamPoint,
    is_write: bool,
}

/// The accesses on other streams since the last write of the whole: the last read and the last
/// partial write on each. The list is one null pointer until it has an entry, since most memory is
/// used on one stream only.
#[derive(Debug, Default)]
pub(super) struct AccessList {
    #[expect(
        clippy::box_collection,
        reason = "a `Vec` is three words, and takes longer to drop"
    )]
    entries: Option<Box<Vec<Access>>>,
}

/// The identity that no stream has.
const NOBODY: u64 = 0;

impl History {
    /// Creates the history of memory allocated on `stream`.
    #[inline]
    pub(super) fn allocated(stream: &Stream, memory: Memory) -> Self {
        Self::since(
            stream,
            stream.sync_points().count(),
            stream.free_identity(),
            memory,
        )
    }

    #[inline]
    fn since(stream: &Stream, sync_points: u64, free: u64, memory: Memory) -> Self {
        Self {
            writer: stream.clone(),
            written: AtomicU64::new(sync_points),
            read: AtomicU64::new(0),
            reads_freely: AtomicU64::new(free),
            writes_freely: AtomicU64::new(free),
            has_waited: AtomicBool::new(true),
            memory,
        }
    }

    /// Creates a history of the same memory for a capture whose root had this many sync points when
    /// the capture started.
    pub(super) fn captured_since(&self, root: &StreamPoint) -> Self {
        Self::since(&root.stream, root.sync_points, NOBODY, self.memory)
    }

    #[inline]
    pub(super) fn describe(&mut self, memory: Memory) {
        self.memory = memory;
    }

    #[inline]
    pub(super) fn writer(&self) -> &Stream {
        &self.writer
    }

    #[inline]
    pub(super) fn reads_freely_on(&self, stream: &Stream) -> bool {
        self.reads_freely.load(Ordering::Relaxed) == stream.identity()
    }

    #[inline]
    pub(super) fn writes_freely_on(&self, stream: &Stream) -> bool {
        self.writes_freely.load(Ordering::Relaxed) == stream.identity()
    }

    /// Allows no access without a lock until one has been ordered.
    #[inline]
    pub(super) fn order_next(&self) {
        self.reads_freely.store(NOBODY, Ordering::Relaxed);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    /// Makes `stream` wait for the accesses that a read, or a write, must wait for.
    pub(super) fn before(
        &self,
        others: &mut AccessList,
        stream: &Stream,
        is_write: bool,
    ) -> Result<()> {
        let written = self.written.load(Ordering::Relaxed);
        let read = self.read.load(Ordering::Relaxed);
        let last = if is_write { written.max(read) } else { written };
        let hazard = Hazard::between(written >= read, is_write, self.memory);
        let mut has_waited = wait(stream, &self.writer, last, Some(hazard))?;
        for other in others.iter().filter(|other| is_write || other.is_write) {
            let hazard = Hazard::between(other.is_write, is_write, self.memory);
            has_waited &= other.point.wait(stream, Some(hazard))?;
        }
        if is_write {
            self.has_waited.store(has_waited, Ordering::Relaxed);
        }
        if self.writer == *stream && has_waited {
            self.free_on_owner(others, is_write);
        }
        Ok(())
    }

    /// Lets reads, or all accesses, on the owner stream take place without a wait: it has waited
    /// for the others.
    fn free_on_owner(&self, others: &mut AccessList, is_write: bool) {
        let identity = self.writer.free_identity();
        if is_write && !others.is_empty() {
            // A stream that waits for this one from now on waits for the others too. The caller
            // holds the lock, so a thread that finds the list empty waits for this stream in its
            // current state.
            self.record_on_owner(&self.writer, true);
            others.clear();
        }
        // Writes on other streams stay in the list after a read: readers there must wait for them,
        // but not for the work on this stream.
        self.reads_freely.store(identity, Ordering::Release);
        if is_write {
            self.writes_freely.store(identity, Ordering::Relaxed);
        }
    }

    /// Returns `true` if a read just enqueued on `stream` needs no further record.
    #[inline]
    pub(super) fn has_recorded_read(&self, stream: &Stream) -> bool {
        self.writer == *stream && stream.sync_points().count() <= self.read.load(Ordering::Relaxed)
    }

    /// Returns `true` if a write just enqueued on `stream` needs no further record.
    #[inline]
    pub(super) fn has_recorded_write(&self, stream: &Stream) -> bool {
        self.writer == *stream
            && stream.sync_points().count() <= self.written.load(Ordering::Relaxed)
    }

    /// Records a write of the whole, which is borrowed exclusively, on the stream whose writes need
    /// no wait.
    #[inline]
    pub(super) fn record_free_write(&mut self, stream: &Stream) {
        *self.written.get_mut() = stream.sync_points().count();
    }

    /// Records a write of the whole, which is borrowed exclusively, on any stream. Returns the
    /// previous writer's stream if it changes.
    pub(super) fn record_whole_write(
        &mut self,
        others: &mut AccessList,
        stream: &Stream,
    ) -> Option<Stream> {
        if self.writer == *stream || !*self.has_waited.get_mut() {
            self.record(others, stream, true);
            return None;
        }
        // The stream has waited for every access and is the new writer's.
        others.clear();
        let new = Self::allocated(stream, self.memory);
        Some(std::mem::replace(self, new).writer)
    }

    /// Records a read, or a write of a part or the whole, that was just enqueued on `stream`.
    pub(super) fn record(&self, others: &mut AccessList, stream: &Stream, is_write: bool) {
        if is_write && self.writer != *stream {
            others.retain(|other| {
                other.point.stream != *stream && !stream.sync_points().has_waited(&other.point)
            });
        }
        // Reads the count after pruning, so that later sync points cover the pruned accesses.
        self.record_past(others, stream, stream.sync_points().count(), is_write);
    }

    /// Records an access that was just enqueued on `stream`, the owner stream.
    #[inline]
    pub(super) fn record_on_owner(&self, stream: &Stream, is_write: bool) {
        self.raise(stream.sync_points().count(), is_write);
    }

    /// Sets the number of the last read, or write, on the owner stream, unless it is higher.
    #[inline]
    fn raise(&self, sync_points: u64, is_write: bool) {
        let last = if is_write { &self.written } else { &self.read };
        if last.load(Ordering::Relaxed) < sync_points {
            last.fetch_max(sync_points, Ordering::Relaxed);
        }
    }

    /// Records an access that was enqueued when `stream` had this many sync points. It may have had
    /// more since.
    fn record_past(
        &self,
        others: &mut AccessList,
        stream: &Stream,
        sync_points: u64,
        is_write: bool,
    ) {
        if self.writer == *stream {
            return self.raise(sync_points, is_write);
        }
        others.push(stream, sync_points, is_write);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
        if is_write {
            self.reads_freely.store(NOBODY, Ordering::Relaxed);
        }
    }

    /// Returns the streams of the last accesses, or of the last writes.
    pub(super) fn streams(&self, others: &AccessList, only_writes: bool) -> Vec<Stream> {
        let others = others
            .iter()
            .filter(|other| other.is_write || !only_writes)
            .map(|other| &other.point.stream);
        std::iter::once(&self.writer)
            .chain(others)
            .cloned()
            .collect()
    }

    /// Moves the history out. The remaining history allows no access without a lock and records
    /// none.
    pub(super) fn leave(&self) -> Self {
        self.order_next();
        let written = self.written.swap(0, Ordering::Relaxed);
        let mut moved = Self::since(&self.writer, written, NOBODY, self.memory);
        *moved.read.get_mut() = self.read.swap(0, Ordering::Relaxed);
        moved
    }
}

impl Log for History {
    type Locked = AccessList;
    type Launches = StreamPoint;

    fn record_launches(&self, others: &mut AccessList, launches: &StreamPoint, is_write: bool) {
        self.record_past(others, &launches.stream, launches.sync_points, is_write);
    }

    fn free_accesses(&self, others: &AccessList) -> FreeAccesses {
        let identity = self.writer.free_identity();
        if identity == NOBODY {
            FreeAccesses::None
        } else if others.is_empty() {
            FreeAccesses::All
        } else if self.reads_freely.load(Ordering::Relaxed) == identity {
            FreeAccesses::Reads
        } else {
            FreeAccesses::None
        }
    }
}

impl AccessList {
    /// Adds an access, or replaces the last one of the same kind on the stream.
    fn push(&mut self, stream: &Stream, sync_points: u64, is_write: bool) {
        let entries = self.entries.get_or_insert_default();
        let last = entries
            .iter_mut()
            .find(|other| other.is_write == is_write && other.point.stream == *stream);
        if let Some(last) = last {
            last.point.sync_points = last.point.sync_points.max(sync_points);
        } else {
            let stream = stream.clone();
            entries.push(Access {
                point: StreamPoint {
                    stream,
                    sync_points,
                },
                is_write,
            });
        }
    }

    fn retain(&mut self, keep: impl FnMut(&Access) -> bool) {
        if let Some(entries) = &mut self.entries {
            entries.retain(keep);
        }
    }

    fn clear(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.clear();
        }
    }
}

impl Deref for AccessList {
    type Target = [Access];

    #[inline]
    fn deref(&self) -> &[Access] {
        self.entries.as_deref().map_or(&[], Vec::as_slice)
    }
}
