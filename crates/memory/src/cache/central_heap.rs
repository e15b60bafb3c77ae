//! The heap that all threads share.

use std::sync::Arc;

use parking_lot::Mutex;

use super::heap::{Heap, StreamId};
use super::local::LocalCache;
use super::size_class::{BlockSize, GRANULE, SizeClass};
use super::thread_cache::ThreadCache;

/// The free memory of a resource, and the caches of all threads. It makes no driver calls. A thread
/// that exits can therefore return its blocks at any time, even after the resource or the driver
/// has been dropped.
#[derive(Debug)]
pub(crate) struct CentralHeap {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    heap: Heap,
    /// The caches of every thread and stream.
    caches: Vec<Arc<LocalCache>>,
    /// The allocations and deallocations that bypassed the thread caches, and those of threads that
    /// have exited.
    counts: Counts,
    /// The number of bytes freed by a thread cache after which it is idle.
    idle_limit: u64,
}

/// The number and total size of allocations and deallocations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) freed_bytes: u64,
    /// The number of allocations served by a thread cache.
    pub(crate) hits: u64,
}

/// The memory usage at one point in time.
pub(crate) struct Usage {
    pub(crate) counts: Counts,
    pub(crate) reserved_bytes: u64,
    pub(crate) free_bytes: u64,
    /// The longest range that is available to every stream.
    pub(crate) longest_free_bytes: u64,
}

impl Counts {
    #[inline]
    pub(super) fn add_free(&mut self, bytes: usize) {
        self.frees += 1;
        self.freed_bytes += bytes as u64;
    }

    #[inline]
    pub(super) fn add_hit(&mut self, bytes: usize) {
        self.hits += 1;
        self.add_allocation(bytes);
    }

    #[inline]
    fn add_allocation(&mut self, bytes: usize) {
        self.allocations += 1;
        self.allocated_bytes += bytes as u64;
    }

    fn add(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.allocated_bytes += other.allocated_bytes;
        self.freed_bytes += other.freed_bytes;
        self.hits += other.hits;
    }
}

impl CentralHeap {
    /// Creates an empty heap. `is_contiguous` is `true` if free memory coalesces across segments.
    pub(crate) fn new(is_contiguous: bool) -> Self {
        let heap = Heap::new(is_contiguous);
        let counts = Counts::default();
        Self {
            state: Mutex::new(State {
                heap,
                caches: Vec::new(),
                counts,
                idle_limit: u64::MAX,
            }),
        }
    }

    /// Locks the heap for `operation`, which must not call user code or the driver.
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&mut Heap) -> T) -> T {
        operation(&mut self.state.lock().heap)
    }

    /// Takes free memory for `stream`. `cache`, the calling thread's cache, is refilled with blocks
    /// of the same class.
    pub(crate) fn take(
        &self,
        stream: StreamId,
        size: BlockSize,
        alignment: u64,
        cache: Option<&LocalCache>,
    ) -> Option<u64> {
        match size {
            BlockSize::Class(class) if alignment <= GRANULE => {
                self.take_block(stream, class, cache)
            }
            _ => self.with(|heap| heap.take_range(stream, size.bytes(), alignment)),
        }
    }

    /// Frees blocks for `stream`.
    pub(crate) fn return_blocks(
        &self,
        stream: StreamId,
        size: BlockSize,
        blocks: impl IntoIterator<Item = u64>,
    ) {
        let mut state = self.state.lock();
        blocks
            .into_iter()
            .for_each(|address| state.heap.free(stream, size, address));
    }

    /// Counts an allocation that no thread cache served.
    pub(crate) fn count_allocation(&self, bytes: usize) {
        self.state.lock().counts.add_allocation(bytes);
    }

    /// Counts a deallocation that no thread cache received.
    pub(crate) fn count_free(&self, bytes: usize) {
        self.state.lock().counts.add_free(bytes);
    }

    /// Registers a new cache of the calling thread.
    pub(super) fn add_cache(&self, stream: StreamId) -> Arc<LocalCache> {
        let mut state = self.state.lock();
        let cache = Arc::new(LocalCache::new(stream, state.idle_limit));
        state.caches.push(Arc::clone(&cache));
        cache
    }

    /// Unregisters a cache and takes its blocks.
    pub(super) fn remove_cache(&self, cache: &Arc<LocalCache>) {
        // In a forked child, a lock held by another thread at the time of the fork is never
        // unlocked. `flush_caches` takes the blocks later.
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        state.caches.retain(|other| !Arc::ptr_eq(other, cache));
        state.retire(std::slice::from_ref(cache));
    }

    /// Removes a stream that frees no more memory, and its thread caches. Returns `false` if memory
    /// is available to this stream only.
    pub(crate) fn forget(&self, stream: StreamId) -> bool {
        let mut state = self.state.lock();
        let caches: Vec<_> = state
            .caches
            .extract_if(.., |cache| cache.stream == stream)
            .collect();
        state.retire(&caches);
        state.heap.forget(stream)
    }

    /// Sets the number of bytes freed by a thread cache after which it is idle, from the next
    /// [flush](Self::flush_caches) on.
    pub(crate) fn set_idle_limit(&self, idle_limit: u64) {
        self.state.lock().idle_limit = idle_limit;
    }

    /// Takes the blocks of all thread caches, none of which is idle afterwards.
    pub(crate) fn flush_caches(&self) {
        let mut state = self.state.lock();
        // The caches of threads that exited while the heap was locked.
        let orphans: Vec<_> = state
            .caches
            .extract_if(.., |cache| Arc::strong_count(cache) == 1)
            .collect();
        state.retire(&orphans);
        let caches = state.caches.clone();
        for (mut content, cache) in LocalCache::lock_all(&caches)
            .into_iter()
            .flatten()
            .zip(&caches)
        {
            state.empty(&mut content, cache.stream);
            content.set_idle_limit(state.idle_limit);
        }
    }

    /// Returns the memory usage. A thread that exits in the meantime is counted once.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.state.lock();
        let mut counts = state.counts;
        let mut free_bytes = state.heap.free_bytes();
        // All caches are locked at the same time, so that no block is counted twice.
        let caches = LocalCache::lock_all(&state.caches).unwrap_or_default();
        for cache in &caches {
            counts.add(cache.counts);
            free_bytes += cache.bytes();
        }
        let reserved_bytes = state.heap.reserved_bytes();
        Usage {
            counts,
            reserved_bytes,
            free_bytes,
            longest_free_bytes: state.heap.longest(StreamId::ANY),
        }
    }

    /// Coalesces all free memory, including that in thread caches. Threads discard their caches
    /// from now on.
    pub(crate) fn close(&self) {
        self.flush_caches();
        let mut state = self.state.lock();
        state.caches.clear();
        state.heap.coalesce_all();
    }

    fn take_block(
        &self,
        stream: StreamId,
        class: SizeClass,
        cache: Option<&LocalCache>,
    ) -> Option<u64> {
        let mut blocks = Vec::new();
        let most = if cache.is_some() {
            ThreadCache::capacity(class).div_ceil(2)
        } else {
            1
        };
        self.with(|heap| heap.take_blocks(stream, class, most, &mut blocks));
        let address = blocks.pop()?;
        // Locked after the heap is unlocked, because the holder of the heap's lock waits for
        // caches.
        let surplus = cache.map_or_else(Vec::new, |cache| cache.refill(class, blocks));
        if !surplus.is_empty() {
            self.return_blocks(stream, BlockSize::Class(class), surplus);
        }
        Some(address)
    }
}

impl State {
    /// Takes the blocks and the counts of caches.
    fn retire(&mut self, caches: &[Arc<LocalCache>]) {
        for (mut content, cache) in LocalCache::lock_all(caches)
            .into_iter()
            .flatten()
            .zip(caches)
        {
            self.empty(&mut content, cache.stream);
            self.counts.add(std::mem::take(&mut content.counts));
        }
    }

    fn empty(&mut self, cache: &mut ThreadCache, stream: StreamId) {
        cache.drain(|size, address| self.heap.free(stream, size, address));
    }
}
