//! When the memory that a stream freed is free for all.

use std::collections::VecDeque;
use std::sync::Arc;

use curium_driver::extend::WeakStream;
use curium_driver::{Context, Event, PooledEvent, Result, Stream};

use crate::cache::Generation;
use crate::wait;

/// A stream on which memory was freed, and points in it behind which that memory is free for all.
pub(super) struct Watched {
    /// Nothing for a default stream: what its handle stands for depends on who asks.
    stream: Option<WeakStream>,
    marks: VecDeque<(Generation, Mark)>,
}

enum Mark {
    /// The stream was idle.
    Passed,
    Pooled(PooledEvent),
    /// The last one of a stream that is gone.
    Last(Arc<Event>),
}

impl Watched {
    #[inline]
    pub(super) fn new(stream: &Stream) -> Self {
        Self { stream: stream.downgrade(), marks: VecDeque::new() }
    }

    /// Puts a point behind the memory of this generation. Where that is not possible, the memory stays the stream's until the context is
    /// waited for.
    #[inline]
    pub(super) fn mark(&mut self, generation: Generation) -> Result<()> {
        let Some(weak) = &self.stream else { return Ok(()) };
        let mark = match weak.upgrade() {
            Some(stream) => Mark::behind(&stream)?,
            // Of all that it ever freed, whenever that is found.
            None => weak.last().map(Mark::Last),
        };
        self.marks.extend(mark.map(|mark| (generation, mark)));
        Ok(())
    }

    /// The newest generation whose point the stream has passed, if it has passed another since it was asked last.
    #[inline]
    pub(super) fn passed(&mut self) -> Result<Option<Generation>> {
        let mut newest = None;
        while let Some((generation, mark)) = self.marks.front()
            && mark.is_passed()?
        {
            newest = Some(*generation);
            self.marks.pop_front();
        }
        Ok(newest)
    }

    /// Forgets the points up to a generation, since the stream has been waited for.
    #[inline]
    pub(super) fn forget(&mut self, generation: Generation) {
        self.marks.retain(|(marked, _)| *marked > generation);
    }

    /// Waits until the stream is done with all that it freed, for memory that is about to be returned.
    #[inline]
    pub(super) fn wait(&self, context: &Context) -> Result<()> {
        let Some(weak) = &self.stream else { return wait::before_free_context(context) };
        if let Some(stream) = weak.upgrade() {
            return wait::before_free(&stream);
        }
        weak.last().map_or_else(|| wait::before_free_context(context), |event| wait::before_free_event(&event))
    }

    /// Whether the stream is gone, and all that it freed is free for all.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.marks.is_empty() && self.stream.as_ref().is_some_and(|weak| weak.upgrade().is_none())
    }
}

impl Mark {
    /// A point behind all work that is on `stream`; nothing while the stream is being captured, since what is on it does not run.
    #[inline]
    fn behind(stream: &Stream) -> Result<Option<Self>> {
        if stream.is_capturing()? {
            return Ok(None);
        }
        // An event takes a moment to be passed, also on an idle stream.
        if stream.is_finished()? {
            return Ok(Some(Self::Passed));
        }
        stream.record_pooled_event().map(Self::Pooled).map(Some)
    }

    #[inline]
    fn is_passed(&self) -> Result<bool> {
        match self {
            Self::Passed => Ok(true),
            Self::Pooled(event) => event.is_finished(),
            Self::Last(event) => event.is_finished(),
        }
    }
}
