//! A caching suballocator.

mod allocator;
mod options;
mod pending_frees;
mod statistics;

use std::fmt;
use std::sync::Arc;

use curium_driver::{Context, DevicePointer, Result, Stream};

use self::allocator::Allocator;
pub use self::options::CachingOptions;
pub use self::statistics::CachingStatistics;
use super::Resource;
use crate::cache::{GRANULE, LocalCache, StreamId};
use crate::size::Request;

/// A caching suballocator for device memory. It keeps freed memory and allocates it again within
/// nanoseconds. Clones are cheap and share the memory.
///
/// The resource obtains memory from the device in large segments and divides them into blocks: up
/// to 32 MiB in eight size classes per power of two, larger ones in multiples of 2 MiB. If the
/// device supports virtual memory management, segments are mapped into one reserved address range
/// and grow in place. If free memory is divided among gaps that are too short, it is mapped at
/// further addresses, in one piece, before the device is asked for more. These mappings remain:
/// work that repeats its allocations maps nothing after a few repetitions. All mappings together
/// are at most 17 times as large as the memory, unless more is in use. Segments are returned to the
/// device by [`Resource::trim`] only.
///
/// - **Threads.** Each thread caches free blocks of each stream. An allocation or deallocation
///   served by the thread cache takes no shared lock and makes no driver call. Surplus blocks go to
///   a central heap, as do all blocks of a thread that exits.
/// - **Streams.** Memory freed on a stream is available to that stream immediately, and to other
///   streams once the work enqueued before the free has completed. No stream waits for that: until
///   then, other streams receive other memory.
/// - **Captures.** Memory that a graph uses must not be reused while the graph exists. Allocate it
///   from a [private pool](CachingResource::private_pool) that lives as long as the graph.
/// - **Memory checkers** see whole segments and miss out-of-bounds accesses within them.
///   [`CachingOptions::with_cache`] and the environment variable `CURIUM_NO_CACHE` pass every
///   allocation to the driver.
///
/// Dropping the last clone waits for the streams that freed memory, even while other threads
/// capture, and returns unused segments. A segment is leaked if an allocation in it was never
/// freed, or if no wait succeeded. Leaks are counted by
/// [`Driver::leaked_memory`](curium_driver::Driver::leaked_memory) and reported.
///
/// ```
/// # use curium_driver::Driver;
/// use curium_memory::{CachingResource, Resource};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?;
/// # /*
/// let driver = Driver::load()?;
/// # */
/// let context = driver.device(0)?.primary_context()?;
/// let resource = CachingResource::new(&context)?;
/// let stream = context.stream()?;
/// let pointer = resource.allocate(&stream, 1 << 20, 256)?;
/// // SAFETY: the memory was allocated from this resource with this size and alignment, and is not in use.
/// unsafe { resource.deallocate(&stream, pointer, 1 << 20, 256) }?;
/// assert_eq!(resource.allocate(&stream, 1 << 20, 256)?, pointer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CachingResource {
    allocator: Arc<Allocator>,
}

impl CachingResource {
    /// Creates a resource for the device of `context`, with the default options.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemGetAllocationGranularity`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_options(context, &CachingOptions::new())
    }

    /// Creates a resource for the device of `context`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn with_options(context: &Context, options: &CachingOptions) -> Result<Self> {
        Ok(Self {
            allocator: Arc::new(Allocator::new(context, options, None)?),
        })
    }

    /// Creates a resource whose segments are allocated from `upstream`, such as managed memory or a
    /// memory pool. They are allocated and freed on an internal stream, and the host waits for each
    /// allocation.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn with_upstream(
        context: &Context,
        options: &CachingOptions,
        upstream: impl Resource + 'static,
    ) -> Result<Self> {
        Ok(Self {
            allocator: Arc::new(Allocator::new(context, options, Some(Arc::new(upstream)))?),
        })
    }

    /// Creates a separate resource for the same device with the same options, for the memory of a
    /// graph. Memory freed in it is available to the same stream only. It records no event and
    /// queries no stream, so it does not disturb captures.
    ///
    /// Keep the pool as long as the graph: its memory is returned when the pool is dropped, and not
    /// before. Dropping the pool waits for all work in the context, since the graph may have run on
    /// any stream. This is impossible while a thread is capturing, in which case the pool's memory
    /// is leaked.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn private_pool(&self) -> Result<Self> {
        Ok(Self {
            allocator: Arc::new(self.allocator.private()?),
        })
    }

    /// Returns the context of the memory.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.allocator.context()
    }

    /// Returns the address and the size in bytes of each segment.
    #[must_use]
    pub fn segments(&self) -> Vec<(u64, u64)> {
        self.allocator
            .segments()
            .into_iter()
            .map(|segment| (segment.start, segment.length))
            .collect()
    }

    /// Returns the counters and the current memory usage. Concurrent operations on other threads
    /// may or may not be included.
    #[must_use]
    pub fn statistics(&self) -> CachingStatistics {
        self.allocator.statistics()
    }
}

// SAFETY: a free block is in exactly one thread cache or in the central heap, and leaves it when it
// is allocated. It is allocated either on the stream that freed it, whose order puts earlier work
// first, or after that work has completed. Segments live as long as the last clone.
unsafe impl Resource for CachingResource {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        // No cache contains blocks of a rejected size: 0 wraps around to a size larger than the
        // address space.
        if alignment <= GRANULE as usize
            && bytes.wrapping_sub(1) < isize::MAX as usize
            && alignment.is_power_of_two()
            && let Some(address) =
                LocalCache::allocate(self.allocator.heap(), StreamId(stream.identity()), bytes)
        {
            return Ok(DevicePointer::from_raw(address));
        }
        self.allocate_slowly(stream, bytes, alignment)
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        let id = StreamId(stream.identity());
        match LocalCache::free(self.allocator.heap(), id, pointer.as_raw(), bytes) {
            Some(()) => Ok(()),
            // SAFETY: the memory came from this resource, only earlier work on `stream` uses it, as
            // the caller guarantees, and the block was not freed.
            None => unsafe { self.allocator.deallocate(stream, pointer, bytes, alignment) },
        }
    }

    fn purge(&self) -> Result<()> {
        self.allocator.purge()
    }

    fn synchronize(&self, _stream: &Stream) -> Result<()> {
        self.allocator.synchronize()
    }

    fn trim(&self, _stream: &Stream, keep: usize) -> Result<()> {
        self.allocator.trim(keep as u64)
    }

    fn segment_changes(&self, since: u64) -> Vec<super::SegmentChange> {
        self.allocator.segment_changes(since)
    }

    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(self.clone()))
    }
}

impl CachingResource {
    #[cold]
    fn allocate_slowly(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        let request = Request::new(
            "CachingResource::allocate",
            bytes,
            alignment,
            options::MAX_ALIGNMENT,
        )?;
        self.allocator.allocate(stream, request)
    }
}

impl fmt::Debug for CachingResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = self.statistics();
        let live = statistics.live_bytes();
        let reserved = statistics.reserved_bytes;
        write!(
            formatter,
            "CachingResource({live} of {reserved} bytes in use)"
        )
    }
}
