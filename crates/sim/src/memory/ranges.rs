//! Free ranges of an address range.

use std::collections::BTreeMap;

/// Allocates ranges in ascending order and cyclically, so a freed range is reused as late as
/// possible.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// The start and the end of each free range. No two ranges touch.
    free: BTreeMap<u64, u64>,
    /// The end of the last allocated range.
    cursor: u64,
}

impl Ranges {
    /// Creates the single free range `0..end`.
    pub(crate) fn new(end: u64) -> Self {
        Self {
            free: BTreeMap::from([(0, end)]),
            cursor: 0,
        }
    }

    /// Returns the start of the first free range from `cursor` on with `size` after a multiple of
    /// `alignment`.
    fn first_fit(&self, cursor: u64, size: u64, alignment: u64) -> Option<u64> {
        self.free
            .range(cursor..)
            .find(|(start, end)| {
                start
                    .next_multiple_of(alignment)
                    .checked_add(size)
                    .is_some_and(|last| last <= **end)
            })
            .map(|(start, _)| *start)
    }

    /// Allocates a range of `size` at a multiple of `alignment`, and returns its start.
    pub(crate) fn allocate(&mut self, size: u64, alignment: u64) -> Option<u64> {
        self.split_at_cursor();
        // Addresses are reused only if no free range follows the cursor.
        let free = match self.first_fit(self.cursor, size, alignment) {
            Some(free) => free,
            None => {
                self.merge();
                self.first_fit(0, size, alignment)?
            }
        };
        let end = self.free.remove(&free)?;
        let start = free.next_multiple_of(alignment);
        if start > free {
            self.free.insert(free, start);
        }
        if end > start + size {
            self.free.insert(start + size, end);
        }
        self.cursor = start + size;
        Some(start)
    }

    /// Frees an allocated range.
    pub(crate) fn free(&mut self, start: u64, size: u64) {
        self.free.insert(start, start + size);
    }

    /// Splits the free range that contains the cursor, so that its second part can be found by its
    /// start.
    fn split_at_cursor(&mut self) {
        let cursor = self.cursor;
        if let Some((_, end)) = self.free.range_mut(..cursor).next_back()
            && *end > cursor
        {
            let ahead = std::mem::replace(end, cursor);
            self.free.insert(cursor, ahead);
        }
    }

    /// Merges adjacent free ranges.
    fn merge(&mut self) {
        let mut merged: BTreeMap<u64, u64> = BTreeMap::new();
        for (start, end) in std::mem::take(&mut self.free) {
            match merged.last_entry() {
                Some(mut last) if *last.get() == start => *last.get_mut() = end,
                _ => {
                    merged.insert(start, end);
                }
            }
        }
        self.free = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_range_is_reused_only_after_all_others() {
        let mut ranges = Ranges::new(4);
        assert_eq!(ranges.allocate(1, 1), Some(0));
        ranges.free(0, 1);
        assert_eq!(
            (
                ranges.allocate(1, 1),
                ranges.allocate(1, 1),
                ranges.allocate(1, 1)
            ),
            (Some(1), Some(2), Some(3))
        );
        assert_eq!(ranges.allocate(1, 1), Some(0));
        assert_eq!(ranges.allocate(1, 1), None);
    }

    #[test]
    fn freed_neighbors_are_merged_for_a_larger_request() {
        let mut ranges = Ranges::new(6);
        for start in 0..6 {
            assert_eq!(ranges.allocate(1, 1), Some(start));
        }
        ranges.free(3, 1);
        ranges.free(1, 1);
        ranges.free(2, 1);
        assert_eq!(ranges.allocate(4, 1), None);
        assert_eq!(ranges.allocate(3, 1), Some(1));
    }

    /// The range before an aligned one stays free, and is allocated when the ranges after the
    /// cursor are.
    #[test]
    fn aligned_range_starts_at_a_multiple() {
        let mut ranges = Ranges::new(32);
        assert_eq!(ranges.allocate(1, 1), Some(0));
        assert_eq!(ranges.allocate(8, 8), Some(8));
        assert_eq!(ranges.allocate(1, 1), Some(16));
        assert_eq!(ranges.allocate(8, 8), Some(24));
        assert_eq!(ranges.allocate(8, 8), None);
        assert_eq!(ranges.allocate(7, 1), Some(1));
    }

    #[test]
    fn allocated_ranges_never_overlap() {
        let mut ranges = Ranges::new(1 << 12);
        let mut held: Vec<(u64, u64)> = Vec::new();
        for step in 0..10_000_u64 {
            let size = 1 + step * 7919 % 97;
            let alignment = 1 << (step % 5);
            match ranges.allocate(size, alignment) {
                Some(start) => {
                    assert_eq!(start % alignment, 0);
                    assert!(start + size <= 1 << 12);
                    assert!(
                        held.iter().all(
                            |(other, length)| start + size <= *other || other + length <= start
                        )
                    );
                    held.push((start, size));
                }
                None => {
                    let (start, size) = held.swap_remove((step % held.len() as u64) as usize);
                    ranges.free(start, size);
                }
            }
        }
    }
}
