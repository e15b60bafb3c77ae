//! The free memory that all threads share, and the bins of each thread.

use std::sync::Arc;

use parking_lot::Mutex;

use super::claim::Claim;
use crate::cache::{Bins, Class, Overflow, Owner, Rounded, Store};

/// The free memory of a resource. It knows no driver, so that a thread that ends may put its free memory back at any time: the
/// resource itself may be gone by then, and the driver must not be called.
#[derive(Debug, Default)]
pub(super) struct Depot {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) store: Store,
    /// The bins of every thread and stream.
    shelves: Vec<Arc<Shelf>>,
    /// What was allocated and freed without bins, or by threads that have ended.
    counts: Counts,
    /// Whether the resource is gone, and its memory with it.
    is_closed: bool,
}

/// The free blocks that one thread holds of one stream. On a line of its own, so that threads do not slow each other down.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shelf {
    pub(super) owner: Owner,
    content: Claim<Content>,
}

#[derive(Debug)]
struct Content {
    counts: Counts,
    bins: Bins,
}

/// How much was allocated and freed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    pub(super) allocations: u64,
    pub(super) frees: u64,
    pub(super) allocated_bytes: u64,
    pub(super) freed_bytes: u64,
    /// The allocations that the bins of the calling thread served.
    pub(super) hits: u64,
}

/// What a depot and the bins of all threads hold.
pub(super) struct Holdings {
    pub(super) counts: Counts,
    pub(super) free_bytes: u64,
    /// The longest range that is free for everybody.
    pub(super) longest_free_bytes: u64,
}

/// What became of a block that was to be held.
pub(super) enum Put {
    Held,
    /// It is held, and others had to leave.
    Spilled(Overflow),
    /// There is no room.
    Refused,
}

impl Shelf {
    #[inline]
    fn new(owner: Owner) -> Self {
        Self { owner, content: Claim::new(Content { counts: Counts::default(), bins: Bins::new() }) }
    }

    /// A free block, for an allocation of `bytes` bytes.
    #[inline]
    pub(super) fn take(&self, size: Rounded, bytes: usize) -> Option<u64> {
        let mut content = self.content.attempt()?;
        let address = content.bins.take(size)?;
        content.counts.allocations += 1;
        content.counts.hits += 1;
        content.counts.allocated_bytes += bytes as u64;
        Some(address)
    }

    /// Holds a block that was freed, of an allocation of `bytes` bytes.
    #[inline]
    pub(super) fn put(&self, size: Rounded, address: u64, bytes: usize) -> Put {
        let Some(mut content) = self.content.attempt() else { return Put::Refused };
        if !content.bins.put(size, address) {
            return content.put_with_force(size, address, bytes);
        }
        content.counts.free(bytes);
        Put::Held
    }

    /// Holds blocks that were taken in advance, and returns those that found no room.
    #[inline]
    fn stock(&self, class: Class, blocks: Vec<u64>) -> Vec<u64> {
        let Some(mut content) = self.content.attempt() else { return blocks };
        let mut rest = blocks.into_iter();
        let refused = rest.by_ref().find(|address| !content.bins.put(Rounded::Class(class), *address));
        refused.into_iter().chain(rest).collect()
    }
}

impl Content {
    #[cold]
    #[inline]
    fn put_with_force(&mut self, size: Rounded, address: u64, bytes: usize) -> Put {
        let overflow = self.bins.overflow(size);
        if !self.bins.put(size, address) {
            return Put::Refused;
        }
        self.counts.free(bytes);
        Put::Spilled(overflow)
    }
}

impl Counts {
    #[inline]
    fn free(&mut self, bytes: usize) {
        self.frees += 1;
        self.freed_bytes += bytes as u64;
    }

    #[inline]
    fn allocate(&mut self, bytes: usize) {
        self.allocations += 1;
        self.allocated_bytes += bytes as u64;
    }

    #[inline]
    fn add(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.allocated_bytes += other.allocated_bytes;
        self.freed_bytes += other.freed_bytes;
        self.hits += other.hits;
    }
}

impl Depot {
    /// New bins, for the calling thread.
    #[inline]
    pub(super) fn add_shelf(&self, owner: Owner) -> Arc<Shelf> {
        let shelf = Arc::new(Shelf::new(owner));
        self.state.lock().shelves.push(Arc::clone(&shelf));
        shelf
    }

    /// Takes the blocks of bins whose thread ends, or does not use them any more.
    #[inline]
    pub(super) fn remove_shelf(&self, shelf: &Arc<Shelf>) {
        let mut state = self.state.lock();
        state.shelves.retain(|other| !Arc::ptr_eq(other, shelf));
        state.retire(shelf);
    }

    /// Forgets an owner that frees nothing any more, with the bins that threads have for it, and says whether it did: not as long as
    /// anything is free for it alone.
    #[inline]
    pub(super) fn forget(&self, owner: Owner) -> bool {
        let mut state = self.state.lock();
        let of_owner: Vec<_> = state.shelves.extract_if(.., |shelf| shelf.owner == owner).collect();
        of_owner.iter().for_each(|shelf| state.retire(shelf));
        state.store.forget(owner)
    }

    /// Memory that is free for `owner`: a block from the lists, with more for the bins of the calling thread, or a range.
    #[inline]
    pub(super) fn take(&self, owner: Owner, size: Rounded, alignment: u64, shelf: Option<&Shelf>) -> Option<u64> {
        let Rounded::Class(class) = size else { return self.take_range(owner, size, alignment) };
        if alignment > crate::cache::GRANULE {
            return self.take_range(owner, size, alignment);
        }
        let mut blocks = Vec::new();
        let most = if shelf.is_some() { Bins::capacity(class).div_ceil(2) } else { 1 };
        self.state.lock().store.take(owner, class, most, &mut blocks);
        let address = blocks.pop()?;
        // The claim comes after the lock is gone: whoever holds the lock may wait for claims.
        let rest = shelf.map_or_else(Vec::new, |shelf| shelf.stock(class, blocks));
        if !rest.is_empty() {
            self.give_blocks(owner, size, rest);
        }
        Some(address)
    }

    /// Takes blocks back that are free for `owner`.
    #[inline]
    pub(super) fn give_blocks(&self, owner: Owner, size: Rounded, blocks: Vec<u64>) {
        let mut state = self.state.lock();
        blocks.into_iter().for_each(|address| state.give(owner, size, address));
    }

    /// Takes a block back that was allocated with `bytes` bytes.
    #[inline]
    pub(super) fn free(&self, owner: Owner, size: Rounded, address: u64, bytes: usize) {
        let mut state = self.state.lock();
        state.give(owner, size, address);
        state.counts.free(bytes);
    }

    /// Counts an allocation that the bins did not serve.
    #[inline]
    pub(super) fn count(&self, bytes: usize) {
        self.state.lock().counts.allocate(bytes);
    }

    /// Counts a free that no bin saw.
    #[inline]
    pub(super) fn count_free(&self, bytes: usize) {
        self.state.lock().counts.free(bytes);
    }

    /// Has `operation` look at the store.
    #[inline]
    pub(super) fn with_store<T>(&self, operation: impl FnOnce(&mut Store) -> T) -> T {
        operation(&mut self.state.lock().store)
    }

    /// Empties the bins of all threads.
    #[inline]
    pub(super) fn collect(&self) {
        let mut state = self.state.lock();
        let shelves = state.shelves.clone();
        shelves.iter().for_each(|shelf| state.empty(shelf));
    }

    /// What is counted and what is free at one moment: a thread that ends meanwhile is seen before or after.
    #[inline]
    pub(super) fn holdings(&self) -> Holdings {
        let state = self.state.lock();
        let (mut counts, mut free_bytes) = (state.counts, 0);
        for shelf in &state.shelves {
            let content = shelf.content.wait();
            counts.add(content.counts);
            free_bytes += content.bins.bytes();
        }
        free_bytes += state.store.free_ranges().iter().map(|range| range.length).sum::<u64>();
        Holdings { counts, free_bytes, longest_free_bytes: state.store.heap().longest(Owner::ALL) }
    }

    /// Takes the blocks of all bins and puts them together with the rest. Nothing is taken back from now on.
    #[inline]
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let shelves = std::mem::take(&mut state.shelves);
        shelves.iter().for_each(|shelf| state.empty(shelf));
        state.store.settle_all();
        state.is_closed = true;
    }

    /// Forgets what is free, since the memory is gone.
    #[inline]
    pub(super) fn forget_all(&self) {
        self.state.lock().store = Store::default();
    }

    #[inline]
    fn take_range(&self, owner: Owner, size: Rounded, alignment: u64) -> Option<u64> {
        self.state.lock().store.take_range(owner, size.bytes(), alignment)
    }
}

impl State {
    /// Takes what bins hold, and what they counted.
    #[inline]
    fn retire(&mut self, shelf: &Shelf) {
        self.empty(shelf);
        let counts = std::mem::take(&mut shelf.content.wait().counts);
        self.counts.add(counts);
    }

    #[inline]
    fn empty(&mut self, shelf: &Shelf) {
        shelf.content.wait().bins.drain(|size, address| self.give(shelf.owner, size, address));
    }

    #[inline]
    fn give(&mut self, owner: Owner, size: Rounded, address: u64) {
        if !self.is_closed {
            self.store.give(owner, size, address);
        }
    }
}
