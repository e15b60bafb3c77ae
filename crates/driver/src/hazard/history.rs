//! The accesses to one allocation, either by running work or by the work of one capture.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use curium_sys::CUdeviceptr;
use parking_lot::{Mutex, MutexGuard};

use super::lease_lock::FreeAccesses;
use super::sync_point::{Hazard, HazardKind, wait};
use crate::{Result, Stream};

/// The accesses that a later access may have to wait for.
#[derive(Debug)]
pub(crate) struct History {
    /// The stream of the last write of the whole allocation. Allocating counts as the first write.
    writer: Stream,
    /// The number of sync points of that stream when its last write, of the whole or a part, was enqueued.
    written: AtomicU64,
    /// The number of sync points of that stream when its last read was enqueued.
    read: AtomicU64,
    /// The identity of the stream whose reads need no wait: the writer's, or 0 if parts were written on other streams.
    reads_freely: AtomicU64,
    /// The identity of the stream whose writes need no wait: the writer's, or 0 if there were accesses on other
    /// streams.
    writes_freely: AtomicU64,
    /// `true` if the stream of the next write of the whole has waited for all accesses; `false` if that wait is only an
    /// edge in a capture of other code.
    has_waited: AtomicBool,
    /// The accesses on other streams since the last write of the whole: the last read and the last partial write on
    /// each.
    others: Mutex<AccessList>,
    /// The memory, for reports of waits.
    memory: Memory,
}

/// The address and size of memory, for reports. All 0 if it has no address.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    pub(super) address: CUdeviceptr,
    pub(super) bytes: usize,
}

/// An access on a stream other than the writer's.
#[derive(Debug)]
pub(crate) struct Access {
    stream: Stream,
    is_write: bool,
    /// The number of sync points of the stream when the access was enqueued there.
    sync_points: u64,
}

/// A list of accesses that is one null pointer until it has an entry. Most memory is used on one stream only.
#[derive(Debug, Default)]
pub(crate) struct AccessList {
    #[expect(
        clippy::box_collection,
        reason = "a `Vec` is three words, and takes longer to drop"
    )]
    entries: Option<Box<Vec<Access>>>,
}

/// The accesses on other streams, for the holder of the lock.
pub(crate) type Others<'a> = MutexGuard<'a, AccessList>;

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

    /// Creates the history of memory written when `stream` had this many sync points.
    #[inline]
    fn since(stream: &Stream, sync_points: u64, free: u64, memory: Memory) -> Self {
        Self {
            writer: stream.clone(),
            written: AtomicU64::new(sync_points),
            read: AtomicU64::new(0),
            reads_freely: AtomicU64::new(free),
            writes_freely: AtomicU64::new(free),
            has_waited: AtomicBool::new(true),
            others: Mutex::default(),
            memory,
        }
    }

    /// Creates a history of the same memory for a capture whose `root` had this many sync points when the capture
    /// started.
    #[inline]
    pub(super) fn captured_since(&self, root: &Stream, sync_points: u64) -> Self {
        Self::since(root, sync_points, NOBODY, self.memory)
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

    /// Records a write of the whole, which is borrowed exclusively, on the stream whose writes need no wait.
    #[inline]
    pub(super) fn record_free_write(&mut self, stream: &Stream) {
        *self.written.get_mut() = stream.sync_points().count();
    }

    #[inline]
    pub(crate) fn others(&self) -> Others<'_> {
        self.others.lock()
    }

    #[inline]
    pub(crate) fn try_others(&self) -> Option<Others<'_>> {
        self.others.try_lock()
    }

    /// Makes `stream` wait for conflicting accesses.
    #[inline]
    pub(super) fn order(&mut self, stream: &Stream, is_write: bool) -> Result<()> {
        if self.writer == *stream && self.others.get_mut().is_empty() {
            return Ok(());
        }
        self.before(&mut self.others(), stream, is_write)
    }

    /// Records a read, or a write, enqueued on `stream`.
    #[inline]
    pub(super) fn record(&mut self, stream: &Stream, is_write: bool) {
        if self.writer == *stream {
            return self.record_past(stream, stream.sync_points().count(), is_write);
        }
        self.after(&mut self.others(), stream, is_write);
    }

    /// Records an access that was enqueued when `stream` had this many sync points. It may have had more since.
    #[inline]
    pub(super) fn record_past(&mut self, stream: &Stream, sync_points: u64, is_write: bool) {
        if self.writer == *stream {
            let last = if is_write {
                &mut self.written
            } else {
                &mut self.read
            };
            *last.get_mut() = (*last.get_mut()).max(sync_points);
            return;
        }
        let others = self.others.get_mut();
        match others
            .iter_mut()
            .find(|other| other.is_write == is_write && other.stream == *stream)
        {
            Some(access) => access.sync_points = access.sync_points.max(sync_points),
            None => others.push(Access {
                stream: stream.clone(),
                is_write,
                sync_points,
            }),
        }
        *self.writes_freely.get_mut() = NOBODY;
        if is_write {
            *self.reads_freely.get_mut() = NOBODY;
        }
    }

    /// Allows no access without a lock until one has been ordered.
    #[inline]
    pub(super) fn order_next(&self) {
        self.reads_freely.store(NOBODY, Ordering::Relaxed);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    /// Records accesses on the writer's stream, enqueued when it had these numbers of sync points.
    #[inline]
    pub(super) fn record_on_owner_stream(&mut self, read: u64, written: u64) {
        let last_read = self.read.get_mut();
        let last_written = self.written.get_mut();
        *last_read = (*last_read).max(read);
        *last_written = (*last_written).max(written);
    }

    /// Returns the accesses on the writer's stream that need no wait.
    #[inline]
    pub(super) fn free_on_owner_stream(&mut self) -> FreeAccesses {
        let identity = self.writer.free_identity();
        if identity == NOBODY {
            FreeAccesses::None
        } else if self.others.get_mut().is_empty() {
            FreeAccesses::All
        } else if *self.reads_freely.get_mut() == identity {
            FreeAccesses::Reads
        } else {
            FreeAccesses::None
        }
    }

    /// Makes `stream` wait for the accesses that a read, or a write, must wait for.
    #[inline]
    pub(crate) fn before(
        &self,
        others: &mut AccessList,
        stream: &Stream,
        is_write: bool,
    ) -> Result<()> {
        if is_write {
            self.wait_for_all(others, stream)
        } else {
            self.wait_for_writes(others, stream)
        }
    }

    /// Records a read, or a write of a part or the whole, enqueued on `stream`.
    #[inline]
    pub(crate) fn after(&self, others: &mut AccessList, stream: &Stream, is_write: bool) {
        if is_write {
            self.record_write(others, stream);
        } else {
            self.record_read(others, stream);
        }
    }

    #[inline]
    fn wait_for_writes(&self, others: &[Access], stream: &Stream) -> Result<()> {
        let hazard = self.hazard(HazardKind::ReadAfterWrite);
        let mut has_waited = wait(
            stream,
            &self.writer,
            self.written.load(Ordering::Relaxed),
            hazard,
        )?;
        for write in others.iter().filter(|other| other.is_write) {
            has_waited &= write.wait(stream, hazard)?;
        }
        if self.writer == *stream && has_waited {
            // The writes stay in the list: readers on other streams must wait for them, but not for the work on this
            // stream.
            self.reads_freely
                .store(stream.free_identity(), Ordering::Release);
        }
        Ok(())
    }

    /// Clears the list once the writer's stream has waited for it. The caller holds the lock, so a thread that finds
    /// the list empty waits for that stream in its current state.
    #[inline]
    fn wait_for_all(&self, others: &mut AccessList, stream: &Stream) -> Result<()> {
        let written = self.written.load(Ordering::Relaxed);
        let read = self.read.load(Ordering::Relaxed);
        let mut has_waited = wait(
            stream,
            &self.writer,
            written.max(read),
            self.hazard(HazardKind::before_write(written >= read)),
        )?;
        for other in others.iter() {
            let hazard = self.hazard(HazardKind::before_write(other.is_write));
            has_waited &= other.wait(stream, hazard)?;
        }
        self.has_waited.store(has_waited, Ordering::Relaxed);
        if self.writer == *stream && has_waited {
            // A stream that waits for this one from now on waits for the others too.
            self.written
                .fetch_max(stream.sync_points().count(), Ordering::Relaxed);
            others.clear();
            self.reads_freely
                .store(stream.free_identity(), Ordering::Release);
            self.writes_freely
                .store(stream.free_identity(), Ordering::Relaxed);
        }
        Ok(())
    }

    #[inline]
    fn record_read(&self, others: &mut AccessList, stream: &Stream) {
        let sync_points = stream.sync_points().count();
        if self.writer == *stream {
            self.read.fetch_max(sync_points, Ordering::Relaxed);
            return;
        }
        match others
            .iter_mut()
            .find(|other| !other.is_write && other.stream == *stream)
        {
            Some(read) => read.sync_points = read.sync_points.max(sync_points),
            None => others.push(Access {
                stream: stream.clone(),
                is_write: false,
                sync_points,
            }),
        }
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    #[inline]
    fn record_write(&self, others: &mut AccessList, stream: &Stream) {
        if self.writer == *stream {
            self.written
                .fetch_max(stream.sync_points().count(), Ordering::Relaxed);
            return;
        }
        others.retain(|other| {
            other.stream != *stream
                && !stream
                    .sync_points()
                    .has_waited(&other.stream, other.sync_points)
        });
        // Reads the count after pruning, so that later sync points cover the pruned accesses.
        let sync_points = stream.sync_points().count();
        others.push(Access {
            stream: stream.clone(),
            is_write: true,
            sync_points,
        });
        self.reads_freely.store(NOBODY, Ordering::Relaxed);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    /// Records a write of the whole, which is borrowed exclusively, on any stream. Returns the previous writer's stream
    /// if it changes.
    #[inline]
    pub(super) fn record_whole_write(&mut self, stream: &Stream) -> Option<Stream> {
        if self.writer != *stream && *self.has_waited.get_mut() {
            // Removes every access: the stream has waited for them and is the new writer's.
            let new = Self::allocated(stream, self.memory);
            Some(std::mem::replace(self, new).writer)
        } else {
            self.record_write(&mut self.others.lock(), stream);
            None
        }
    }

    /// Returns the streams of the last accesses, or of the last writes.
    #[inline]
    pub(super) fn streams(&self, only_writes: bool) -> Vec<Stream> {
        let others = self.others();
        let others = others
            .iter()
            .filter(|other| other.is_write || !only_writes)
            .map(|other| &other.stream);
        std::iter::once(&self.writer)
            .chain(others)
            .cloned()
            .collect()
    }

    /// Moves the history out. The remaining history allows no access without a lock and records none.
    #[inline]
    pub(super) fn leave(&self, others: &mut AccessList) -> Self {
        self.order_next();
        let moved = Self::since(
            &self.writer,
            self.written.swap(0, Ordering::Relaxed),
            NOBODY,
            self.memory,
        );
        moved
            .read
            .store(self.read.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        *moved.others() = std::mem::take(others);
        moved
    }

    /// Takes the history out.
    #[inline]
    pub(super) fn take(&mut self) -> Self {
        let empty = Self::allocated(&self.writer, self.memory);
        std::mem::replace(self, empty)
    }

    #[inline]
    fn hazard(&self, kind: HazardKind) -> Option<Hazard> {
        Some(Hazard {
            kind,
            memory: self.memory,
        })
    }
}

impl AccessList {
    fn push(&mut self, access: Access) {
        self.entries.get_or_insert_default().push(access);
    }

    fn retain(&mut self, keep: impl FnMut(&Access) -> bool) {
        if let Some(entries) = &mut self.entries {
            entries.retain(keep);
        }
    }

    #[inline]
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

impl DerefMut for AccessList {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Access] {
        self.entries
            .as_deref_mut()
            .map_or(&mut [], Vec::as_mut_slice)
    }
}

impl Access {
    #[inline]
    fn wait(&self, waiting: &Stream, hazard: Option<Hazard>) -> Result<bool> {
        wait(waiting, &self.stream, self.sync_points, hazard)
    }
}
