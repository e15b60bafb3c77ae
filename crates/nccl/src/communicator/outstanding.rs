//! The operations that may not have completed, for messages about time limits.

use std::collections::VecDeque;

use curium_driver::{PooledEvent, Stream};

use crate::error::Result;

/// The operations of a communicator with a timeout, in the order of their calls.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    /// The number of operations so far.
    number: u64,
    operations: VecDeque<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    number: u64,
    name: &'static str,
    count: usize,
    /// An event after the operation.
    event: PooledEvent,
}

impl Outstanding {
    /// Records an operation that was enqueued on a stream. Those that have completed are forgotten.
    pub(crate) fn add(&mut self, stream: &Stream, name: &'static str, count: usize) -> Result<()> {
        self.number += 1;
        while let Some(first) = self.operations.front()
            && first.event.is_finished()?
        {
            self.operations.pop_front();
        }
        let event = stream.record_pooled_event()?;
        self.operations.push_back(Recorded { number: self.number, name, count, event });
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.operations.clear();
    }

    /// Describes the first operation that has not completed.
    pub(super) fn first(&mut self) -> Result<Box<str>> {
        while let Some(Recorded { number, name, count, event }) = self.operations.front() {
            if !event.is_finished()? {
                return Ok(format!("operation {number}, {name} of {count} elements").into());
            }
            self.operations.pop_front();
        }
        Ok("no operation outside of graphs is outstanding".into())
    }
}
