//! The free memory of all threads.

use std::collections::HashMap;

use super::class::{Class, GRANULE, Rounded};
use super::heap::{FreeRange, Heap, Owner};

/// A point in the order in which an owner frees memory. Memory freed later has a later one.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Generation(pub(crate) u64);

impl Generation {
    /// Covers all memory, whenever it was freed.
    pub(crate) const LAST: Self = Self(u64::MAX);
}

/// Free memory: blocks of each owner by size class, and ranges of any length.
#[derive(Debug, Default)]
pub(crate) struct Store {
    heap: Heap,
    lists: HashMap<Owner, Lists>,
}

/// The free blocks of one owner.
#[derive(Debug)]
struct Lists {
    classes: Box<[Vec<u64>]>,
    /// What is freed now belongs to this generation.
    generation: Generation,
    /// Whether the heap holds memory of this generation.
    has_unmarked: bool,
    /// Whether there is a block in a list.
    has_blocks: bool,
}

/// Blocks of small classes are cut from spans of this many bytes, so that they lie together.
const SPAN: u64 = 64 << 10;

impl Store {
    /// The heap, for those who add, withdraw and look at ranges.
    #[inline]
    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// As [`Store::heap`].
    #[inline]
    pub(crate) fn heap_mut(&mut self) -> &mut Heap {
        &mut self.heap
    }

    /// Takes up to `most` blocks of a class for `owner`, and returns how many. They are pushed to `blocks`.
    #[inline]
    pub(crate) fn take(&mut self, owner: Owner, class: Class, most: usize, blocks: &mut Vec<u64>) -> usize {
        if let Some(lists) = self.lists.get_mut(&owner) {
            let list = &mut lists.classes[class.index()];
            if !list.is_empty() {
                let kept = list.len().saturating_sub(most);
                let taken = list.len() - kept;
                blocks.extend(list.drain(kept..));
                return taken;
            }
        }
        self.cut(owner, class, most, blocks)
    }

    /// Takes one range for `owner`.
    #[inline]
    pub(crate) fn take_range(&mut self, owner: Owner, length: u64, alignment: u64) -> Option<u64> {
        self.heap.allocate(owner, length, alignment.max(GRANULE))
    }

    /// Frees a block for `owner`.
    #[inline]
    pub(crate) fn give(&mut self, owner: Owner, size: Rounded, address: u64) {
        let lists = self.lists.entry(owner).or_default();
        match size {
            Rounded::Class(class) => {
                lists.classes[class.index()].push(address);
                lists.has_blocks = true;
            }
            Rounded::Large(length) => {
                lists.has_unmarked = true;
                self.heap.free(address, length, owner, lists.generation);
            }
        }
    }

    /// Moves the blocks of an owner from its lists to the heap, where they join.
    #[inline]
    pub(crate) fn settle(&mut self, owner: Owner) {
        let Some(lists) = self.lists.get_mut(&owner).filter(|lists| lists.has_blocks) else { return };
        lists.has_blocks = false;
        lists.has_unmarked = true;
        for (index, list) in lists.classes.iter_mut().enumerate() {
            let bytes = Class::at(index).bytes();
            list.drain(..).for_each(|address| self.heap.free(address, bytes, owner, lists.generation));
        }
    }

    /// Settles every owner.
    #[inline]
    pub(crate) fn settle_all(&mut self) {
        self.owners().into_iter().for_each(|owner| self.settle(owner));
    }

    /// Settles an owner and, if the heap holds memory of it that no mark covers, begins a new generation: whoever then sees the owner
    /// pass a point from now on may [promote](Store::promote) the generation that is returned.
    #[inline]
    pub(crate) fn mark(&mut self, owner: Owner) -> Option<Generation> {
        self.settle(owner);
        let lists = self.lists.get_mut(&owner).filter(|lists| lists.has_unmarked)?;
        let marked = lists.generation;
        lists.generation.0 += 1;
        lists.has_unmarked = false;
        Some(marked)
    }

    /// Frees for all what an owner freed up to a generation.
    #[inline]
    pub(crate) fn promote(&mut self, owner: Owner, generation: Generation) {
        self.heap.promote(owner, generation);
    }

    /// The owners that have freed something.
    #[inline]
    pub(crate) fn owners(&self) -> Vec<Owner> {
        self.lists.keys().copied().collect()
    }

    /// Forgets an owner that frees nothing any more, and says whether it did: not as long as anything is free for it alone.
    #[inline]
    pub(crate) fn forget(&mut self, owner: Owner) -> bool {
        let has_blocks = self.lists.get(&owner).is_some_and(|lists| lists.has_blocks);
        let is_done = !has_blocks && !self.heap.has(owner);
        if is_done {
            self.lists.remove(&owner);
        }
        is_done
    }

    /// Settles every owner, and begins a new generation of each: whoever then sees them all pass may promote those that are returned.
    #[inline]
    pub(crate) fn mark_all(&mut self) -> Vec<(Owner, Generation)> {
        let owners = self.owners().into_iter();
        owners
            .filter_map(|owner| {
                self.mark(owner);
                let newest = self.lists.get(&owner)?.generation.0.checked_sub(1)?;
                Some((owner, Generation(newest)))
            })
            .collect()
    }

    /// The free ranges, with the blocks in lists as ranges of their owners.
    #[inline]
    pub(crate) fn free_ranges(&self) -> Vec<FreeRange> {
        let blocks = self.lists.iter().flat_map(|(owner, lists)| {
            lists.classes.iter().enumerate().flat_map(move |(index, list)| {
                let length = Class::at(index).bytes();
                let generation = lists.generation;
                list.iter().map(move |start| FreeRange { start: *start, length, owner: *owner, generation })
            })
        });
        let mut ranges: Vec<FreeRange> = self.heap.ranges().copied().chain(blocks).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }

    /// Cuts blocks from one span of the heap.
    #[inline]
    fn cut(&mut self, owner: Owner, class: Class, most: usize, blocks: &mut Vec<u64>) -> usize {
        let bytes = class.bytes();
        let count = (SPAN / bytes).clamp(1, most.max(1) as u64);
        if let Some(start) = self.heap.allocate(owner, bytes * count, GRANULE) {
            // In this order the lowest address is handed out first.
            blocks.extend((0..count).rev().map(|block| start + block * bytes));
            return count as usize;
        }
        let Some(start) = self.heap.allocate(owner, bytes, GRANULE) else { return 0 };
        blocks.push(start);
        1
    }
}

impl Default for Lists {
    #[inline]
    fn default() -> Self {
        Self {
            classes: std::iter::repeat_with(Vec::new).take(Class::COUNT).collect(),
            generation: Generation::default(),
            has_unmarked: false,
            has_blocks: false,
        }
    }
}
