//! Free ranges of addresses.

use std::collections::{BTreeMap, BTreeSet};

use super::store::Generation;

/// Whom memory is free for: a stream, by its identity, or everybody.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Owner(pub(crate) u64);

/// Free ranges, joined with their neighbours, and handed out by best fit.
///
/// Ranges are joined only within a region, which is memory that belongs together, and only if they are free for the same owner.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Where regions begin, and how long they are.
    regions: BTreeMap<u64, u64>,
    /// The free ranges by address.
    ranges: BTreeMap<u64, FreeRange>,
    /// The free ranges of each owner by length and address.
    by_length: BTreeMap<Owner, BTreeSet<(u64, u64)>>,
}

/// A range that is free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FreeRange {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) owner: Owner,
    /// The newest generation of the memory in it; of no meaning if it is free for all.
    pub(crate) generation: Generation,
}

impl Owner {
    /// What is free for everybody: the work that used it is done.
    pub(crate) const ALL: Self = Self(0);
}

impl FreeRange {
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }
}

impl Heap {
    /// Declares a region, none of which is free yet.
    #[inline]
    pub(crate) fn declare(&mut self, start: u64, length: u64) {
        self.regions.insert(start, length);
    }

    /// Forgets a region, none of which is free or in use any more.
    #[inline]
    pub(crate) fn undeclare(&mut self, start: u64) {
        self.regions.remove(&start);
    }

    /// Takes the shortest range for `owner` that `length` bytes at a multiple of `alignment` fit in: one that is the owner's if
    /// possible, else one that is free for all.
    #[inline]
    pub(crate) fn allocate(&mut self, owner: Owner, length: u64, alignment: u64) -> Option<u64> {
        self.allocate_of(owner, length, alignment).or_else(|| self.allocate_of(Owner::ALL, length, alignment))
    }

    /// Frees a range for `owner`, in this generation.
    #[inline]
    pub(crate) fn free(&mut self, start: u64, length: u64, owner: Owner, generation: Generation) {
        let mut range = FreeRange { start, length, owner, generation };
        debug_assert!(!self.overlaps(start, length), "{start:#x} is freed twice");
        if let Some(before) = self.before(start).filter(|before| self.joins(before, &range)) {
            self.remove(before);
            range.start = before.start;
            range.length += before.length;
            range.generation = range.generation.max(before.generation);
        }
        if let Some(after) = self.ranges.get(&range.end()).copied().filter(|after| self.joins(&range, after)) {
            self.remove(after);
            range.length += after.length;
            range.generation = range.generation.max(after.generation);
        }
        self.insert(range);
    }

    /// Frees for all what is free for `owner` up to a generation.
    #[inline]
    pub(crate) fn promote(&mut self, owner: Owner, generation: Generation) {
        let Some(ranges) = self.by_length.get(&owner) else { return };
        let done = ranges.iter().map(|(_, start)| self.ranges[start]).filter(|range| range.generation <= generation);
        for range in done.collect::<Vec<_>>() {
            self.remove(range);
            self.free(range.start, range.length, Owner::ALL, Generation::default());
        }
    }

    /// Takes exactly this range out, if all of it is free for all.
    #[inline]
    pub(crate) fn withdraw(&mut self, start: u64, length: u64) -> bool {
        let around = self.ranges.range(..=start).next_back().map(|(_, range)| *range);
        let Some(around) = around.filter(|range| range.owner == Owner::ALL && range.end() >= start + length) else {
            return false;
        };
        self.carve(around, start, length);
        true
    }

    /// The free ranges by address.
    #[inline]
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &FreeRange> {
        self.ranges.values()
    }

    /// The length of the longest range that is free for `owner`, which may be [`Owner::ALL`].
    #[inline]
    pub(crate) fn longest(&self, owner: Owner) -> u64 {
        let longest = |owner| Some(self.by_length.get(&owner)?.last()?.0);
        longest(owner).max(longest(Owner::ALL)).unwrap_or_default()
    }

    /// Whether a range is free for `owner` and not for all.
    #[inline]
    pub(crate) fn has(&self, owner: Owner) -> bool {
        self.by_length.contains_key(&owner)
    }

    /// The range that is free for all and ends at `end`.
    #[inline]
    pub(crate) fn ending_at(&self, end: u64) -> Option<FreeRange> {
        self.before(end).filter(|range| range.end() == end && range.owner == Owner::ALL)
    }

    #[inline]
    fn allocate_of(&mut self, owner: Owner, length: u64, alignment: u64) -> Option<u64> {
        let ranges = self.by_length.get(&owner)?.range((length, 0)..);
        let (start, aligned) = ranges
            .map(|(available, start)| (*available, *start, start.next_multiple_of(alignment)))
            .find(|(available, start, aligned)| aligned - start + length <= *available)
            .map(|(_, start, aligned)| (start, aligned))?;
        let range = self.ranges[&start];
        self.carve(range, aligned, length);
        Some(aligned)
    }

    /// Takes a part out of a range, and leaves what lies before and behind it.
    #[inline]
    fn carve(&mut self, range: FreeRange, start: u64, length: u64) {
        self.remove(range);
        let (before, behind) = (start - range.start, range.end() - (start + length));
        if before != 0 {
            self.insert(FreeRange { length: before, ..range });
        }
        if behind != 0 {
            self.insert(FreeRange { start: start + length, length: behind, ..range });
        }
    }

    #[inline]
    fn insert(&mut self, range: FreeRange) {
        self.ranges.insert(range.start, range);
        self.by_length.entry(range.owner).or_default().insert((range.length, range.start));
    }

    #[inline]
    fn remove(&mut self, range: FreeRange) {
        self.ranges.remove(&range.start);
        if let Some(ranges) = self.by_length.get_mut(&range.owner) {
            ranges.remove(&(range.length, range.start));
            if ranges.is_empty() {
                self.by_length.remove(&range.owner);
            }
        }
    }

    /// The last range that begins before `address`.
    #[inline]
    fn before(&self, address: u64) -> Option<FreeRange> {
        self.ranges.range(..address).next_back().map(|(_, range)| *range)
    }

    /// Whether two ranges are neighbours that may be one.
    #[inline]
    fn joins(&self, left: &FreeRange, right: &FreeRange) -> bool {
        left.end() == right.start && left.owner == right.owner && !self.regions.contains_key(&right.start)
    }

    #[inline]
    fn overlaps(&self, start: u64, length: u64) -> bool {
        self.before(start + length).is_some_and(|range| range.end() > start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Generation = Generation(1);
    const NEW: Generation = Generation(2);
    const A: Owner = Owner(7);
    const B: Owner = Owner(8);

    fn heap() -> Heap {
        let mut heap = Heap::default();
        heap.declare(0x1000, 0x1000);
        heap.free(0x1000, 0x1000, Owner::ALL, OLD);
        heap
    }

    fn ranges(heap: &Heap) -> Vec<(u64, u64, Owner)> {
        heap.ranges().map(|range| (range.start, range.length, range.owner)).collect()
    }

    #[test]
    fn neighbours_of_one_owner_are_joined() {
        let mut heap = heap();
        let blocks: Vec<u64> = (0..4).map(|_| heap.allocate(A, 0x200, 0x200).expect("there is room")).collect();
        assert_eq!(blocks, [0x1000, 0x1200, 0x1400, 0x1600]);
        heap.free(0x1000, 0x200, A, OLD);
        heap.free(0x1400, 0x200, A, OLD);
        assert_eq!(heap.longest(A), 0x800);
        heap.free(0x1200, 0x200, A, NEW);
        assert_eq!(ranges(&heap), [(0x1000, 0x600, A), (0x1800, 0x800, Owner::ALL)]);
        heap.promote(A, OLD);
        assert_eq!(ranges(&heap).len(), 2, "a joined range is as new as its newest part");
        heap.promote(A, NEW);
        assert_eq!(ranges(&heap), [(0x1000, 0x600, Owner::ALL), (0x1800, 0x800, Owner::ALL)]);
        heap.free(0x1600, 0x200, Owner::ALL, OLD);
        assert_eq!(ranges(&heap), [(0x1000, 0x1000, Owner::ALL)]);
    }

    #[test]
    fn memory_of_another_owner_is_not_handed_out() {
        let mut heap = heap();
        let all = heap.allocate(A, 0x1000, 0x200).expect("there is room");
        heap.free(all, 0x1000, A, OLD);
        assert_eq!(heap.allocate(B, 0x200, 0x200), None);
        assert_eq!(heap.allocate(A, 0x200, 0x200), Some(0x1000));
    }

    #[test]
    fn regions_are_not_joined() {
        let mut heap = heap();
        heap.declare(0x2000, 0x800);
        heap.free(0x2000, 0x800, Owner::ALL, OLD);
        assert_eq!(heap.allocate(A, 0x1200, 0x200), None);
        assert_eq!(ranges(&heap), [(0x1000, 0x1000, Owner::ALL), (0x2000, 0x800, Owner::ALL)]);
        assert!(heap.withdraw(0x2000, 0x800));
        heap.undeclare(0x2000);
        assert_eq!(ranges(&heap), [(0x1000, 0x1000, Owner::ALL)]);
    }

    #[test]
    fn alignment_leaves_what_lies_before() {
        let mut heap = heap();
        assert_eq!(heap.allocate(A, 0x200, 0x200), Some(0x1000));
        assert_eq!(heap.allocate(A, 0x200, 0x800), Some(0x1800));
        assert_eq!(ranges(&heap), [(0x1200, 0x600, Owner::ALL), (0x1a00, 0x600, Owner::ALL)]);
        assert_eq!(heap.allocate(A, 0x200, 0x1000), None);
    }

    #[test]
    fn only_what_is_free_for_all_is_withdrawn() {
        let mut heap = heap();
        let block = heap.allocate(A, 0x400, 0x200).expect("there is room");
        assert!(!heap.withdraw(0x1200, 0x400));
        heap.free(block, 0x400, A, OLD);
        assert!(!heap.withdraw(0x1000, 0x1000));
        heap.promote(A, OLD);
        assert!(heap.withdraw(0x1400, 0x400));
        assert_eq!(ranges(&heap), [(0x1000, 0x400, Owner::ALL), (0x1800, 0x800, Owner::ALL)]);
        assert_eq!(heap.ending_at(0x1400).map(|range| range.start), Some(0x1000));
        assert_eq!(heap.ending_at(0x1300), None);
    }
}
