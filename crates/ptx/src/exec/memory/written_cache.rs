//! A cache of the records of written bytes.

use std::sync::Arc;

use super::Memory;
use crate::exec::check::written::Written;

/// The allocations that a worker has looked up most recently.
#[derive(Debug, Default)]
pub(crate) struct WrittenCache {
    entries: [Allocation; 4],
    next: usize,
}

/// An allocation, and the record of its written bytes if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) size: u64,
    pub(crate) written: Option<Arc<Written>>,
}

impl WrittenCache {
    /// Returns the allocation that contains an address, if any.
    pub(crate) fn allocation(&mut self, memory: &dyn Memory, address: u64) -> Option<&Allocation> {
        let cached = self
            .entries
            .iter()
            .position(|entry| address.wrapping_sub(entry.base) < entry.size);
        let index = match cached {
            Some(index) => index,
            None => self.fetch(memory, address)?,
        };
        Some(&self.entries[index])
    }

    #[cold]
    pub(crate) fn fetch(&mut self, memory: &dyn Memory, address: u64) -> Option<usize> {
        let segment = memory.segment(address)?;
        let index = self.next;
        self.entries[index] = Allocation {
            base: segment.base,
            size: segment.size,
            written: memory.written(address),
        };
        self.next = (index + 1) % self.entries.len();
        Some(index)
    }
}
