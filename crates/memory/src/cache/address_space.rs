//! A reserved range of addresses, parts of which have memory.

use std::collections::BTreeMap;

use super::heap::{Heap, Segment};

/// A reserved range of addresses. A part that directly follows free memory extends that memory in
/// place.
#[derive(Debug)]
pub(crate) struct AddressSpace<M> {
    range: Segment,
    /// The parts with memory, by address.
    parts: BTreeMap<u64, Part<M>>,
}

/// Addresses with memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<M> {
    pub(crate) length: u64,
    pub(crate) memory: M,
}

/// A gap between parts, and the number of bytes that must follow the free memory in front of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gap {
    pub(crate) start: u64,
    pub(crate) needed: u64,
    pub(crate) available: u64,
}

/// The size of the first parts in bytes, and of all parts of less than 8 GiB.
const MIN_PART: u64 = 4 << 20;
/// The maximum size of a part in bytes.
const MAX_PART: u64 = 64 << 20;
/// The number of parts beyond which new ones are larger.
const MAX_SMALL_PARTS: u64 = 2048;

/// Returns the size of new parts in bytes, when the parts have `reserved_bytes` bytes in all.
///
/// Memory is stitched in whole parts, each of which takes a driver call. With smaller ones, less of
/// it stays between allocations in use. What stays there is a constant fraction of the memory if
/// parts grow with it.
pub(crate) fn part_bytes(reserved_bytes: u64) -> u64 {
    (reserved_bytes / MAX_SMALL_PARTS)
        .next_power_of_two()
        .clamp(MIN_PART, MAX_PART)
}

impl<M> AddressSpace<M> {
    /// Creates an address space without memory.
    pub(crate) fn new(range: Segment) -> Self {
        Self {
            range,
            parts: BTreeMap::new(),
        }
    }

    /// Returns the length of the range.
    pub(crate) fn len(&self) -> u64 {
        self.range.length
    }

    /// Takes the range out if no part is left.
    pub(crate) fn take_unused(&mut self) -> Option<Segment> {
        let is_unused = self.parts.is_empty() && self.range.length > 0;
        is_unused.then(|| std::mem::replace(&mut self.range, Segment::EMPTY))
    }

    /// Returns the gap for the new memory that an allocation of `bytes` bytes needs, and the size of
    /// the segments that are already free. Together with new memory, they suffice for a stitched
    /// range, unless they suffice without: then they could not be mapped.
    pub(crate) fn growth(&self, bytes: u64, granularity: u64, heap: &Heap) -> (Option<Gap>, u64) {
        let free = heap.free_segments();
        let free_bytes = free.iter().map(|segment| segment.length).sum();
        let adjacent = self.gap(bytes, granularity, |end| heap.free_before(end));
        let separate = (1..bytes)
            .contains(&free_bytes)
            .then(|| self.gap(bytes - free_bytes, granularity, |_| 0))
            .flatten();
        let gap = adjacent.into_iter().chain(separate);
        (gap.min_by_key(|gap| gap.needed), free_bytes)
    }

    /// Returns the gap in which the fewest bytes, a multiple of `granularity`, need memory for a
    /// free range of `bytes` bytes. `free_before` returns the length of the free range that ends at
    /// an address.
    fn gap(&self, bytes: u64, granularity: u64, free_before: impl Fn(u64) -> u64) -> Option<Gap> {
        let starts = std::iter::once(self.range.start)
            .chain(self.parts.iter().map(|(start, part)| start + part.length));
        let ends = self.parts.keys().copied().chain([self.range.end()]);
        starts
            .zip(ends)
            .filter(|(start, end)| start < end)
            .filter_map(|(start, end)| {
                let missing = bytes.saturating_sub(free_before(start));
                let needed = missing.next_multiple_of(granularity).max(granularity);
                (needed <= end - start).then_some(Gap {
                    start,
                    needed,
                    available: end - start,
                })
            })
            .min_by_key(|gap| (gap.needed, gap.start))
    }

    /// Adds a part with memory.
    pub(crate) fn insert(&mut self, start: u64, part: Part<M>) {
        self.parts.insert(start, part);
    }

    pub(crate) fn get(&self, start: u64) -> Option<&Part<M>> {
        self.parts.get(&start)
    }

    pub(crate) fn remove(&mut self, start: u64) -> Option<Part<M>> {
        self.parts.remove(&start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_has_few_parts() {
        let mut reserved = 0;
        let mut count = 0;
        while reserved < 140 << 30 {
            reserved += part_bytes(reserved);
            count += 1;
        }
        assert!(count < 4 * MAX_SMALL_PARTS, "{count}");
        assert_eq!(part_bytes(0), MIN_PART);
        assert_eq!(part_bytes(8 << 30), MIN_PART);
        assert_eq!(part_bytes(16 << 30), 2 * MIN_PART);
        assert_eq!(part_bytes(1 << 50), MAX_PART);
    }

    /// The gap with the most free memory in front of it is filled, if it is long enough.
    #[test]
    fn gap_needs_the_fewest_bytes() {
        let mut addresses = AddressSpace::new(Segment {
            start: 0x1000,
            length: 0x10000,
        });
        for (start, length) in [(0x1000, 0x2000), (0x4000, 0x1000)] {
            addresses.insert(start, Part { length, memory: () });
        }
        let free_before = |end| if end == 0x3000 { 0x1000 } else { 0 };
        let first = Gap {
            start: 0x3000,
            needed: 0x1000,
            available: 0x1000,
        };
        assert_eq!(addresses.gap(0x1800, 0x1000, free_before), Some(first));
        let last = Gap {
            start: 0x5000,
            needed: 0x3000,
            available: 0xc000,
        };
        assert_eq!(addresses.gap(0x2800, 0x1000, free_before), Some(last));
        assert_eq!(addresses.gap(0x10000, 0x1000, free_before), None);
        assert_eq!(addresses.take_unused(), None);
        for start in [0x1000, 0x4000] {
            assert!(addresses.remove(start).is_some());
        }
        assert_eq!(
            addresses.take_unused().map(|range| range.length),
            Some(0x10000)
        );
        assert_eq!(addresses.take_unused(), None);
    }
}
