//! Tracking of when memory freed on one stream becomes available to every stream.

use std::collections::VecDeque;
use std::sync::Arc;

use curium_driver::extend::WeakStream;
use curium_driver::{Context, Event, PooledEvent, Result, Stream};

use crate::cache::Epoch;
use crate::wait;

/// A stream that frees memory, and the events after which the memory is available to every stream.
pub(super) struct PendingFrees {
    /// `None` for a default stream, whose handle refers to different streams depending on the
    /// caller.
    stream: Option<WeakStream>,
    /// The latest epoch that no event covers yet: the stream was being captured, or the driver
    /// refused.
    uncovered: Option<Epoch>,
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
        Self {
            stream: stream.downgrade(),
            uncovered: None,
            events: VecDeque::new(),
        }
    }

    /// Records that memory of this epoch, and of earlier ones, was freed.
    pub(super) fn add(&mut self, epoch: Epoch) {
        self.uncovered = self.uncovered.max(Some(epoch));
    }

    /// Records an event after the recorded deallocations. Until this succeeds, the memory is
    /// available to the stream only.
    pub(super) fn record(&mut self) -> Result<()> {
        let (Some(epoch), Some(weak)) = (self.uncovered, &self.stream) else {
            return Ok(());
        };
        let mark = match weak.upgrade() {
            Some(stream) => Mark::after(&stream)?,
            None => weak.last().map(Mark::Last),
        };
        if let Some(mark) = mark {
            self.events.push_back((epoch, mark));
            self.uncovered = None;
        }
        Ok(())
    }

    /// Returns `true` if there are deallocations that no event covers, although the stream may have
    /// events.
    pub(super) fn is_deferred(&self) -> bool {
        self.uncovered.is_some() && self.stream.is_some()
    }

    /// Calls `release` with each epoch whose event has completed since the last call.
    pub(super) fn completed(&mut self, mut release: impl FnMut(Epoch)) -> Result<()> {
        while let Some((epoch, mark)) = self.events.front()
            && mark.is_passed()?
        {
            release(*epoch);
            self.events.pop_front();
        }
        Ok(())
    }

    /// Discards the deallocations up to an epoch, since the stream was synchronized.
    pub(super) fn forget(&mut self, epoch: Epoch) {
        self.events.retain(|(recorded, _)| *recorded > epoch);
        self.uncovered = self.uncovered.filter(|uncovered| *uncovered > epoch);
    }

    /// Waits for all work on the stream, before its memory is returned to the driver.
    pub(super) fn wait(&self, context: &Context) -> Result<()> {
        let Some(weak) = &self.stream else {
            return wait::before_free_context(context);
        };
        if let Some(stream) = weak.upgrade() {
            return wait::before_free(&stream);
        }
        weak.last().map_or_else(
            || wait::before_free_context(context),
            |event| wait::before_free_event(&event),
        )
    }

    /// Returns `true` if the stream was destroyed and all of its memory is available to every
    /// stream.
    pub(super) fn is_over(&self) -> bool {
        self.events.is_empty()
            && self
                .stream
                .as_ref()
                .is_some_and(|weak| weak.upgrade().is_none())
    }
}

impl Mark {
    /// Returns a point after all work on `stream`, or `None` during a capture, since captured work
    /// is not executed.
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
