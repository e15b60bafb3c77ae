//! The slow paths of the caching allocator.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_driver::extend::{
    Exclusive, dropping, with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible,
};
use curium_driver::{Context, ContextKind, DevicePointer, Error, Result, Stream};

use super::pending_frees::PendingFrees;
use super::{CachingOptions, CachingStatistics};
use crate::cache::{
    BlockSize, CentralHeap, Epoch, GRANULE, Heap, LocalCache, Segment, StreamId, Usage,
};
use crate::resource::segment_change::{SegmentChange, SegmentChanges};
use crate::resource::segments::{Provision, Segments, leak_rest};
use crate::resource::{Resource, StreamOrdered};
use crate::size::Request;
use crate::wait;

/// The shared state of a resource.
pub(super) struct Allocator {
    context: Context,
    options: CachingOptions,
    is_private: bool,
    heap: Arc<CentralHeap>,
    /// Locked before the heap, across driver calls and calls to the upstream resource, which is
    /// user code.
    reserve: Exclusive<Reserve>,
    /// The number of times that segments were added.
    growths: AtomicU64,
    /// The number of times that memory was mapped a second time.
    stitches: AtomicU64,
    /// The number of times that memory stayed with its stream because no event could be recorded or
    /// queried.
    deferrals: AtomicU64,
    /// The source of segments; `None` for the device.
    upstream: Option<Arc<dyn Resource>>,
    /// The changes of the segments, which are read without the lock of `reserve`.
    changes: Arc<SegmentChanges>,
}

/// The source of memory when the heap is exhausted.
struct Reserve {
    segments: Segments,
    /// The streams that may free memory.
    streams: HashMap<StreamId, PendingFrees>,
}

/// An allocation that no thread cache served.
#[derive(Clone, Copy)]
struct Need<'a> {
    stream: StreamId,
    size: BlockSize,
    alignment: u64,
    cache: Option<&'a LocalCache>,
}

impl Allocator {
    pub(super) fn new(
        context: &Context,
        options: &CachingOptions,
        upstream: Option<Arc<dyn Resource>>,
    ) -> Result<Self> {
        let segments = match &upstream {
            Some(upstream) => Segments::upstream(context, Arc::clone(upstream))?,
            None => Segments::best(context)?,
        };
        let changes = segments.changes();
        Ok(Self {
            context: context.clone(),
            options: *options,
            is_private: false,
            heap: Arc::new(segments.heap()),
            reserve: Exclusive::new(Reserve {
                segments,
                streams: HashMap::new(),
            }),
            growths: AtomicU64::new(0),
            stitches: AtomicU64::new(0),
            deferrals: AtomicU64::new(0),
            upstream,
            changes,
        })
    }

    /// Creates an allocator with the same options for the memory of one graph. It queries no
    /// stream.
    pub(super) fn private(&self) -> Result<Self> {
        let mut allocator = Self::new(&self.context, &self.options, self.upstream.clone())?;
        allocator.is_private = true;
        Ok(allocator)
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    #[inline]
    pub(super) fn heap(&self) -> &CentralHeap {
        &self.heap
    }

    /// Allocates memory when the calling thread's cache has no suitable block.
    pub(super) fn allocate(&self, stream: &Stream, request: Request) -> Result<DevicePointer<u8>> {
        let Request { bytes, alignment } = request;
        if let Some(bypass) = self.bypass() {
            let pointer = bypass.allocate(stream, bytes, alignment)?;
            self.heap.count_allocation(bytes);
            return Ok(pointer);
        }
        let cache = self.cache(stream, "CachingResource::allocate")?;
        if cache.as_ref().is_some_and(|cache| cache.end_idleness()) {
            // A stream that cannot be queried keeps its memory, as in `search`.
            let _ = self.gather(&mut *self.reserve.acquire("CachingResource::allocate")?);
        }
        let size = BlockSize::from_bytes(bytes);
        let alignment = alignment as u64;
        let need = Need {
            stream: StreamId(stream.identity()),
            size,
            alignment,
            cache: cache.as_deref(),
        };
        let address = match self.take(need) {
            Some(address) => address,
            None => self
                .search(need)
                .map_err(|error| self.explain(error, stream, need, bytes))?,
        };
        self.heap.count_allocation(bytes);
        Ok(DevicePointer::from_raw(address))
    }

    /// Frees memory that the calling thread's cache did not accept.
    ///
    /// # Safety
    ///
    /// As for [`Resource::deallocate`].
    pub(super) unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        if let Some(bypass) = self.bypass() {
            // SAFETY: the memory came from this resource, whose contract the caller upholds.
            unsafe { bypass.deallocate(stream, pointer, bytes, alignment) }?;
        } else {
            // Creates a cache for later deallocations of the thread.
            self.cache(stream, "CachingResource::deallocate")?;
            self.heap.return_blocks(
                StreamId(stream.identity()),
                BlockSize::from_bytes(bytes),
                [pointer.as_raw()],
            );
        }
        self.heap.count_free(bytes);
        Ok(())
    }

    /// Coalesces all free memory, including that in thread caches, and makes memory whose work has
    /// completed available to every stream.
    pub(super) fn purge(&self) -> Result<()> {
        self.gather(&mut *self.reserve.acquire("CachingResource::purge")?)
    }

    /// Waits for the work in the context, after which all free memory is available to every stream.
    pub(super) fn synchronize(&self) -> Result<()> {
        if self.is_private {
            // The graph may be launched again, and then access memory that it freed.
            return self.context.synchronize();
        }
        const OPERATION: &str = "CachingResource::synchronize";
        self.heap.flush_caches();
        let freed = self.heap.with(Heap::begin_epochs);
        self.reserve
            .acquire(OPERATION)?
            .for_each_pending(&freed, PendingFrees::add);
        // Without a lock, so that other threads can allocate in the meantime.
        self.context.synchronize()?;
        let mut reserve = self.reserve.acquire(OPERATION)?;
        freed
            .iter()
            .for_each(|(stream, epoch)| self.heap.with(|heap| heap.release(*stream, *epoch)));
        reserve.for_each_pending(&freed, PendingFrees::forget);
        Ok(())
    }

    /// Returns unused segments.
    pub(super) fn trim(&self, keep: u64) -> Result<()> {
        let mut reserve = self.reserve.acquire("CachingResource::trim")?;
        let gathered = self.gather(&mut reserve);
        let segments = &mut reserve.segments;
        with_relaxed_capture_mode(self.context.driver(), || segments.trim(keep, &self.heap))
            .and(gathered)
    }

    /// Returns the segment changes from this number on.
    pub(super) fn segment_changes(&self, since: u64) -> Vec<SegmentChange> {
        self.changes.since(since)
    }

    pub(super) fn statistics(&self) -> CachingStatistics {
        let growths = self.growths.load(Ordering::Relaxed);
        let Usage {
            counts,
            reserved_bytes,
            free_bytes,
            longest_free_bytes,
        } = self.heap.usage();
        CachingStatistics {
            allocations: counts.allocations,
            hits: counts.hits,
            frees: counts.frees,
            allocated_bytes: counts.allocated_bytes,
            freed_bytes: counts.freed_bytes,
            reserved_bytes,
            free_bytes,
            longest_free_bytes,
            growths,
            stitches: self.stitches.load(Ordering::Relaxed),
            deferrals: self.deferrals.load(Ordering::Relaxed),
        }
    }

    /// Returns the segments by address.
    pub(super) fn segments(&self) -> Vec<Segment> {
        self.heap.with(|heap| heap.joined_segments())
    }

    fn take(&self, need: Need<'_>) -> Option<u64> {
        self.heap
            .take(need.stream, need.size, need.alignment, need.cache)
    }

    /// Searches for memory in this order: memory freed by another thread in the meantime, coalesced
    /// blocks of the stream, thread caches and memory of other streams whose work has completed,
    /// fragmented memory in one piece, and new memory.
    fn search(&self, need: Need<'_>) -> Result<u64> {
        let mut reserve = self.reserve.acquire("CachingResource::allocate")?;
        if let Some(address) = self.take(need) {
            return Ok(address);
        }
        self.heap.with(|heap| heap.coalesce_blocks(need.stream));
        if let Some(address) = self.take(need) {
            return Ok(address);
        }
        // A stream that cannot be queried keeps its memory until the next time, and does not keep
        // others from theirs.
        let _ = self.gather(&mut reserve);
        if let Some(address) = self.take(need) {
            return Ok(address);
        }
        let step = self.options.segment_bytes as u64;
        loop {
            let segments = &mut reserve.segments;
            let provision = with_relaxed_capture_mode(self.context.driver(), || {
                segments.provide(need.room(), step, &self.heap)
            })?;
            match provision {
                Provision::Reused => {}
                Provision::Stitched => drop(self.stitches.fetch_add(1, Ordering::Relaxed)),
                Provision::Grown => drop(self.growths.fetch_add(1, Ordering::Relaxed)),
            }
            // Another thread may have been faster, and left enough memory.
            if let Some(address) = self.take(need) {
                return Ok(address);
            }
        }
    }

    /// Returns the resource that serves all allocations if caching is disabled.
    fn bypass(&self) -> Option<&dyn Resource> {
        (!self.options.cache).then(|| self.upstream.as_deref().unwrap_or(&StreamOrdered))
    }

    /// Returns the calling thread's cache, or `None` if the thread is exiting. Checks that `stream`
    /// can use this resource.
    fn cache(&self, stream: &Stream, operation: &'static str) -> Result<Option<Arc<LocalCache>>> {
        let id = StreamId(stream.identity());
        if let Some(cache) = LocalCache::find(&self.heap, id) {
            return Ok(Some(cache));
        }
        self.admit(stream, operation)?;
        Ok(LocalCache::add(&self.heap, id))
    }

    /// Collects and coalesces all free memory, and makes memory whose work has completed available
    /// to every stream. If the driver refuses that for one stream, it is done for all others all
    /// the same.
    fn gather(&self, reserve: &mut Reserve) -> Result<()> {
        if !self.is_private {
            let idle_limit = reserve.segments.idle_limit(&self.heap);
            self.heap.set_idle_limit(idle_limit);
        }
        self.heap.flush_caches();
        if self.is_private {
            self.heap.with(Heap::coalesce_all);
            return Ok(());
        }
        let polled = with_relaxed_capture_mode(self.context.driver(), || {
            let streams = reserve.streams.iter_mut();
            streams
                .map(|(stream, pending)| self.poll(*stream, pending))
                .fold(Ok(()), Result::and)
        });
        reserve
            .streams
            .retain(|stream, pending| !(pending.is_over() && self.heap.forget(*stream)));
        reserve.segments.recall(&self.heap);
        polled
    }

    /// Records an event after the most recent deallocations of a stream, and releases the memory
    /// covered by completed events.
    fn poll(&self, stream: StreamId, pending: &mut PendingFrees) -> Result<()> {
        if let Some(epoch) = self.heap.with(|heap| heap.begin_epoch(stream)) {
            pending.add(epoch);
        }
        let recorded = pending.record();
        let polled = pending
            .completed(|epoch| self.heap.with(|heap| heap.release(stream, epoch)))
            .and(recorded);
        if polled.is_err() || pending.is_deferred() {
            self.deferrals.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }

    /// Adds a stream to those that may free memory, if it can use this resource.
    fn admit(&self, stream: &Stream, operation: &'static str) -> Result<()> {
        let mut reserve = self.reserve.acquire(operation)?;
        let Entry::Vacant(vacant) = reserve.streams.entry(StreamId(stream.identity())) else {
            return Ok(());
        };
        self.context
            .driver()
            .check_same(stream.driver(), operation)?;
        let ours = &self.context;
        let theirs = stream.context();
        // Synchronizing a green context waits for its own work only, not for that of another green
        // context.
        let waits_for_theirs =
            ours.kind() == ContextKind::Primary || ours.as_raw() == theirs.as_raw();
        if !(ours.shares_objects_with(theirs) && waits_for_theirs) {
            return Err(Error::argument(
                operation,
                format!("context mismatch ({stream:?} does not belong to the resource's {ours:?})"),
            ));
        }
        vacant.insert(PendingFrees::new(stream));
        Ok(())
    }

    /// Adds the memory usage to an out-of-memory error.
    #[cold]
    fn explain(&self, error: Error, stream: &Stream, need: Need<'_>, bytes: usize) -> Error {
        let longest = self.heap.with(|heap| heap.longest(need.stream));
        error.with_memory_figures(stream, bytes, usize::try_from(longest).ok())
    }

    /// Waits for the streams that freed memory, and removes unused segments.
    fn close(&mut self) -> Result<()> {
        self.heap.close();
        let waited = self.wait_for_streams();
        self.reserve
            .get_mut()
            .segments
            .close(&self.heap)
            .and(waited)
    }

    /// Waits for the streams that freed memory, and releases the memory of those for which the wait
    /// succeeded.
    fn wait_for_streams(&mut self) -> Result<()> {
        if self.is_private {
            // Its graphs may have run on any stream.
            wait::before_free_context(&self.context)?;
        }
        let mut result = Ok(());
        for (stream, pending) in &self.reserve.get_mut().streams {
            if !self.heap.with(|heap| heap.has_ranges(*stream)) {
                continue;
            }
            match if self.is_private {
                Ok(())
            } else {
                pending.wait(&self.context)
            } {
                Ok(()) => self.heap.with(|heap| heap.release(*stream, Epoch::LAST)),
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

impl Reserve {
    /// Calls `operation` for each stream that may free memory, with its epoch.
    fn for_each_pending(
        &mut self,
        epochs: &[(StreamId, Epoch)],
        operation: impl Fn(&mut PendingFrees, Epoch),
    ) {
        for (stream, epoch) in epochs {
            if let Some(pending) = self.streams.get_mut(stream) {
                operation(pending, *epoch);
            }
        }
    }
}

impl Need<'_> {
    /// Returns the length of a range that fits at any alignment.
    fn room(&self) -> u64 {
        self.size.bytes() + self.alignment.saturating_sub(GRANULE)
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        let context = self.context.clone();
        let closed =
            dropping(|| with_relaxed_capture_mode_if_possible(context.driver(), || self.close()));
        if let Some(closed) = closed {
            leak_rest(
                "CachingResource::drop",
                context.driver(),
                &self.heap,
                closed,
            );
            // A thread may keep the heap alive until it exits.
            self.heap.with(|heap| *heap = Heap::default());
        }
    }
}
