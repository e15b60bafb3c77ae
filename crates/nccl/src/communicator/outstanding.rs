//! The operations that may not have completed, for messages about time limits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use curium_driver::{PooledEvent, Stream};

use crate::error::{RecentCall, Result};
use crate::operation::Description;

/// The operations of a communicator with a timeout, in the order of their calls.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    /// The number of operations so far.
    number: u64,
    operations: VecDeque<Recorded>,
    /// The number of collectives so far.
    collectives: u64,
    /// The last calls, also of operations that have completed.
    recent: VecDeque<RecentCall>,
}

/// The number of calls that are kept for errors.
const MAX_RECENT_CALLS: usize = 16;

#[derive(Debug)]
struct Recorded {
    number: u64,
    name: &'static str,
    count: usize,
    called: Instant,
    /// An event after the operation.
    event: PooledEvent,
}

impl Outstanding {
    /// Records an operation that was enqueued on a stream. Those that have completed are forgotten.
    pub(crate) fn add(&mut self, stream: &Stream, operation: Description) -> Result<()> {
        let Description {
            name,
            count,
            element,
            reduction,
            root,
        } = operation;
        self.number += 1;
        while let Some(first) = self.operations.front()
            && first.event.is_finished()?
        {
            self.operations.pop_front();
        }
        if self.recent.len() == MAX_RECENT_CALLS {
            self.recent.pop_front();
        }
        let is_collective = !matches!(name, "send" | "receive");
        self.collectives += u64::from(is_collective);
        self.recent.push_back(RecentCall {
            number: self.number,
            collective: is_collective.then_some(self.collectives),
            name,
            count,
            element,
            reduction,
            root,
        });
        let event = stream.record_pooled_event()?;
        self.operations.push_back(Recorded {
            number: self.number,
            name,
            count,
            called: Instant::now(),
            event,
        });
        Ok(())
    }

    /// Returns the last calls, the oldest first.
    pub(super) fn recent(&self) -> Box<[RecentCall]> {
        self.recent.iter().copied().collect()
    }

    pub(super) fn clear(&mut self) {
        self.operations.clear();
    }

    /// Describes the first operation that has not completed.
    pub(super) fn first(&mut self) -> Result<Box<str>> {
        while let Some(first) = self.operations.front() {
            if !first.event.is_finished()? {
                return Ok(first.describe());
            }
            self.operations.pop_front();
        }
        Ok("no operation outside of graphs is outstanding".into())
    }

    /// Describes the first operation that was called longer ago than `limit` and has not completed,
    /// with the time since its call.
    pub(super) fn late(&mut self, limit: Duration) -> Option<LateOperation> {
        while let Some(first) = self.operations.front() {
            let waited = first.called.elapsed();
            if waited <= limit {
                return None;
            }
            match first.event.is_finished() {
                Ok(true) => drop(self.operations.pop_front()),
                Ok(false) => {
                    return Some(LateOperation {
                        description: first.describe(),
                        recent: self.recent.iter().copied().collect(),
                        waited,
                    });
                }
                // The calls of the communicator return the error of the context.
                Err(_) => return None,
            }
        }
        None
    }
}

/// An operation that has not completed in time.
pub(super) struct LateOperation {
    pub(super) description: Box<str>,
    pub(super) recent: Box<[RecentCall]>,
    /// The time since its call.
    pub(super) waited: Duration,
}

impl Recorded {
    fn describe(&self) -> Box<str> {
        let Self {
            number,
            name,
            count,
            ..
        } = self;
        format!("operation {number}, {name} of {count} elements").into()
    }
}
