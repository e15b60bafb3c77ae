//! The heap that kernels of a context allocate from.

use std::collections::{BTreeMap, HashMap};

/// The heap that kernels of a context allocate from: one allocation, cut up.
pub(crate) struct KernelHeap {
    /// Unused ranges: address and size.
    pub(crate) free: BTreeMap<u64, u64>,
    /// The sizes of allocated blocks.
    used: HashMap<u64, u64>,
}

/// The alignment of allocated addresses.
const ALIGNMENT: u64 = 16;

impl KernelHeap {
    pub(crate) fn new(base: u64, size: u64) -> Self {
        Self {
            free: BTreeMap::from([(base, size)]),
            used: HashMap::new(),
        }
    }

    /// Returns the first range that is large enough.
    pub(crate) fn allocate(&mut self, size: u64) -> Option<u64> {
        let size = size.checked_next_multiple_of(ALIGNMENT)?;
        let (address, free_size) = self
            .free
            .iter()
            .map(|(address, free_size)| (*address, *free_size))
            .find(|(_, free_size)| *free_size >= size)?;
        self.free.remove(&address);
        if free_size > size {
            self.free.insert(address + size, free_size - size);
        }
        self.used.insert(address, size);
        Some(address)
    }

    /// Frees a range, and coalesces it with free neighbors.
    pub(crate) fn free(&mut self, mut address: u64) -> bool {
        let Some(mut size) = self.used.remove(&address) else {
            return false;
        };
        if let Some(after) = self.free.remove(&(address + size)) {
            size += after;
        }
        if let Some((&before, &length)) = self.free.range(..address).next_back()
            && before + length == address
        {
            address = before;
            size += length;
        }
        self.free.insert(address, size);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ranges_are_joined_and_used_again() {
        let mut heap = KernelHeap::new(4096, 64);
        let [a, b, c] = [4096, 4112, 4144];
        assert_eq!(heap.allocate(1), Some(a));
        assert_eq!(heap.allocate(17), Some(b));
        assert_eq!(heap.allocate(16), Some(c));
        assert_eq!(heap.allocate(1), None);
        assert!(heap.free(a) && heap.free(c) && heap.free(b));
        assert!(!heap.free(b), "it was freed already");
        assert_eq!(heap.allocate(64), Some(4096));
        assert_eq!(heap.allocate(u64::MAX), None);
    }
}
