//! Who uses a piece of device memory on which stream, so that safe code may use it on any stream.
//!
//! The rules:
//!
//! 1. A read waits for the last write. A write, and the end of the memory, wait for the last write and for *every* read since.
//! 2. Uses on one stream are ordered by the stream: they cost no driver call, no lock and no atomic write.
//! 3. Reads do not wait for each other, on whatever streams they are.
//! 4. To wait for a use on another stream, an event is recorded behind *all* work that is on that stream by then (its tail) and
//!    the waiting stream waits for the event. The host never waits.
//! 5. The tails of a stream are counted. A use notes the count *after* its work was put on the stream, and a tail counts itself
//!    *before* it is recorded: so a tail that a use has not seen counted comes behind its work, whichever threads the two happen on,
//!    since the driver puts the one and the other on the stream in turn. A stream remembers up to which tail of another it has
//!    waited, and waits for no use twice.
//! 6. A use is noted while the memory is borrowed, so that nobody who would have to wait for it can miss it. Writers borrow it
//!    exclusively. Readers share it, and change nothing but `read` and `readers`: the last write stays what it is meanwhile, and is
//!    read without a lock.
//!
//! Streams are told apart by their identity and never by their handle, which drivers reuse.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUevent_flags;

use crate::lock::Mutex;
use crate::{Event, EventFlags, Result, Stream};

/// The uses of one piece of memory that a later use may have to wait for.
///
/// [`Accesses::before_read`] and [`Accesses::before_write`] come before work is put on a stream, and [`Accesses::after_read`] and
/// [`Accesses::after_write`] after it, all while the memory is borrowed accordingly.
#[derive(Debug)]
pub struct Accesses {
    /// The stream of the last write. The allocation counts as the first.
    writer: Stream,
    /// How many tails the writer's stream had when the write was put there.
    written: u64,
    /// The same for the last read on the writer's stream.
    read: AtomicU64,
    /// The reads since the last write on other streams, one for each.
    readers: Mutex<Vec<Read>>,
}

#[derive(Debug)]
struct Read {
    stream: Stream,
    /// How many tails the stream had when the read was put there.
    tails: u64,
}

/// What a stream knows of the end of its own work, and of the work of others that it has waited for.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// How many tails of the stream there are.
    count: AtomicU64,
    /// The event that is recorded behind its work whenever another stream must wait.
    event: Mutex<Option<Event>>,
    waited: Mutex<Vec<Waited>>,
}

/// One stream has waited for another up to a tail.
#[derive(Debug)]
struct Waited {
    stream: u64,
    tail: u64,
}

/// How many other streams a stream remembers to have waited for. One that is forgotten costs a needless wait.
const REMEMBERED_STREAMS: usize = 64;

impl Accesses {
    /// Memory that was allocated on `stream`.
    #[must_use]
    pub fn allocated(stream: &Stream) -> Self {
        let written = stream.tail().count();
        Self { writer: stream.clone(), written, read: AtomicU64::new(0), readers: Mutex::default() }
    }

    /// Has `stream` wait for what a read must wait for.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is of another driver; whatever the driver returns for an event. The read must not take place
    /// then.
    #[inline]
    pub fn before_read(&self, stream: &Stream) -> Result<()> {
        if self.writer == *stream { Ok(()) } else { wait(stream, &self.writer, self.written) }
    }

    /// Notes a read that was put on `stream`.
    #[inline]
    pub fn after_read(&self, stream: &Stream) {
        let tails = stream.tail().count();
        // The borrow orders this with whoever writes later. Another reader may note more meanwhile, and never less.
        if self.writer != *stream || tails > self.read.load(Ordering::Relaxed) {
            self.note_read(stream, tails);
        }
    }

    /// Has `stream` wait for what a write, or the end of the memory, must wait for.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The write must not take place then.
    #[inline]
    pub fn before_write(&mut self, stream: &Stream) -> Result<()> {
        let is_only_user = self.writer == *stream && self.readers.get_mut().is_empty();
        if is_only_user { Ok(()) } else { self.take_over(stream) }
    }

    /// Notes a write that was put on `stream`.
    #[inline]
    pub fn after_write(&mut self, stream: &Stream) {
        if self.writer != *stream {
            self.forget_all_but(stream);
        }
        self.written = stream.tail().count();
    }

    /// Waits on the host until every use is done.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; every stream is waited for all the same.
    pub fn synchronize(&self) -> Result<()> {
        let readers: Vec<_> = self.readers.lock().iter().map(|read| read.stream.clone()).collect();
        let streams = std::iter::once(&self.writer).chain(&readers);
        streams.map(Stream::synchronize).fold(Ok(()), Result::and)
    }

    #[cold]
    fn note_read(&self, stream: &Stream, tails: u64) {
        if self.writer == *stream {
            self.read.fetch_max(tails, Ordering::Relaxed);
            return;
        }
        let mut readers = self.readers.lock();
        match readers.iter_mut().find(|read| read.stream == *stream) {
            Some(read) => read.tails = read.tails.max(tails),
            None => readers.push(Read { stream: stream.clone(), tails }),
        }
    }

    /// Has `stream` wait for every use. What comes on it comes behind them all, so that nothing else needs to be remembered.
    #[cold]
    fn take_over(&mut self, stream: &Stream) -> Result<()> {
        wait(stream, &self.writer, self.written.max(*self.read.get_mut()))?;
        self.readers.get_mut().iter().try_for_each(|read| wait(stream, &read.stream, read.tails))?;
        self.forget_all_but(stream);
        Ok(())
    }

    #[cold]
    fn forget_all_but(&mut self, stream: &Stream) {
        *self = Self::allocated(stream);
    }
}

impl Tail {
    /// How many tails there are by now: a use that is on the stream already is behind none of those to come.
    #[inline]
    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Has `waiting` wait for all work that is on `stream`, whose tail this is, and returns which tail that is.
    fn pass(&self, stream: &Stream, waiting: &Stream) -> Result<u64> {
        let mut event = self.event.lock();
        let event = match &mut *event {
            Some(event) => event,
            none => none.insert(Event::new(stream.context(), tail_flags())?),
        };
        // A tail that fails leaves a number that no stream has waited for.
        let tail = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        event.record(stream)?;
        waiting.wait_event(event)?;
        Ok(tail)
    }
}

/// Has `waiting` wait for a use of `stream` that saw this many of its tails, unless it has done so.
#[cold]
fn wait(waiting: &Stream, stream: &Stream, tails: u64) -> Result<()> {
    if waiting == stream {
        return Ok(());
    }
    waiting.driver().expect_same(stream.driver(), "memory on a stream")?;
    let mut waited = waiting.tail().waited.lock();
    let known = waited.iter().position(|known| known.stream == stream.identity());
    if known.is_some_and(|index| waited[index].tail > tails) {
        return Ok(());
    }
    let tail = stream.tail().pass(stream, waiting)?;
    match known {
        Some(index) => waited[index].tail = tail,
        None => {
            if waited.len() == REMEMBERED_STREAMS {
                waited.remove(0);
            }
            waited.push(Waited { stream: stream.identity(), tail });
        }
    }
    Ok(())
}

fn tail_flags() -> EventFlags {
    EventFlags::from_bits_retain(CUevent_flags::CU_EVENT_DISABLE_TIMING.0)
}
