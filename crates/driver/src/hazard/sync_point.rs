//! Sync points: events recorded after the work of a stream, which other streams wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as MemoryOrdering};

use parking_lot::Mutex;

use super::registrations::Registrations;
use super::thread_state::{Ordering, check_not_ordering};
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::stream::hazard_wait::Hazard;
use crate::{Error, Event, EventFlags, Result, Stream};

/// The sync points of one stream, and those of other streams that it has waited for.
#[derive(Debug)]
pub(crate) struct SyncPoints {
    /// The number of sync points, plus one: an access that was not recorded has a lower number.
    count: AtomicU64,
    /// The event of the latest sync point, recorded again for each.
    event: Mutex<Option<Event>>,
    waited: Mutex<Vec<Waited>>,
    /// The number of waits inserted into this stream by hazard tracking.
    inserted_waits: AtomicU64,
    registrations: Arc<Registrations>,
}

/// A wait of one stream for another, up to a sync point.
#[derive(Debug)]
struct Waited {
    stream: u64,
    sync_point: u64,
}

/// A point in the work of a stream.
#[derive(Clone, Debug)]
pub(super) struct StreamPoint {
    pub(super) stream: Stream,
    /// The number of sync points of the stream when the work was enqueued.
    pub(super) sync_points: u64,
}

/// The operation named in errors of waits for other accesses.
pub(super) const OPERATION: &str = "access to device memory";
/// The maximum number of waited-for streams that a stream remembers. Forgetting one costs a
/// redundant wait.
const MAX_REMEMBERED_STREAMS: usize = 64;

impl SyncPoints {
    /// Returns the number of sync points, which is never 0. Work already enqueued on the stream
    /// comes before every sync point that is not yet counted.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count.load(MemoryOrdering::Acquire)
    }

    /// Returns the number of waits inserted into this stream by hazard tracking.
    #[inline]
    pub(crate) fn inserted_waits(&self) -> u64 {
        self.inserted_waits.load(MemoryOrdering::Relaxed)
    }

    /// Returns the operations in progress on the stream that use leased memory without its lock.
    #[inline]
    pub(super) fn registrations(&self) -> &Arc<Registrations> {
        &self.registrations
    }

    /// Returns `true` if the stream is known to have waited for `point`.
    pub(super) fn has_waited(&self, point: &StreamPoint) -> bool {
        self.waited.lock().iter().any(|wait| {
            wait.stream == point.stream.identity() && wait.sync_point > point.sync_points
        })
    }

    /// Makes `waiting` wait for all work enqueued on `stream`, whose sync points these are. Returns
    /// the number of the new sync point; `None` if both streams are in a capture of other code,
    /// where the wait is an edge of that graph.
    #[inline]
    fn pass(&self, stream: &Stream, waiting: &Stream) -> Result<Option<u64>> {
        // A stream created for a capture is never part of another capture, and executes no work
        // while its own is active.
        let is_one_scope = stream.scope().is_some_and(|scope| scope.owns(waiting));
        let (source, target) = if is_one_scope {
            (None, None)
        } else {
            (stream.capture_number()?, waiting.capture_number()?)
        };
        if source.is_some() && source != target {
            return Err(in_capture(waiting, stream));
        }
        let mut event = self.event.lock();
        let event = match &mut *event {
            Some(event) => event,
            none => none.insert(Event::new(stream.context(), EventFlags::DISABLE_TIMING)?),
        };
        // If the calls below fail, no stream has waited for the sync point with this number.
        let sync_point = self.count.fetch_add(1, MemoryOrdering::AcqRel) + 1;
        event.record_unguarded(stream)?;
        if source == target {
            waiting.wait_event_unguarded(event)?;
        } else {
            check_done(event, waiting)?;
        }
        Ok(source.is_none().then_some(sync_point))
    }
}

impl Default for SyncPoints {
    #[inline]
    fn default() -> Self {
        Self {
            count: AtomicU64::new(1),
            event: Mutex::default(),
            waited: Mutex::default(),
            inserted_waits: AtomicU64::new(0),
            registrations: Arc::default(),
        }
    }
}

impl StreamPoint {
    /// Returns the current end of the work on `stream`.
    pub(super) fn now(stream: &Stream) -> Self {
        Self {
            stream: stream.clone(),
            sync_points: stream.sync_points().count(),
        }
    }

    /// Makes `waiting` [wait] for the work before this point.
    #[inline]
    pub(super) fn wait(&self, waiting: &Stream, hazard: Option<Hazard>) -> Result<bool> {
        wait(waiting, &self.stream, self.sync_points, hazard)
    }
}

/// Makes `waiting` wait for an access on `stream` that was recorded with this count, unless it
/// already has. Returns `false` if the wait exists only in a graph of other code. A `hazard` is
/// reported as an inserted wait.
#[inline]
pub(crate) fn wait(
    waiting: &Stream,
    stream: &Stream,
    sync_points: u64,
    hazard: Option<Hazard>,
) -> Result<bool> {
    if waiting == stream {
        return Ok(true);
    }
    wait_for_other(waiting, stream, sync_points, hazard)
}

#[cold]
#[inline(never)]
fn wait_for_other(
    waiting: &Stream,
    stream: &Stream,
    sync_points: u64,
    hazard: Option<Hazard>,
) -> Result<bool> {
    waiting.driver().check_same(stream.driver(), OPERATION)?;
    check_not_ordering(OPERATION)?;
    let _ordering = Ordering::begin();
    let mut waited = waiting.sync_points().waited.lock();
    let previous = waited
        .iter()
        .position(|wait| wait.stream == stream.identity());
    if previous.is_some_and(|index| waited[index].sync_point > sync_points) {
        return Ok(true);
    }
    let Some(sync_point) = stream.sync_points().pass(stream, waiting)? else {
        return Ok(false);
    };
    match previous {
        Some(index) => waited[index].sync_point = sync_point,
        None => {
            if waited.len() == MAX_REMEMBERED_STREAMS {
                waited.remove(0);
            }
            waited.push(Waited {
                stream: stream.identity(),
                sync_point,
            });
        }
    }
    drop(waited);
    if let Some(hazard) = hazard {
        let inserted_waits = &waiting.sync_points().inserted_waits;
        inserted_waits.fetch_add(1, MemoryOrdering::Relaxed);
        hazard.report(waiting, stream);
    }
    Ok(true)
}

#[cold]
fn in_capture(waiting: &Stream, stream: &Stream) -> Error {
    let reason = format!(
        "{waiting:?} would wait for work on {stream:?}, which is being captured into another graph"
    );
    Error::argument(OPERATION, reason)
}

/// Returns an error unless `event` has completed. `waiting` is being captured, and needs no wait
/// for a completed event.
#[inline]
fn check_done(event: &Event, waiting: &Stream) -> Result<()> {
    if with_relaxed_capture_mode(event.driver(), || event.is_finished())? {
        return Ok(());
    }
    let reason = format!(
        "{waiting:?} is being captured, and would wait for pending work outside the capture"
    );
    Err(Error::argument(OPERATION, reason))
}
