//! Reports of changes of the allocated memory.

use std::time::Instant;

use crate::activity::{ActivityOperation, Location, MemoryChange, is_observed, report};
use crate::context::stream::Stream;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::memory::Owner;

impl Locked<'_> {
    /// Reports that the allocation at `address` was made or is freed, if activities are observed.
    pub(crate) fn report_memory(
        &self,
        address: u64,
        stream: Option<Id<Stream>>,
        change: MemoryChange,
    ) {
        let driver = self.driver;
        if !is_observed() {
            return;
        }
        let Some(allocation) = driver.memory().find(address) else {
            return;
        };
        let Owner { context, device } = allocation.owner;
        let bytes = allocation.size;
        let memory = allocation.purpose.activity_memory();
        let operation = match change {
            MemoryChange::Allocated => ActivityOperation::Allocation {
                address,
                bytes,
                memory,
            },
            MemoryChange::Freed => ActivityOperation::Free {
                address,
                bytes,
                memory,
            },
        };
        let stream = stream.and_then(|stream| self.contexts.stream(stream).ok());
        let location = Location {
            device,
            context: self.contexts.context_number(context).unwrap_or(0),
            stream: stream.map_or(0, Stream::number),
        };
        let now = Instant::now();
        report(location, now, now, operation);
    }
}
