//! Memory that is kept and handed out again without asking the driver.

mod claim;
mod core;
mod depot;
mod local;
mod options;
mod statistics;
mod watched;

use std::fmt;
use std::sync::Arc;

use curium_driver::{Context, DevicePointer, Result, Stream};

use self::core::Core;
use self::depot::Put;
pub use self::options::CachingOptions;
pub use self::statistics::CachingStatistics;
use super::{Request, Resource};
use crate::cache::{GRANULE, Owner, Rounded};

/// Memory of a device that is kept when it is freed, and handed out again in some nanoseconds. Clones are cheap and share the memory.
///
/// It takes memory from the device in large segments, by mapping physical memory behind one row of addresses where the device can, and
/// cuts blocks from them: up to 32 MiB in sizes of which eight make a doubling, larger ones to multiples of 2 MiB. It never gives
/// segments back by itself; [`Resource::trim`] does.
///
/// - **Threads.** Each thread keeps some free blocks of each stream, and takes and frees them without a lock that others share and
///   without a call of the driver. What it has too much of goes to lists that all threads share, and all of it when the thread ends.
/// - **Streams.** Memory freed on a stream can be allocated on that stream at once, and on others once the work that was on the
///   stream by then is done. Nobody waits for that: until then others get other memory.
/// - **Captures.** Memory that a graph uses must be nobody else's for as long as the graph exists. Allocate it from a
///   [private pool](CachingResource::private_pool) that lives as long.
/// - **Memory checkers** see the segments only, and miss accesses out of bounds. [`CachingOptions::with_cache`], or the variable
///   `CURIUM_NO_CACHE` in the environment, has every allocation go to the driver.
///
/// Dropping the last clone waits for the streams that freed memory, also while other threads capture, and returns the segments that are
/// free then. A segment stays where it is if an allocation in it was never freed, or if no wait succeeded: it is leaked, counted by
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
/// let (resource, stream) = (CachingResource::new(&context)?, context.stream()?);
/// let pointer = resource.allocate(&stream, 1 << 20, 256)?;
/// // SAFETY: the memory came from this resource with these figures, and nothing uses it.
/// unsafe { resource.deallocate(&stream, pointer, 1 << 20, 256) }?;
/// assert_eq!(resource.allocate(&stream, 1 << 20, 256)?, pointer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CachingResource {
    core: Arc<Core>,
}

impl CachingResource {
    /// A resource for the device of `context`, with the default options.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemGetAllocationGranularity`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_options(context, &CachingOptions::new())
    }

    /// A resource for the device of `context`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn with_options(context: &Context, options: &CachingOptions) -> Result<Self> {
        Ok(Self { core: Arc::new(Core::new(context, options, None)?) })
    }

    /// A resource whose segments are memory of `upstream`, such as managed memory or a pool. They are allocated and freed on a
    /// stream of their own, and the host waits for each.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn with_upstream(
        context: &Context,
        options: &CachingOptions,
        upstream: impl Resource + 'static,
    ) -> Result<Self> {
        Ok(Self { core: Arc::new(Core::new(context, options, Some(Arc::new(upstream)))?) })
    }

    /// A resource of its own for the same device with the same options, for memory that a graph uses: what is freed in it is handed
    /// out again on the same stream only, and no event is recorded and no stream asked, so that captures are left alone.
    ///
    /// Keep it for as long as the graph: what was used once is given back with the pool, and by nothing else. Dropping the pool waits for
    /// all work of the context, since the graph may have run on any stream. That is impossible while a thread captures: the pool's memory
    /// is leaked then.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn private_pool(&self) -> Result<Self> {
        Ok(Self { core: Arc::new(self.core.private()?) })
    }

    /// The context that the memory is for.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        self.core.context()
    }

    /// Where segments begin, and how many bytes they have.
    #[must_use]
    #[inline]
    pub fn segments(&self) -> Vec<(u64, u64)> {
        self.core.segments().into_iter().map(|segment| (segment.start, segment.length)).collect()
    }

    /// What was allocated and freed so far, and where the memory is now. Threads that are at work meanwhile may be counted before or
    /// after.
    #[must_use]
    #[inline]
    pub fn statistics(&self) -> CachingStatistics {
        self.core.statistics()
    }
}

// SAFETY: a block is handed out to one caller until it is freed, since the store has each address once (see `cache`). It is handed
// out on the stream that freed it, in whose order it then is, or once the work of that stream is done. Segments live as long as
// the last clone.
unsafe impl Resource for CachingResource {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        // Sizes that are refused have no block in any bin: 0 wraps around, and so is beyond the address space.
        if alignment <= GRANULE as usize && bytes.wrapping_sub(1) < isize::MAX as usize && alignment.is_power_of_two() {
            let owner = Owner(stream.identity());
            let found = local::with(self.core.identity(), owner, |shelf| shelf.take(Rounded::up(bytes), bytes));
            if let Some(Some(address)) = found {
                return Ok(DevicePointer::from_raw(address));
            }
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
        let (owner, size, address) = (Owner(stream.identity()), Rounded::up(bytes), pointer.as_raw());
        let put = local::with(self.core.identity(), owner, |shelf| shelf.put(size, address, bytes));
        match put {
            Some(Put::Held) => Ok(()),
            Some(Put::Spilled(overflow)) => {
                self.core.depot().give_blocks(owner, size, overflow.addresses);
                Ok(())
            }
            // SAFETY: the caller's promises are passed on.
            Some(Put::Refused) | None => unsafe { self.core.deallocate(stream, pointer, bytes, alignment) },
        }
    }

    #[inline]
    fn purge(&self) -> Result<()> {
        self.core.collect()
    }

    #[inline]
    fn synchronize(&self, _stream: &Stream) -> Result<()> {
        self.core.synchronize()
    }

    #[inline]
    fn trim(&self, _stream: &Stream, keep: usize) -> Result<()> {
        self.core.trim(keep as u64)
    }

    #[cfg(feature = "diagnostics")]
    #[inline]
    fn segment_changes(&self, since: u64) -> Vec<super::SegmentChange> {
        self.core.segment_changes(since)
    }

    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(self.clone()))
    }
}

impl CachingResource {
    #[cold]
    #[inline]
    fn allocate_slowly(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let request = Request::new("CachingResource::allocate", bytes, alignment, options::LARGEST_ALIGNMENT)?;
        self.core.allocate(stream, request)
    }
}

impl fmt::Debug for CachingResource {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = self.statistics();
        let (live, reserved) = (statistics.live_bytes(), statistics.reserved_bytes);
        write!(formatter, "CachingResource({live} of {reserved} bytes in use)")
    }
}
