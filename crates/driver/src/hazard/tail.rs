//! The ends of streams, which other streams wait for.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUevent_flags;

use super::OPERATION;
use crate::capture_mode::relaxed;
use crate::lock::Mutex;
use crate::{Error, Event, EventFlags, Result, Stream};

/// What a stream knows of the end of its own work, and of the work of others that it has waited for.
#[derive(Debug)]
pub(crate) struct Tail {
    /// How many tails of the stream there are, and one more: what was noted by nobody is less.
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

impl Tail {
    /// How many tails there are by now: a use that is on the stream already comes before all that are not counted yet. Never 0.
    #[inline]
    pub(crate) fn tails(&self) -> u64 {
        self.tails.load(Ordering::Acquire)
    }

    /// Whether the stream, whose tail this is, is known to have waited for a use of `stream` that saw this many of its tails.
    #[inline]
    pub(super) fn has_waited(&self, stream: &Stream, tails: u64) -> bool {
        let waited = self.waited.lock();
        waited.iter().any(|known| known.stream == stream.identity() && known.tail > tails)
    }

    /// Has `waiting` wait for all work that is on `stream`, whose tail this is, and returns which tail that is; none if both are in a
    /// capture of other code, where a wait is one of the graph and not of the streams.
    #[inline]
    fn pass(&self, stream: &Stream, waiting: &Stream) -> Result<Option<u64>> {
        // Streams that were made for one capture are never in another, nor run anything while it lasts.
        let is_one_scope = stream.scope().is_some_and(|scope| scope.is_that_of(waiting));
        let (source, target) =
            if is_one_scope { (None, None) } else { (stream.capture_number()?, waiting.capture_number()?) };
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

impl Default for Tail {
    #[inline]
    fn default() -> Self {
        Self { tails: AtomicU64::new(1), event: Mutex::default(), waited: Mutex::default() }
    }
}

/// Has `waiting` wait for a use of `stream` that saw this many of its tails, unless it has done so. Whether it really has waited is the
/// answer, or only does so in a graph of other code.
#[inline]
pub(crate) fn wait(waiting: &Stream, stream: &Stream, tails: u64) -> Result<bool> {
    if waiting == stream {
        return Ok(true);
    }
    waiting.driver().expect_same(stream.driver(), OPERATION)?;
    let mut waited = waiting.tail().waited.lock();
    let known = waited.iter().position(|known| known.stream == stream.identity());
    if known.is_some_and(|index| waited[index].tail > tails) {
        return Ok(true);
    }
    let Some(tail) = stream.tail().pass(stream, waiting)? else { return Ok(false) };
    match known {
        Some(index) => waited[index].tail = tail,
        None => {
            if waited.len() == REMEMBERED_STREAMS {
                waited.remove(0);
            }
            waited.push(Waited { stream: stream.identity(), tail });
        }
    }
    Ok(true)
}

#[cold]
#[inline]
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
