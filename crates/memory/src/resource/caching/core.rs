//! What a cache does when a thread has nothing to hand out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_driver::extend::{Exclusive, dropping, with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible};
use curium_driver::{Context, ContextKind, DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::depot::{Depot, Holdings, Shelf};
use super::watched::Watched;
use super::{CachingOptions, CachingStatistics, local};
use crate::cache::{GRANULE, Generation, Heap, Owner, Rounded, Store};
#[cfg(feature = "diagnostics")]
use crate::resource::segment_change::{SegmentChange, SegmentChanges};
use crate::resource::segments::{HeapAccess, Segment, Segments, Upstream, leak_rest};
use crate::resource::{Request, Resource, StreamOrdered};
use crate::wait;

/// The next identity of a resource, by which threads tell their bins apart.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

/// The shared state of a resource.
pub(super) struct Core {
    identity: u64,
    context: Context,
    options: CachingOptions,
    is_private: bool,
    depot: Arc<Depot>,
    /// Locked while memory is looked for beyond the depot, whose lock may be taken meanwhile. A user's resource runs then.
    reserve: Exclusive<Reserve>,
    /// The segments after the last change, which are read while memory is looked for.
    published: Mutex<Published>,
    /// Where segments come from, if not from the device.
    upstream: Option<Arc<dyn Resource>>,
    #[cfg(feature = "diagnostics")]
    changes: SegmentChanges,
}

/// What the depot is filled from.
struct Reserve {
    segments: Segments,
    watched: HashMap<Owner, Watched>,
}

/// What users see of the segments.
#[derive(Default)]
struct Published {
    segments: Vec<Segment>,
    growths: u64,
}

/// An allocation that the bins did not serve.
#[derive(Clone, Copy)]
struct Need<'a> {
    owner: Owner,
    size: Rounded,
    alignment: u64,
    shelf: Option<&'a Shelf>,
}

impl Core {
    #[inline]
    pub(super) fn new(
        context: &Context,
        options: &CachingOptions,
        upstream: Option<Arc<dyn Resource>>,
    ) -> Result<Self> {
        let segments = match &upstream {
            Some(upstream) => Segments::Upstream(Upstream::new(context, Arc::clone(upstream))?),
            None => Segments::best(context)?,
        };
        Ok(Self {
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
            context: context.clone(),
            options: *options,
            is_private: false,
            depot: Arc::default(),
            reserve: Exclusive::new(Reserve { segments, watched: HashMap::new() }),
            published: Mutex::default(),
            upstream,
            #[cfg(feature = "diagnostics")]
            changes: SegmentChanges::default(),
        })
    }

    /// A core of its own that is otherwise like this one, for one graph: it looks at no stream.
    #[inline]
    pub(super) fn private(&self) -> Result<Self> {
        let mut core = Self::new(&self.context, &self.options, self.upstream.clone())?;
        core.is_private = true;
        Ok(core)
    }

    #[inline]
    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    #[inline]
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    #[inline]
    pub(super) fn depot(&self) -> &Depot {
        &self.depot
    }

    /// Memory for a request that the bins of the calling thread did not serve.
    #[inline]
    pub(super) fn allocate(&self, stream: &Stream, request: Request) -> Result<DevicePointer<u8>> {
        let Request { bytes, alignment } = request;
        if let Some(bypass) = self.bypass() {
            let pointer = bypass.allocate(stream, bytes, alignment)?;
            self.depot.count(bytes);
            return Ok(pointer);
        }
        let owner = Owner(stream.identity());
        let shelf = self.shelf(stream, "CachingResource::allocate")?;
        let (size, alignment) = (Rounded::up(bytes), alignment as u64);
        let need = Need { owner, size, alignment, shelf: shelf.as_deref() };
        let address = match self.take(need) {
            Some(address) => address,
            None => self.search(need).map_err(|error| self.explain(error, stream, need, bytes))?,
        };
        self.depot.count(bytes);
        Ok(DevicePointer::from_raw(address))
    }

    /// Takes memory back that the bins of the calling thread did not take.
    ///
    /// # Safety
    ///
    /// As for [`Resource::deallocate`].
    #[inline]
    pub(super) unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        if let Some(bypass) = self.bypass() {
            // SAFETY: the caller's promises are those of the resource that the memory came from.
            unsafe { bypass.deallocate(stream, pointer, bytes, alignment) }?;
            self.depot.count_free(bytes);
            return Ok(());
        }
        // Later frees of the thread find bins.
        self.shelf(stream, "CachingResource::deallocate")?;
        let owner = Owner(stream.identity());
        self.depot.free(owner, Rounded::up(bytes), pointer.as_raw(), bytes);
        Ok(())
    }

    /// Joins all that is free, also what threads hold, and frees for all what is done.
    #[inline]
    pub(super) fn collect(&self) -> Result<()> {
        self.gather(&mut *self.reserve.acquire("CachingResource::collect")?)
    }

    /// Waits for the work of the context, after which all free memory is free for all.
    #[inline]
    pub(super) fn synchronize(&self) -> Result<()> {
        if self.is_private {
            // The graph may run again, and then use what it freed.
            return self.context.synchronize();
        }
        self.depot.collect();
        let freed = self.depot.with_store(Store::mark_all);
        // Without a lock: other threads allocate meanwhile.
        self.context.synchronize()?;
        let mut reserve = self.reserve.acquire("CachingResource::synchronize")?;
        for (owner, generation) in freed {
            self.depot.with_store(|store| store.promote(owner, generation));
            if let Some(watched) = reserve.watched.get_mut(&owner) {
                watched.forget(generation);
            }
        }
        Ok(())
    }

    /// Gives segments back that nobody uses.
    #[inline]
    pub(super) fn trim(&self, keep: u64) -> Result<()> {
        let mut reserve = self.reserve.acquire("CachingResource::trim")?;
        self.gather(&mut reserve)?;
        self.change(&mut reserve.segments, |segments| segments.trim(keep, &*self.depot))
    }

    /// The segments that came and went from the change with this number on.
    #[cfg(feature = "diagnostics")]
    #[inline]
    pub(super) fn segment_changes(&self, since: u64) -> Vec<SegmentChange> {
        self.changes.since(since)
    }

    #[inline]
    pub(super) fn statistics(&self) -> CachingStatistics {
        let (reserved_bytes, growths) = {
            let published = self.published.lock();
            (published.segments.iter().map(|segment| segment.length).sum(), published.growths)
        };
        let Holdings { counts, free_bytes, longest_free_bytes } = self.depot.holdings();
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
        }
    }

    /// The segments by address.
    #[inline]
    pub(super) fn segments(&self) -> Vec<Segment> {
        self.published.lock().segments.clone()
    }

    #[inline]
    fn take(&self, need: Need<'_>) -> Option<u64> {
        self.depot.take(need.owner, need.size, need.alignment, need.shelf)
    }

    /// Looks further and further away: what others took meanwhile, what joins, what other streams are done with, what threads hold,
    /// and at last what the device has.
    #[inline]
    fn search(&self, need: Need<'_>) -> Result<u64> {
        let mut reserve = self.reserve.acquire("CachingResource::allocate")?;
        if let Some(address) = self.take(need) {
            return Ok(address);
        }
        self.depot.with_store(|store| store.settle(need.owner));
        if let Some(address) = self.take(need) {
            return Ok(address);
        }
        self.gather(&mut reserve)?;
        if let Some(address) = self.take(need) {
            return Ok(address);
        }
        let (bytes, step) = (need.room(), self.options.segment_bytes as u64);
        loop {
            self.change(&mut reserve.segments, |segments| segments.grow(bytes, step, &*self.depot))?;
            self.published.lock().growths += 1;
            // Another thread may have been faster, and then has what it needs.
            if let Some(address) = self.take(need) {
                return Ok(address);
            }
        }
    }

    /// Has `operation` change the segments, and notes what it did, also if it failed.
    #[inline]
    fn change(&self, segments: &mut Segments, operation: impl FnOnce(&mut Segments) -> Result<()>) -> Result<()> {
        let result = with_relaxed_capture_mode(self.context.driver(), || operation(segments));
        let after = segments.list();
        let before = std::mem::replace(&mut self.published.lock().segments, after.clone());
        #[cfg(feature = "diagnostics")]
        self.changes.note(&before, &after, segments.kinds());
        #[cfg(not(feature = "diagnostics"))]
        drop(before);
        result
    }

    /// Where allocations go if none is kept.
    #[inline]
    fn bypass(&self) -> Option<&dyn Resource> {
        (!self.options.cache).then(|| self.upstream.as_deref().unwrap_or(&StreamOrdered))
    }

    /// The bins of the calling thread, once it is known that `stream` may use this resource; nothing if the thread is ending.
    #[inline]
    fn shelf(&self, stream: &Stream, operation: &'static str) -> Result<Option<Arc<Shelf>>> {
        let owner = Owner(stream.identity());
        if let Some(shelf) = local::find(self.identity, owner) {
            return Ok(Some(shelf));
        }
        self.admit(stream, operation)?;
        Ok(local::add(self.identity, owner, &self.depot))
    }

    /// Puts what threads hold together with the rest, and frees for all what streams are done with.
    #[inline]
    fn gather(&self, reserve: &mut Reserve) -> Result<()> {
        self.depot.collect();
        if self.is_private {
            self.depot.with_store(Store::settle_all);
            return Ok(());
        }
        with_relaxed_capture_mode(self.context.driver(), || {
            // What cannot be asked counts as not done, and must not keep the others from being asked.
            let watched = reserve.watched.iter_mut();
            watched.map(|(owner, watched)| self.watch(*owner, watched)).fold(Ok(()), Result::and)
        })?;
        let is_kept = |owner: &Owner, watched: &mut Watched| !(watched.is_over() && self.depot.forget(*owner));
        reserve.watched.retain(is_kept);
        Ok(())
    }

    /// Marks what a stream freed, and frees for all what lies behind marks that it has passed.
    #[inline]
    fn watch(&self, owner: Owner, watched: &mut Watched) -> Result<()> {
        if let Some(generation) = self.depot.with_store(|store| store.mark(owner)) {
            watched.mark(generation)?;
        }
        if let Some(generation) = watched.passed()? {
            self.depot.with_store(|store| store.promote(owner, generation));
        }
        Ok(())
    }

    /// Has the memory that `stream` frees watched, if the stream may use this resource.
    #[inline]
    fn admit(&self, stream: &Stream, operation: &'static str) -> Result<()> {
        let owner = Owner(stream.identity());
        let mut reserve = self.reserve.acquire(operation)?;
        let Entry::Vacant(vacant) = reserve.watched.entry(owner) else { return Ok(()) };
        self.context.driver().expect_same(stream.driver(), operation)?;
        let (ours, theirs) = (&self.context, stream.context());
        // To wait for a green context is to wait for its own work alone, which would not do for its neighbours'.
        let waits_for_theirs = ours.kind() == ContextKind::Primary || ours.as_raw() == theirs.as_raw();
        if !(ours.shares_objects_with(theirs) && waits_for_theirs) {
            return Err(Error::argument(operation, format!("{stream:?} is not of the resource's {ours:?}")));
        }
        vacant.insert(Watched::new(stream));
        Ok(())
    }

    /// Adds the figures to an error that says that memory is short.
    #[cold]
    #[inline]
    fn explain(&self, error: Error, stream: &Stream, need: Need<'_>, bytes: usize) -> Error {
        let longest = self.depot.with_store(|store| store.heap().longest(need.owner));
        error.with_memory_figures(stream, bytes, usize::try_from(longest).ok())
    }

    /// Waits for the streams that have freed memory, and gives the segments back that are free then.
    #[inline]
    fn close(&mut self) -> Result<()> {
        self.depot.close();
        let waited = self.wait_for_streams();
        self.reserve.get_mut().segments.close(&*self.depot).and(waited)
    }

    /// Waits for the streams that have freed memory, and frees for all what those had that are done.
    #[inline]
    fn wait_for_streams(&mut self) -> Result<()> {
        if self.is_private {
            // Its graphs may have run on any stream.
            wait::before_free_context(&self.context)?;
        }
        let mut result = Ok(());
        for (owner, watched) in &self.reserve.get_mut().watched {
            if !self.depot.with_store(|store| store.heap().has(*owner)) {
                continue;
            }
            match if self.is_private { Ok(()) } else { watched.wait(&self.context) } {
                Ok(()) => self.depot.with_store(|store| store.promote(*owner, Generation::LAST)),
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

impl Need<'_> {
    /// The bytes in a row that are sure to hold it.
    #[inline]
    fn room(&self) -> u64 {
        self.size.bytes() + self.alignment.saturating_sub(GRANULE)
    }
}

impl HeapAccess for Depot {
    #[inline]
    fn with_heap<T>(&self, operation: impl FnOnce(&mut Heap) -> T) -> T {
        self.with_store(|store| operation(store.heap_mut()))
    }
}

impl Drop for Core {
    #[inline]
    fn drop(&mut self) {
        let context = self.context.clone();
        let closed = dropping(|| with_relaxed_capture_mode_if_possible(context.driver(), || self.close()));
        if let Some(closed) = closed {
            leak_rest("CachingResource::drop", context.driver(), &self.reserve.get_mut().segments.list(), closed);
        }
        self.depot.forget_all();
    }
}
