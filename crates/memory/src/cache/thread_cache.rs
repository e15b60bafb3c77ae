//! The free blocks of one thread and one stream.

use super::central_heap::Counts;
use super::free_lists::FreeLists;
use super::size_class::{BlockSize, SizeClass};

/// The free blocks of one stream that one thread keeps.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    /// The allocations and deallocations served by this cache.
    pub(super) counts: Counts,
    /// The number of bytes by which deallocations have exceeded allocations.
    net_freed: u64,
    /// The value of `net_freed` at which the cache is idle.
    idle_limit: u64,
    lists: FreeLists,
    /// Blocks without a class, with their sizes.
    large: Vec<(u64, u64)>,
}

/// The approximate number of bytes that a cache keeps per class.
const CLASS_BYTES: u64 = 16 << 20;
/// The minimum number of blocks per class.
const MIN_BLOCKS: u64 = 2;
/// The maximum number of blocks per class.
const MAX_BLOCKS: u64 = 64;
/// The maximum number of blocks without a class.
const MAX_LARGE_BLOCKS: usize = 4;

impl ThreadCache {
    /// Returns the maximum number of blocks of `class`.
    pub(crate) fn capacity(class: SizeClass) -> usize {
        (CLASS_BYTES / class.bytes()).clamp(MIN_BLOCKS, MAX_BLOCKS) as usize
    }

    /// Creates an empty cache, which is idle unless the limit is `u64::MAX`.
    pub(crate) fn with_idle_limit(idle_limit: u64) -> Self {
        Self {
            net_freed: if idle_limit == u64::MAX {
                0
            } else {
                idle_limit
            },
            idle_limit,
            counts: Counts::default(),
            lists: FreeLists::default(),
            large: Vec::new(),
        }
    }

    /// Records an allocation, which need not be served by this cache.
    #[inline]
    pub(super) fn record_allocation(&mut self, bytes: usize) {
        self.net_freed = self.net_freed.saturating_sub(bytes as u64);
    }

    /// Records a deallocation.
    #[inline]
    pub(super) fn record_free(&mut self, bytes: usize) {
        self.net_freed += bytes as u64;
    }

    /// Returns `true` if most memory that was in use has been freed, as between two repetitions of
    /// the same work. The next allocation then begins with all free memory coalesced: what it finds
    /// does not depend on the order of earlier deallocations.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.net_freed >= self.idle_limit
    }

    /// Ends the idleness.
    pub(super) fn begin_count(&mut self) {
        self.net_freed = 0;
    }

    /// Sets the limit, and ends the idleness.
    pub(super) fn set_idle_limit(&mut self, idle_limit: u64) {
        self.idle_limit = idle_limit;
        self.begin_count();
    }

    /// Takes a free block.
    #[inline]
    pub(crate) fn take(&mut self, size: BlockSize) -> Option<u64> {
        match size {
            BlockSize::Class(class) => self.lists.list(class).pop(),
            BlockSize::Large(bytes) => self.take_large(bytes),
        }
    }

    /// Adds a free block. Returns `false` if there is no room.
    #[inline]
    pub(crate) fn insert(&mut self, size: BlockSize, address: u64) -> bool {
        match size {
            BlockSize::Class(class) => {
                let list = self.lists.list(class);
                if list.len() == list.capacity() && !reserve(list, class) {
                    return false;
                }
                list.push(address);
            }
            BlockSize::Large(bytes) => return self.insert_large(bytes, address),
        }
        true
    }

    #[cold]
    fn take_large(&mut self, bytes: u64) -> Option<u64> {
        let position = self.large.iter().rposition(|(size, _)| *size == bytes)?;
        Some(self.large.remove(position).1)
    }

    #[cold]
    fn insert_large(&mut self, bytes: u64, address: u64) -> bool {
        let has_room = self.large.len() < MAX_LARGE_BLOCKS;
        if has_room {
            self.large.push((bytes, address));
        }
        has_room
    }

    /// Takes the older half of the blocks of a class, to make room. Large blocks are kept.
    #[cold]
    pub(crate) fn take_older_half(&mut self, size: BlockSize) -> Vec<u64> {
        let BlockSize::Class(class) = size else {
            return Vec::new();
        };
        let list = self.lists.list(class);
        list.drain(..list.len().div_ceil(2)).collect()
    }

    /// Removes all blocks.
    pub(crate) fn drain(&mut self, mut block: impl FnMut(BlockSize, u64)) {
        self.lists
            .drain(|class, address| block(BlockSize::Class(class), address));
        self.large
            .drain(..)
            .for_each(|(bytes, address)| block(BlockSize::Large(bytes), address));
    }

    /// Returns the size of all blocks in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.lists.bytes() + self.large.iter().map(|(bytes, _)| bytes).sum::<u64>()
    }
}

/// Reserves memory for the maximum number of blocks of a class. Returns `false` if it was already
/// reserved.
#[cold]
fn reserve(list: &mut Vec<u64>, class: SizeClass) -> bool {
    let capacity = ThreadCache::capacity(class);
    let has_room = list.len() < capacity;
    if has_room {
        list.reserve_exact(capacity - list.len());
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_freed_last_is_reused_first() {
        let mut cache = ThreadCache::with_idle_limit(u64::MAX);
        let size = BlockSize::from_bytes(4096);
        assert_eq!(cache.take(size), None);
        assert!(cache.insert(size, 512) && cache.insert(size, 1024));
        assert_eq!(cache.take(BlockSize::from_bytes(8192)), None);
        assert_eq!(
            (cache.take(size), cache.take(size), cache.take(size)),
            (Some(1024), Some(512), None)
        );
    }

    #[test]
    fn full_cache_spills_older_blocks() {
        let mut cache = ThreadCache::with_idle_limit(u64::MAX);
        let size = BlockSize::from_bytes(1 << 20);
        let BlockSize::Class(class) = size else {
            panic!("1 MiB has a class")
        };
        let capacity = ThreadCache::capacity(class) as u64;
        assert!((0..capacity).all(|block| cache.insert(size, block)));
        assert!(!cache.insert(size, capacity));
        assert_eq!(cache.bytes(), capacity << 20);
        assert_eq!(
            cache.take_older_half(size),
            (0..capacity / 2).collect::<Vec<_>>()
        );
        assert!(cache.insert(size, capacity));
        assert_eq!(cache.take(size), Some(capacity));
    }

    #[test]
    fn large_blocks_are_kept_by_their_exact_size() {
        let mut cache = ThreadCache::with_idle_limit(u64::MAX);
        let size = BlockSize::from_bytes(64 << 20);
        let other = BlockSize::from_bytes(66 << 20);
        assert!(
            cache.insert(size, 1)
                && cache.insert(other, 2)
                && cache.insert(size, 3)
                && cache.insert(size, 4)
        );
        assert!(!cache.insert(size, 5));
        assert_eq!(
            (cache.take(size), cache.take(other), cache.take(other)),
            (Some(4), Some(2), None)
        );
        let mut drained = Vec::new();
        cache.drain(|size, address| drained.push((size, address)));
        assert_eq!(drained, [(size, 1), (size, 3)]);
        assert_eq!(cache.bytes(), 0);
    }
}
