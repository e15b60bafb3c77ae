//! The uses of one piece of memory, in one world: that of work that runs, or that of work which one capture takes down.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::tail::wait;
use crate::lock::Mutex;
use crate::{Result, Stream};

/// The uses that a later use may have to wait for.
#[derive(Debug)]
pub(crate) struct History {
    /// The stream of the last write of the whole. The allocation counts as the first.
    writer: Stream,
    /// How many tails that stream had when the last write, of the whole or a part, was put there.
    written: AtomicU64,
    /// The same for the last read there.
    read: AtomicU64,
    /// The identity of the stream whose reads wait for nothing: the writer's, or none (0) if parts were written on others.
    reads_freely: AtomicU64,
    /// The identity of the stream whose writes wait for nothing: the writer's, or none (0) if there were uses on others.
    writes_freely: AtomicU64,
    /// Whether whoever is about to write the whole has really waited, and not only in a graph of other code.
    has_waited: AtomicBool,
    /// The uses on other streams since the last write of the whole: the last read and the last write of a part on each.
    others: Mutex<Vec<Use>>,
}

#[derive(Debug)]
pub(crate) struct Use {
    stream: Stream,
    is_write: bool,
    /// How many tails the stream had when the use was put there.
    tails: u64,
}

/// The uses on other streams, for whom holds the lock.
pub(crate) type Others<'a> = MutexGuard<'a, Vec<Use>>;

/// The identity of no stream.
const NOBODY: u64 = 0;

impl History {
    /// Memory that was allocated on `stream`.
    #[inline]
    pub(super) fn allocated(stream: &Stream) -> Self {
        Self::since(stream, stream.tail().tails(), stream.free_identity())
    }

    /// Memory that was written when `stream` had this many tails.
    #[inline]
    pub(crate) fn since(stream: &Stream, tails: u64, free: u64) -> Self {
        Self {
            writer: stream.clone(),
            written: AtomicU64::new(tails),
            read: AtomicU64::new(0),
            reads_freely: AtomicU64::new(free),
            writes_freely: AtomicU64::new(free),
            has_waited: AtomicBool::new(true),
            others: Mutex::default(),
        }
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

    /// Whether a read that was put on `stream` just now is noted already.
    #[inline]
    pub(super) fn has_noted_read(&self, stream: &Stream) -> bool {
        self.writer == *stream && stream.tail().tails() <= self.read.load(Ordering::Relaxed)
    }

    /// The same for a write.
    #[inline]
    pub(super) fn has_noted_write(&self, stream: &Stream) -> bool {
        self.writer == *stream && stream.tail().tails() <= self.written.load(Ordering::Relaxed)
    }

    /// Notes a write of the whole, which is borrowed exclusively, on the stream that writes freely.
    #[inline]
    pub(super) fn note_free_write(&mut self, stream: &Stream) {
        *self.written.get_mut() = stream.tail().tails();
    }

    #[inline]
    pub(crate) fn others(&self) -> Others<'_> {
        self.others.lock()
    }

    /// Has `stream` wait for what a read, or a write, must wait for.
    #[inline]
    pub(crate) fn before(&self, others: &mut Vec<Use>, stream: &Stream, is_write: bool) -> Result<()> {
        if is_write { self.wait_for_all(others, stream) } else { self.wait_for_writes(others, stream) }
    }

    /// Notes a read, or a write of a part or the whole, that was put on `stream`.
    #[inline]
    pub(crate) fn after(&self, others: &mut Vec<Use>, stream: &Stream, is_write: bool) {
        if is_write { self.note_write(others, stream) } else { self.note_read(others, stream) }
    }

    #[inline]
    fn wait_for_writes(&self, others: &[Use], stream: &Stream) -> Result<()> {
        wait(stream, &self.writer, self.written.load(Ordering::Relaxed))?;
        others.iter().filter(|other| other.is_write).try_for_each(|write| write.wait(stream).map(drop))
    }

    /// The lock is held: another thread may forget the others once the writer's stream has waited for them, and whoever sees them
    /// forgotten must wait for that stream as it is then.
    #[inline]
    fn wait_for_all(&self, others: &mut Vec<Use>, stream: &Stream) -> Result<()> {
        let (written, read) = (self.written.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed));
        let mut has_waited = wait(stream, &self.writer, written.max(read))?;
        for other in others.iter() {
            has_waited &= other.wait(stream)?;
        }
        self.has_waited.store(has_waited, Ordering::Relaxed);
        if self.writer == *stream && has_waited {
            // Whoever waits for what is on this stream from now on waits for the others as well.
            self.written.fetch_max(stream.tail().tails(), Ordering::Relaxed);
            others.clear();
            self.reads_freely.store(stream.free_identity(), Ordering::Release);
            self.writes_freely.store(stream.free_identity(), Ordering::Relaxed);
        }
        Ok(())
    }

    #[inline]
    fn note_read(&self, others: &mut Vec<Use>, stream: &Stream) {
        let tails = stream.tail().tails();
        if self.writer == *stream {
            self.read.fetch_max(tails, Ordering::Relaxed);
            return;
        }
        match others.iter_mut().find(|other| !other.is_write && other.stream == *stream) {
            Some(read) => read.tails = read.tails.max(tails),
            None => others.push(Use { stream: stream.clone(), is_write: false, tails }),
        }
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    #[inline]
    fn note_write(&self, others: &mut Vec<Use>, stream: &Stream) {
        if self.writer == *stream {
            self.written.fetch_max(stream.tail().tails(), Ordering::Relaxed);
            return;
        }
        others.retain(|other| other.stream != *stream && !stream.tail().has_waited(&other.stream, other.tails));
        // Only now: a tail that is not counted yet comes behind all waits for what was forgotten.
        let tails = stream.tail().tails();
        others.push(Use { stream: stream.clone(), is_write: true, tails });
        self.reads_freely.store(NOBODY, Ordering::Relaxed);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    /// Notes a write of the whole, which is borrowed exclusively, on any stream.
    #[inline]
    pub(super) fn note_whole_write(&mut self, stream: &Stream) {
        if self.writer != *stream && *self.has_waited.get_mut() {
            // Every use is forgotten: the stream has waited for them and is the writer's now.
            *self = Self::allocated(stream);
        } else {
            self.note_write(&mut self.others.lock(), stream);
        }
    }

    /// The streams that the memory was last used on, or written on.
    #[inline]
    pub(super) fn streams(&self, only_writes: bool) -> Vec<Stream> {
        let others = self.others();
        let others = others.iter().filter(|other| other.is_write || !only_writes).map(|other| &other.stream);
        std::iter::once(&self.writer).chain(others).cloned().collect()
    }

    /// The history, to be kept elsewhere from now on. Here no use is free any more, and none is noted.
    #[inline]
    pub(super) fn leave(&self, others: &mut Vec<Use>) -> Self {
        self.reads_freely.store(NOBODY, Ordering::Relaxed);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
        let moved = Self::since(&self.writer, self.written.swap(0, Ordering::Relaxed), NOBODY);
        moved.read.store(self.read.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        *moved.others() = std::mem::take(others);
        moved
    }
}

impl Use {
    #[inline]
    fn wait(&self, waiting: &Stream) -> Result<bool> {
        wait(waiting, &self.stream, self.tails)
    }
}
