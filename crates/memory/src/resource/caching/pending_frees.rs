//! Tracking of when memory freed on one stream becomes available to every stream.

use std::collections::VecDeque;
use std::sync::Arc;

use curium_driver::extend::WeakStream;
use curium_driver::{Context, Event, PooledEvent, Result, Stream};

use crate::cache::Epoch;
use crate::wait;

/// A stream that frees memory, and the events after which the memory is available to every stream.
pub(super) struct PendingFrees {
    /// `None` for a default stream, whose handle refers to different streams depending on the caller.
    stream: Option<WeakStream>,
    /// Sorted by epoch.
    events: VecDeque<(Epoch, Mark)>,
}

/// A point in stream order.
enum Mark {
    /// The stream was idle.
    Passed,
    Event(PooledEvent),
    /// The last event of a destroyed stream.
    Last(Arc<Event>),
}

impl PendingFrees {
    pub(super) fn new(stream: &Stream) -> Self {
        Self { stream: stream.downgrade(), events: VecDeque::new() }
    }

    /// Records an event after the memory of this epoch was freed. If that is impossible, the memory is available to the
    /// stream only, until the context is synchronized.
    pub(super) fn record(&mut self, epoch: Epoch) -> Result<()> {
        let Some(weak) = &self.stream else { return Ok(()) };
        let mark = match weak.upgrade() {
            Some(stream) => Mark::after(&stream)?,
            None => weak.last().map(Mark::Last),
        };
        self.events.extend(mark.map(|mark| (epoch, mark)));
        Ok(())
    }

    /// Returns the latest epoch whose event has completed since the last call.
    pub(super) fn completed(&mut self) -> Result<Option<Epoch>> {
        let mut latest = None;
        while let Some((epoch, mark)) = self.events.front()
            && mark.is_passed()?
        {
            latest = Some(*epoch);
            self.events.pop_front();
        }
        Ok(latest)
    }

    /// Discards the events up to an epoch, since the stream was synchronized.
    pub(super) fn forget(&mut self, epoch: Epoch) {
        self.events.retain(|(recorded, _)| *recorded > epoch);
    }

    /// Waits for all work on the stream, before its memory is returned to the driver.
    pub(super) fn wait(&self, context: &Context) -> Result<()> {
        let Some(weak) = &self.stream else { return wait::before_free_context(context) };
        if let Some(stream) = weak.upgrade() {
            return wait::before_free(&stream);
        }
        weak.last().map_or_else(|| wait::before_free_context(context), |event| wait::before_free_event(&event))
    }

    /// Returns `true` if the stream was destroyed and all of its memory is available to every stream.
    pub(super) fn is_over(&self) -> bool {
        self.events.is_empty() && self.stream.as_ref().is_some_and(|weak| weak.upgrade().is_none())
    }
}

impl Mark {
    /// Returns a point after all work on `stream`, or `None` during a capture, since captured work is not executed.
    fn after(stream: &Stream) -> Result<Option<Self>> {
        if stream.is_capturing()? {
            return Ok(None);
        }
        // Even on an idle stream, an event takes time to complete.
        if stream.is_finished()? {
            return Ok(Some(Self::Passed));
        }
        stream.record_pooled_event().map(Self::Event).map(Some)
    }

    fn is_passed(&self) -> Result<bool> {
        match self {
            Self::Passed => Ok(true),
            Self::Event(event) => event.is_finished(),
            Self::Last(event) => event.is_finished(),
        }
    }
}
