//! Who uses a piece of device memory on which stream, so that safe code may use it on any stream.
//!
//! The rules:
//!
//! 1. A read waits for the last write. A write, and the end of the memory, wait for the last write and for *every* read since.
//! 2. Uses on one stream are ordered by the stream: they cost no driver call.
//! 3. Reads do not wait for each other, on whatever streams they are.
//! 4. To wait for a use on another stream, an event is recorded behind *all* work that is on that stream by then (its tail) and
//!    the waiting stream waits for the event. The host never waits.
//! 5. Each use has a ticket, the number of its stream's uses so far. It is taken *after* the work was put on the stream, and a tail
//!    reads the count *before* it is recorded: so a tail that has counted a ticket comes behind its work, whichever threads the
//!    two happen on. A stream remembers which count it has waited for, and waits for no use twice.
//! 6. A use is noted while the memory is borrowed, so that nobody who would have to wait for it can miss it.
//! 7. Parts of one piece that are borrowed apart are uses of the whole: they wait for each other. They may be put on streams by
//!    several threads at once, though, each between the waits of another and its note; so a note of a part forgets only what its
//!    stream is known to have waited for.
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
    /// The ticket of the last write.
    written: u64,
    /// The ticket of the last use on the writer's stream.
    used: u64,
    /// The reads since the last write on other streams, one for each.
    readers: Vec<Use>,
    /// The writes of other parts on other streams that the last write has not waited for, one for each.
    writers: Vec<Use>,
}

/// The last use on a stream.
#[derive(Debug)]
struct Use {
    stream: Stream,
    ticket: u64,
}

/// What a stream knows of the end of its own work, and of the work of others that it has waited for.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// How many uses were put on the stream.
    issued: AtomicU64,
    /// The event that is recorded behind them whenever another stream must wait.
    event: Mutex<Option<Event>>,
    waited: Mutex<Vec<Waited>>,
}

/// One stream has waited for another up to a count.
#[derive(Debug)]
struct Waited {
    stream: u64,
    count: u64,
}

/// How many other streams a stream remembers to have waited for. One that is forgotten costs a needless wait.
const REMEMBERED_STREAMS: usize = 64;

impl Accesses {
    /// Memory that was allocated on `stream`.
    #[must_use]
    pub fn allocated(stream: &Stream) -> Self {
        let ticket = stream.tail().ticket();
        Self { writer: stream.clone(), written: ticket, used: ticket, readers: Vec::new(), writers: Vec::new() }
    }

    /// Has `stream` wait for what a read must wait for.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns for an event. The read must not take place then.
    pub fn before_read(&self, stream: &Stream) -> Result<()> {
        wait(stream, &self.writer, self.written)?;
        wait_for_all(stream, &self.writers)
    }

    /// Notes a read that was put on `stream`.
    pub fn after_read(&mut self, stream: &Stream) {
        let ticket = stream.tail().ticket();
        if self.writer == *stream {
            self.used = ticket;
        } else {
            note(&mut self.readers, stream, ticket);
        }
    }

    /// Has `stream` wait for what a write, or the end of the memory, must wait for.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns for an event. The write must not take place then.
    pub fn before_write(&self, stream: &Stream) -> Result<()> {
        wait(stream, &self.writer, self.used)?;
        wait_for_all(stream, &self.readers)?;
        wait_for_all(stream, &self.writers)
    }

    /// Notes a write that was put on `stream` while the whole memory was borrowed exclusively.
    pub fn after_write(&mut self, stream: &Stream) {
        let ticket = stream.tail().ticket();
        if self.writer != *stream {
            self.writer = stream.clone();
        }
        self.written = ticket;
        self.used = ticket;
        self.readers.clear();
        self.writers.clear();
    }

    /// Notes a write of a part that was put on `stream` while other parts were borrowed by others.
    pub fn after_partial_write(&mut self, stream: &Stream) {
        if self.writer != *stream {
            let before = std::mem::replace(&mut self.writer, stream.clone());
            note(&mut self.writers, &before, self.used);
        }
        // Before the ticket is taken: a tail that has counted it is recorded behind those waits then.
        self.forget_waited_for(stream);
        let ticket = stream.tail().ticket();
        self.written = ticket;
        self.used = ticket;
    }

    /// The streams that the memory was last written on: a read waits for these.
    pub fn writers(&self) -> impl Iterator<Item = &Stream> {
        std::iter::once(&self.writer).chain(self.writers.iter().map(|write| &write.stream))
    }

    /// The streams that the memory was last used on: a write waits for these. One may come twice.
    pub fn users(&self) -> impl Iterator<Item = &Stream> {
        self.writers().chain(self.readers.iter().map(|read| &read.stream))
    }

    /// Waits on the host until every use is done.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; every stream is waited for all the same.
    pub fn synchronize(&self) -> Result<()> {
        self.users().map(Stream::synchronize).fold(Ok(()), Result::and)
    }

    /// Drops the uses that come before all work that is on `stream` from now on: who waits for that waits for them as well.
    fn forget_waited_for(&mut self, stream: &Stream) {
        let is_ahead = |other: &Use| other.stream != *stream && !has_waited(stream, &other.stream, other.ticket);
        self.readers.retain(is_ahead);
        self.writers.retain(is_ahead);
    }
}

impl Tail {
    /// The ticket of a use that was just put on the stream.
    fn ticket(&self) -> u64 {
        self.issued.fetch_add(1, Ordering::Release) + 1
    }

    /// Has `waiting` wait for all work that is on `stream`, whose tail this is, and returns how many uses that covers.
    fn pass(&self, stream: &Stream, waiting: &Stream) -> Result<u64> {
        let mut event = self.event.lock();
        let event = match &mut *event {
            Some(event) => event,
            none => none.insert(Event::new(stream.context(), tail_flags())?),
        };
        let count = self.issued.load(Ordering::Acquire);
        event.record(stream)?;
        waiting.wait_event(event)?;
        Ok(count)
    }
}

/// Makes the use with this ticket the last one on its stream.
fn note(uses: &mut Vec<Use>, stream: &Stream, ticket: u64) {
    match uses.iter_mut().find(|known| known.stream == *stream) {
        Some(known) => known.ticket = ticket,
        None => uses.push(Use { stream: stream.clone(), ticket }),
    }
}

fn wait_for_all(waiting: &Stream, uses: &[Use]) -> Result<()> {
    uses.iter().try_for_each(|other| wait(waiting, &other.stream, other.ticket))
}

/// Whether `waiting` is known to have waited for the use of `stream` with this ticket.
fn has_waited(waiting: &Stream, stream: &Stream, ticket: u64) -> bool {
    let waited = waiting.tail().waited.lock();
    waited.iter().any(|known| known.stream == stream.identity() && known.count >= ticket)
}

/// Has `waiting` wait for the use of `stream` with this ticket, unless it has done so.
fn wait(waiting: &Stream, stream: &Stream, ticket: u64) -> Result<()> {
    if waiting == stream {
        return Ok(());
    }
    let mut waited = waiting.tail().waited.lock();
    let known = waited.iter().position(|known| known.stream == stream.identity());
    if known.is_some_and(|index| waited[index].count >= ticket) {
        return Ok(());
    }
    let count = stream.tail().pass(stream, waiting)?;
    match known {
        Some(index) => waited[index].count = count,
        None => {
            if waited.len() == REMEMBERED_STREAMS {
                waited.remove(0);
            }
            waited.push(Waited { stream: stream.identity(), count });
        }
    }
    Ok(())
}

fn tail_flags() -> EventFlags {
    EventFlags::from_bits_retain(CUevent_flags::CU_EVENT_DISABLE_TIMING.0)
}
