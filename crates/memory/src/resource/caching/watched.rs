//! When the memory that a stream freed is free for all.

use std::collections::VecDeque;

use curium_driver::{Event, PooledEvent, Stream, WeakStream};

use crate::cache::Generation;

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
    Last(Event),
}

impl Watched {
    pub(super) fn new(stream: &Stream) -> Self {
        Self { stream: stream.downgrade(), marks: VecDeque::new() }
    }

    /// Puts a point behind the memory of this generation. Where that is not possible, the memory stays the stream's until the context is
    /// waited for.
    pub(super) fn mark(&mut self, generation: Generation) {
        let Some(weak) = &self.stream else { return };
        let mark = match weak.upgrade() {
            Some(stream) => Mark::behind(&stream),
            None => weak.take_last().map(Mark::Last),
        };
        self.marks.extend(mark.map(|mark| (generation, mark)));
    }

    /// The newest generation whose point the stream has passed. Asks once; a failure counts as not passed.
    pub(super) fn passed(&mut self) -> Option<Generation> {
        let mut newest = None;
        while let Some((generation, mark)) = self.marks.front()
            && mark.is_passed()
        {
            newest = Some(*generation);
            self.marks.pop_front();
        }
        newest
    }

    /// Forgets the points, since the stream has been waited for.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Whether the stream is gone, and all that it freed is free for all.
    pub(super) fn is_over(&self) -> bool {
        self.marks.is_empty() && self.stream.as_ref().is_some_and(|weak| weak.upgrade().is_none())
    }
}

impl Mark {
    /// A point behind all work that is on `stream`; nothing while the stream is being captured, since what is on it does not run.
    fn behind(stream: &Stream) -> Option<Self> {
        if stream.is_capturing().unwrap_or(true) {
            return None;
        }
        // An event takes a moment to be passed, also on an idle stream.
        if stream.is_finished().unwrap_or(false) {
            return Some(Self::Passed);
        }
        stream.mark().ok().map(Self::Pooled)
    }

    fn is_passed(&self) -> bool {
        let event: &Event = match self {
            Self::Passed => return true,
            Self::Pooled(event) => event,
            Self::Last(event) => event,
        };
        event.is_finished().unwrap_or(false)
    }
}
