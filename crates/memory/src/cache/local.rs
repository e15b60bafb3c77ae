//! The calling thread's caches.

use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use super::biased_lock::{BiasedLock, Claimed, Owned};
use super::central_heap::CentralHeap;
use super::heap::StreamId;
use super::size_class::{BlockSize, SizeClass};
use super::thread_cache::ThreadCache;

thread_local! {
    static ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// The cache of one thread and one stream. It occupies its own cache lines, to avoid false sharing.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct LocalCache {
    pub(super) stream: StreamId,
    owner: ThreadId,
    cache: BiasedLock<ThreadCache>,
}

/// A cache of the calling thread. When the thread exits, the blocks return to the heap, without
/// driver calls, since the driver may already be gone.
struct Entry {
    stream: StreamId,
    heap: Arc<CentralHeap>,
    cache: Arc<LocalCache>,
}

impl LocalCache {
    /// Creates a cache of the calling thread.
    pub(super) fn new(stream: StreamId, idle_limit: u64) -> Self {
        Self {
            stream,
            owner: thread::current().id(),
            cache: BiasedLock::new(ThreadCache::with_idle_limit(idle_limit)),
        }
    }

    /// Allocates from the calling thread's cache, unless it is idle.
    #[inline]
    pub(crate) fn allocate(heap: &CentralHeap, stream: StreamId, bytes: usize) -> Option<u64> {
        with(heap, stream, |entry| {
            let mut cache = entry.own()?;
            if cache.is_idle() {
                return None;
            }
            cache.record_allocation(bytes);
            let address = cache.take(BlockSize::from_bytes(bytes))?;
            cache.counts.add_hit(bytes);
            Some(address)
        })
    }

    /// Frees a block into the calling thread's cache. Returns `None` if the cache did not accept
    /// it.
    #[inline]
    pub(crate) fn free(
        heap: &CentralHeap,
        stream: StreamId,
        address: u64,
        bytes: usize,
    ) -> Option<()> {
        let size = BlockSize::from_bytes(bytes);
        with(heap, stream, |entry| {
            let mut cache = entry.own()?;
            cache.record_free(bytes);
            if !cache.insert(size, address) {
                return entry.free_into_full_cache(cache, size, address, bytes);
            }
            cache.counts.add_free(bytes);
            Some(())
        })
    }

    /// Returns the calling thread's cache, if there is one.
    pub(crate) fn find(heap: &CentralHeap, stream: StreamId) -> Option<Arc<Self>> {
        with(heap, stream, |entry| Some(Arc::clone(&entry.cache)))
    }

    /// Creates a cache for the calling thread, which has none. Returns `None` if the thread is
    /// exiting.
    pub(crate) fn add(heap: &Arc<CentralHeap>, stream: StreamId) -> Option<Arc<Self>> {
        let added = ENTRIES.try_with(|entries| {
            let mut entries = entries.try_borrow_mut().ok()?;
            // The heap has dropped the caches of destroyed streams, and all caches if the resource
            // has been dropped.
            entries.retain(|entry| Arc::strong_count(&entry.cache) > 1);
            let cache = heap.add_cache(stream);
            entries.push(Entry {
                stream,
                heap: Arc::clone(heap),
                cache: Arc::clone(&cache),
            });
            Some(cache)
        });
        added.ok().flatten()
    }

    /// Returns `true` if the cache was [idle](ThreadCache::is_idle) until now. It is not idle
    /// afterwards.
    pub(crate) fn end_idleness(&self) -> bool {
        if self.owner != thread::current().id() {
            return false;
        }
        // SAFETY: this thread is the owner. Its other uses end with the functions of this module
        // that begin them, which do not call this.
        let Some(mut cache) = (unsafe { self.cache.own() }) else {
            return false;
        };
        let is_idle = cache.is_idle();
        if is_idle {
            cache.begin_count();
        }
        is_idle
    }

    /// Locks several caches. Callers hold the lock of the heap. Returns `None` if the system does
    /// not let other threads be excluded.
    pub(super) fn lock_all(caches: &[Arc<Self>]) -> Option<Vec<Claimed<'_, ThreadCache>>> {
        BiasedLock::claim_all(caches.iter().map(|cache| &cache.cache))
    }

    /// Adds blocks that were taken in advance. Returns those that did not fit.
    pub(super) fn refill(&self, class: SizeClass, blocks: Vec<u64>) -> Vec<u64> {
        if self.owner != thread::current().id() {
            return blocks;
        }
        // SAFETY: this thread is the owner. Its other uses end with the functions of this module
        // that begin them, which do not call this.
        let Some(mut cache) = (unsafe { self.cache.own() }) else {
            return blocks;
        };
        let mut blocks = blocks.into_iter();
        let refused = blocks
            .by_ref()
            .find(|address| !cache.insert(BlockSize::Class(class), *address));
        refused.into_iter().chain(blocks).collect()
    }
}

impl Entry {
    #[inline]
    fn belongs_to(&self, heap: &CentralHeap, stream: StreamId) -> bool {
        self.stream == stream && ptr::eq(Arc::as_ptr(&self.heap), heap)
    }

    /// Returns the cache, unless another thread has locked it.
    #[inline]
    fn own(&self) -> Option<Owned<'_, ThreadCache>> {
        // SAFETY: an entry stays with the thread that created its cache. The list of entries is
        // borrowed exclusively during each use.
        unsafe { self.cache.cache.own() }
    }

    /// Makes room by returning older blocks to the heap. Large blocks are not returned, so there
    /// may still be no room.
    #[cold]
    fn free_into_full_cache(
        &self,
        mut cache: Owned<'_, ThreadCache>,
        size: BlockSize,
        address: u64,
        bytes: usize,
    ) -> Option<()> {
        let surplus = cache.take_older_half(size);
        if !cache.insert(size, address) {
            return None;
        }
        cache.counts.add_free(bytes);
        // Unlocked before the heap is locked, because the holder of the heap's lock waits for
        // caches.
        drop(cache);
        self.heap.return_blocks(self.stream, size, surplus);
        Some(())
    }
}

/// Calls `operation` with the calling thread's entry.
#[inline]
fn with<T>(
    heap: &CentralHeap,
    stream: StreamId,
    operation: impl FnOnce(&Entry) -> Option<T>,
) -> Option<T> {
    let result = ENTRIES.try_with(|entries| {
        let mut entries = entries.try_borrow_mut().ok()?;
        // The most recently used entry is the first.
        if !entries.first()?.belongs_to(heap, stream) && !bring_to_front(&mut entries, heap, stream)
        {
            return None;
        }
        operation(entries.first()?)
    });
    result.ok().flatten()
}

/// Moves an entry to the front. Returns `false` if it does not exist.
#[cold]
fn bring_to_front(entries: &mut [Entry], heap: &CentralHeap, stream: StreamId) -> bool {
    let Some(index) = entries
        .iter()
        .position(|entry| entry.belongs_to(heap, stream))
    else {
        return false;
    };
    entries.swap(0, index);
    true
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.heap.remove_cache(&self.cache);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::cache::Segment;

    const STREAM: StreamId = StreamId(1);
    const BYTES: usize = 4096;
    /// The longest wait for another thread.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Returns a heap of one block, and the block.
    fn single_block_heap() -> (Arc<CentralHeap>, u64) {
        let heap = Arc::new(CentralHeap::new(true));
        heap.with(|heap| {
            heap.add_segment(Segment {
                start: 1 << 20,
                length: BYTES as u64,
            });
        });
        let block = heap
            .take(STREAM, BlockSize::from_bytes(BYTES), 1, None)
            .expect("no block");
        (heap, block)
    }

    /// No block moves between caches while they are counted.
    #[test]
    fn usage_locks_every_cache_while_it_counts() {
        let (heap, block) = single_block_heap();
        let first = LocalCache::add(&heap, STREAM).expect("the thread does not exit");
        LocalCache::free(&heap, STREAM, block, BYTES).expect("the cache has room");
        let second = heap.add_cache(STREAM);
        let held = second.cache.claim().expect("no barrier");
        thread::scope(|scope| {
            let counting = scope.spawn(|| heap.usage().free_bytes);
            let deadline = Instant::now() + PATIENCE;
            let mut misses = 0;
            while misses < 20 {
                assert!(
                    Instant::now() < deadline,
                    "the first cache is not held while the second is waited for"
                );
                thread::sleep(Duration::from_millis(1));
                // SAFETY: this thread created the cache, and does not use it otherwise.
                let is_held = unsafe { first.cache.own() }.is_none();
                misses = if is_held { misses + 1 } else { 0 };
            }
            drop(held);
            assert_eq!(
                counting.join().expect("counting does not panic"),
                BYTES as u64
            );
        });
    }

    /// The blocks of its cache are found when the heap is unlocked.
    #[test]
    fn thread_exits_while_the_heap_is_locked() {
        let (heap, block) = single_block_heap();
        let ((exit, may_exit), (added, has_added)) = (channel::<()>(), channel());
        let shared = Arc::clone(&heap);
        let other = thread::spawn(move || {
            LocalCache::add(&shared, STREAM).expect("the thread does not exit yet");
            LocalCache::free(&shared, STREAM, block, BYTES).expect("the cache has room");
            added.send(()).expect("the test waits");
            may_exit.recv().expect("the test does not panic");
        });
        has_added.recv().expect("the thread does not panic");
        let ((over, is_over), shared) = (channel(), Arc::clone(&heap));
        // As in the child of a fork, where the thread that had locked the heap does not exist.
        let locking = thread::spawn(move || {
            shared.with(|_| {
                exit.send(()).expect("the thread waits");
                over.send(other.join().is_ok()).expect("the test waits");
            });
        });
        assert!(
            is_over
                .recv_timeout(PATIENCE)
                .expect("the thread does not wait for the heap")
        );
        locking.join().expect("nothing panics with the heap locked");
        heap.flush_caches();
        assert_eq!(heap.usage().free_bytes, BYTES as u64);
        assert_eq!(
            heap.take(STREAM, BlockSize::from_bytes(BYTES), 1, None),
            Some(block)
        );
    }
}
