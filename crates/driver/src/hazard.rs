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
//! 6. A use is noted while the memory is borrowed, so that nobody who would have to wait for it can miss it. A write of the whole
//!    borrows it exclusively, so that the stream of the last such write can be read without a lock.
//! 7. Parts of one piece that are borrowed apart are uses of the whole: they wait for each other. They may be put on streams by
//!    several threads at once, though, each between the waits of another and its note; so a note of a part forgets only what its
//!    stream is known to have waited for.
//! 8. A capture takes work down instead of running it, so that an event of the one cannot stand for work of the other: recorded inside
//!    and waited for outside, or the other way round, it breaks the capture. Where a use and what waits for it are not in the same
//!    capture, the wait is an error that says so, before an event is touched, unless the use is seen to be done: then nobody waits.
//!    Whether streams are being captured is asked only where one must wait for another.
//!
//! Streams are told apart by their identity and never by their handle, which drivers reuse.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUevent_flags;

use crate::capture_mode::relaxed;
use crate::lock::Mutex;
use crate::{Error, Event, EventFlags, Result, Stream};

/// The uses of one piece of memory that a later use may have to wait for.
///
/// [`Accesses::before_read`] and [`Accesses::before_write`] come before work is put on a stream, and [`Accesses::after_read`],
/// [`Accesses::after_write`] and [`Accesses::after_partial_write`] after it, all while the memory is borrowed accordingly. The
/// borrows order what different threads do with the same memory, so that no use needs more than a relaxed look at the last one.
#[derive(Debug)]
pub struct Accesses {
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
    /// The uses on other streams since the last write of the whole: the last read and the last write of a part on each.
    others: Mutex<Vec<Use>>,
}

#[derive(Debug)]
struct Use {
    stream: Stream,
    is_write: bool,
    /// How many tails the stream had when the use was put there.
    tails: u64,
}

/// What a stream knows of the end of its own work, and of the work of others that it has waited for.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// How many tails of the stream there are.
    tails: AtomicU64,
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

/// What errors call the waits for other uses.
const OPERATION: &str = "memory on a stream";

/// The identity of no stream.
const NOBODY: u64 = 0;

impl Accesses {
    /// Memory that was allocated on `stream`.
    #[must_use]
    #[inline]
    pub fn allocated(stream: &Stream) -> Self {
        Self {
            writer: stream.clone(),
            written: AtomicU64::new(stream.tail().tails()),
            read: AtomicU64::new(0),
            reads_freely: AtomicU64::new(stream.identity()),
            writes_freely: AtomicU64::new(stream.identity()),
            others: Mutex::default(),
        }
    }

    /// Has `stream` wait for what a read must wait for.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is of another driver; whatever the driver returns for an event. The read must not take place
    /// then.
    #[inline]
    pub fn before_read(&self, stream: &Stream) -> Result<()> {
        if self.reads_freely_on(stream) { Ok(()) } else { self.wait_for_writes(stream) }
    }

    /// Whether a read on `stream` waits for nothing, as far as that is plain at once.
    #[inline]
    pub fn reads_freely_on(&self, stream: &Stream) -> bool {
        self.reads_freely.load(Ordering::Relaxed) == stream.identity()
    }

    /// Whether a write on `stream` waits for nothing, as far as that is plain at once.
    #[inline]
    pub fn writes_freely_on(&self, stream: &Stream) -> bool {
        self.writes_freely.load(Ordering::Relaxed) == stream.identity()
    }

    /// Notes a read that was put on `stream`.
    #[inline]
    pub fn after_read(&self, stream: &Stream) {
        if self.writer != *stream || stream.tail().tails() > self.read.load(Ordering::Relaxed) {
            self.note_read(stream);
        }
    }

    /// Has `stream` wait for what a write, or the end of the memory, must wait for.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The write must not take place then.
    #[inline]
    pub fn before_write(&self, stream: &Stream) -> Result<()> {
        if self.writes_freely_on(stream) { Ok(()) } else { self.wait_for_all(stream) }
    }

    /// Notes a write that was put on `stream` while the whole memory was borrowed exclusively.
    #[inline]
    pub fn after_write(&mut self, stream: &Stream) {
        // Where the stream is the writer's, the others were forgotten when it waited for them.
        if self.writer != *stream {
            self.begin_anew(stream);
        }
        *self.written.get_mut() = stream.tail().tails();
    }

    /// Notes a write of a part that was put on `stream` while other parts were borrowed by others.
    #[inline]
    pub fn after_partial_write(&self, stream: &Stream) {
        if self.writer != *stream || stream.tail().tails() > self.written.load(Ordering::Relaxed) {
            self.note_partial_write(stream);
        }
    }

    /// The streams that the memory was last written on: a read waits for these.
    #[inline]
    pub fn writers(&self) -> Vec<Stream> {
        self.streams_of(|other| other.is_write)
    }

    /// The streams that the memory was last used on: a write waits for these. One may come twice.
    #[inline]
    pub fn users(&self) -> Vec<Stream> {
        self.streams_of(|_| true)
    }

    /// Waits on the host until every use is done.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; every stream is waited for all the same.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.users().iter().map(Stream::synchronize).fold(Ok(()), Result::and)
    }

    #[inline]
    fn streams_of(&self, is_concerned: impl Fn(&Use) -> bool) -> Vec<Stream> {
        let others = self.others.lock();
        let others = others.iter().filter(|other| is_concerned(other)).map(|other| &other.stream);
        std::iter::once(&self.writer).chain(others).cloned().collect()
    }

    #[cold]
    fn wait_for_writes(&self, stream: &Stream) -> Result<()> {
        // What was forgotten is in the count that was written before.
        if self.reads_freely.load(Ordering::Acquire) == self.writer.identity() {
            return wait(stream, &self.writer, self.written.load(Ordering::Relaxed));
        }
        let others = self.others.lock();
        wait(stream, &self.writer, self.written.load(Ordering::Relaxed))?;
        others.iter().filter(|other| other.is_write).try_for_each(|write| write.wait(stream))
    }

    #[cold]
    fn wait_for_all(&self, stream: &Stream) -> Result<()> {
        // Under the lock: another thread may forget the others once the writer's stream has waited for them, and whoever sees them
        // forgotten must wait for that stream as it is then.
        let mut others = self.others.lock();
        let (written, read) = (self.written.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed));
        wait(stream, &self.writer, written.max(read))?;
        others.iter().try_for_each(|other| other.wait(stream))?;
        if self.writer == *stream {
            // Whoever waits for what is on this stream from now on waits for the others as well.
            self.written.fetch_max(stream.tail().tails(), Ordering::Relaxed);
            others.clear();
            self.reads_freely.store(stream.identity(), Ordering::Release);
            self.writes_freely.store(stream.identity(), Ordering::Relaxed);
        }
        Ok(())
    }

    #[cold]
    fn note_read(&self, stream: &Stream) {
        let tails = stream.tail().tails();
        if self.writer == *stream {
            self.read.fetch_max(tails, Ordering::Relaxed);
            return;
        }
        let mut others = self.others.lock();
        match others.iter_mut().find(|other| !other.is_write && other.stream == *stream) {
            Some(read) => read.tails = read.tails.max(tails),
            None => others.push(Use { stream: stream.clone(), is_write: false, tails }),
        }
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    #[cold]
    fn note_partial_write(&self, stream: &Stream) {
        if self.writer == *stream {
            self.written.fetch_max(stream.tail().tails(), Ordering::Relaxed);
            return;
        }
        let mut others = self.others.lock();
        others.retain(|other| other.stream != *stream && !other.has_been_waited_for(stream));
        // Only now: a tail that is not counted yet comes behind all waits for what was forgotten.
        let tails = stream.tail().tails();
        others.push(Use { stream: stream.clone(), is_write: true, tails });
        self.reads_freely.store(NOBODY, Ordering::Relaxed);
        self.writes_freely.store(NOBODY, Ordering::Relaxed);
    }

    /// Forgets every use: `stream` has waited for them and is the writer's now.
    #[cold]
    fn begin_anew(&mut self, stream: &Stream) {
        *self = Self::allocated(stream);
    }
}

impl Use {
    #[inline]
    fn wait(&self, waiting: &Stream) -> Result<()> {
        wait(waiting, &self.stream, self.tails)
    }

    /// Whether `waiting` is known to have waited for this use.
    #[inline]
    fn has_been_waited_for(&self, waiting: &Stream) -> bool {
        let waited = waiting.tail().waited.lock();
        waited.iter().any(|known| known.stream == self.stream.identity() && known.tail > self.tails)
    }
}

impl Tail {
    /// How many tails there are by now: a use that is on the stream already comes before all that are not counted yet.
    #[inline]
    fn tails(&self) -> u64 {
        self.tails.load(Ordering::Acquire)
    }

    /// Has `waiting` wait for all work that is on `stream`, whose tail this is, and returns which tail that is; none if both are in a
    /// capture, where a wait is one of the graph and not of the streams.
    #[inline]
    fn pass(&self, stream: &Stream, waiting: &Stream) -> Result<Option<u64>> {
        let (source, target) = (stream.capture()?, waiting.capture()?);
        if source.is_some() && source != target {
            return Err(in_capture(waiting, stream));
        }
        let mut event = self.event.lock();
        let event = match &mut *event {
            Some(event) => event,
            none => none.insert(Event::new(stream.context(), tail_flags())?),
        };
        // If the calls below fail, this is the number of a tail that nobody has waited for.
        let tail = self.tails.fetch_add(1, Ordering::AcqRel) + 1;
        event.record(stream)?;
        if source == target {
            waiting.wait_event(event)?;
        } else {
            expect_done(event, waiting)?;
        }
        Ok(source.is_none().then_some(tail))
    }
}

/// Has `waiting` wait for a use of `stream` that saw this many of its tails, unless it has done so.
#[inline]
fn wait(waiting: &Stream, stream: &Stream, tails: u64) -> Result<()> {
    if waiting == stream {
        return Ok(());
    }
    waiting.driver().expect_same(stream.driver(), OPERATION)?;
    let mut waited = waiting.tail().waited.lock();
    let known = waited.iter().position(|known| known.stream == stream.identity());
    if known.is_some_and(|index| waited[index].tail > tails) {
        return Ok(());
    }
    let Some(tail) = stream.tail().pass(stream, waiting)? else { return Ok(()) };
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

#[cold]
fn in_capture(waiting: &Stream, stream: &Stream) -> Error {
    let reason = format!("{waiting:?} would wait for work on {stream:?}, which is in a capture that it is not in");
    Error::argument(OPERATION, reason)
}

/// An error unless what `event` stands for is done, which spares `waiting`, a stream that is being captured, the wait.
#[inline]
fn expect_done(event: &Event, waiting: &Stream) -> Result<()> {
    if relaxed(event.driver(), || event.is_finished())? {
        return Ok(());
    }
    let reason =
        format!("{waiting:?} is being captured, and would wait for work from outside of the capture that is not done");
    Err(Error::argument(OPERATION, reason))
}

#[inline]
fn tail_flags() -> EventFlags {
    EventFlags::from_bits_retain(CUevent_flags::CU_EVENT_DISABLE_TIMING.0)
}
