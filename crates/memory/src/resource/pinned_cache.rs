//! A cache of pinned host memory.

use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use curium_driver::{Context, DevicePointer, Error, Result, Returned, Stream};
use parking_lot::Mutex;

use super::Resource;
use super::caching::{CachingOptions, CachingResource, CachingStatistics};
use super::limited::LimitedResource;
use super::pinned::Pinned;
use crate::size::{DRIVER_ALIGNMENT, Request};
use crate::virtual_memory::{Mapping, map_on_node};
use crate::wait;

/// A cache of pinned host memory for [`PinnedBuffer`](crate::PinnedBuffer). Clones are cheap and
/// share the memory.
///
/// Allocating pinned memory takes the driver some 100 µs. The cache allocates large segments and
/// divides them as a [`CachingResource`] does, with the same size classes and thread caches.
///
/// - **Copies.** A buffer that is dropped during a copy, inside a
///   [`Pending`](crate::copy::Pending), is reused once the copy has completed. Neither the drop nor
///   a later allocation waits for that.
/// - **Limit.** The segments have at most [`PinnedCacheOptions::max_bytes`] bytes. Buffers for
///   which they have no room are allocated from the driver, and freed when they are dropped.
/// - **Memory pressure.** If the driver has no memory left for such a buffer, the cache returns its
///   unused segments and tries again. [`PinnedCache::trim`] returns them at any time, also as a
///   reclaimer of [`Reclaiming`](crate::Reclaiming::register).
/// - **NUMA.** [`PinnedCacheOptions::node`] selects the node of the memory. Otherwise the policy of
///   the thread that allocates a segment applies.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedCache, copy};
///
/// # let context = driver.device(0)?.primary_context()?;
/// let cache = PinnedCache::new(&context)?;
/// let stream = context.stream()?;
/// let mut target = DeviceBuffer::zeroed(&stream, 3)?;
/// let source = PinnedBuffer::from_slice_in(&[1_u32, 2, 3], &cache)?;
/// drop(copy::upload(&stream, source, &mut target)?); // does not wait
/// assert_eq!(target.to_vec()?, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PinnedCache {
    shared: Arc<Shared>,
}

/// Options of a [`PinnedCache`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PinnedCacheOptions {
    /// The minimum segment size in bytes. The default is 8 MiB.
    pub segment_bytes: usize,
    /// The maximum size of all segments in bytes. The default is 1 GiB.
    pub max_bytes: usize,
    /// The host NUMA node of the memory, by the operating system's number. Only the device of the
    /// cache's context can access it then. The default is `None`. The device attribute
    /// `HOST_NUMA_ID` is the node closest to a device.
    pub node: Option<u32>,
    /// `true` to cache memory. If `false`, every buffer is allocated from the driver. The default
    /// is as for [`CachingOptions::cache`].
    pub cache: bool,
}

struct Shared {
    options: PinnedCacheOptions,
    memory: CachingResource,
    /// The stream of memory that only the host uses. No work is enqueued on it, so memory that is
    /// freed on it is available at once.
    host: Stream,
}

/// Pinned memory on a NUMA node.
struct OnNode {
    node: u32,
    /// The allocations by address.
    mappings: Mutex<HashMap<u64, Mapping>>,
}

impl PinnedCacheOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self {
            segment_bytes: 8 << 20,
            max_bytes: 1 << 30,
            node: None,
            cache: CachingOptions::new().cache,
        }
    }

    /// Sets the minimum segment size in bytes.
    #[must_use]
    pub const fn with_segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Sets the maximum size of all segments in bytes.
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the host NUMA node of the memory.
    #[must_use]
    pub const fn with_node(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// Enables or disables caching.
    #[must_use]
    pub const fn with_cache(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }
}

impl Default for PinnedCacheOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl PinnedCache {
    /// Creates a cache in `context` with the default options.
    ///
    /// CUDA: `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_options(context, &PinnedCacheOptions::new())
    }

    /// Creates a cache in `context`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn with_options(context: &Context, options: &PinnedCacheOptions) -> Result<Self> {
        let caching = CachingOptions::new()
            .with_segment_bytes(options.segment_bytes.min(options.max_bytes))
            .with_cache(options.cache);
        let max_bytes = options.max_bytes;
        let memory = match options.node {
            None => {
                let upstream = LimitedResource::new(Pinned, max_bytes);
                CachingResource::with_upstream(context, &caching, upstream)
            }
            Some(node) => {
                let upstream = LimitedResource::new(OnNode::new(node), max_bytes);
                CachingResource::with_upstream(context, &caching, upstream)
            }
        }?;
        Ok(Self {
            shared: Arc::new(Shared {
                options: *options,
                memory,
                host: context.stream()?,
            }),
        })
    }

    /// Returns the context of the memory.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.shared.memory.context()
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> PinnedCacheOptions {
        self.shared.options
    }

    /// Returns the counters and the current memory usage. Buffers that were allocated from the
    /// driver are not counted.
    #[must_use]
    pub fn statistics(&self) -> CachingStatistics {
        self.shared.memory.statistics()
    }

    /// Returns free memory to the driver until at most `keep` bytes are left. Memory of copies in
    /// progress is kept.
    ///
    /// CUDA: `cuMemFreeHost`, or `cuMemUnmap` for memory of a NUMA node; `cuEventRecord`,
    /// `cuEventQuery`, `cuStreamQuery`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn trim(&self, keep: usize) -> Result<()> {
        self.shared.memory.trim(&self.shared.host, keep)
    }

    /// Allocates `bytes` bytes, which no work uses. Returns `None` if the segments have no room for
    /// them.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize, alignment: usize) -> Result<Option<NonNull<u8>>> {
        match self
            .shared
            .memory
            .allocate(&self.shared.host, bytes, alignment)
        {
            Ok(pointer) => Ok(NonNull::new(std::ptr::with_exposed_provenance_mut(
                pointer.as_raw() as usize,
            ))),
            Err(error) if error.is_out_of_memory() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Frees memory that only work on `stream` uses, or none.
    ///
    /// # Safety
    ///
    /// - The memory was allocated by [`PinnedCache::allocate`] of this cache with this size and
    ///   alignment, and is not used by the host any more.
    /// - No work uses it, except for work that was enqueued on `stream`, if there is one.
    #[inline]
    pub(crate) unsafe fn free(
        &self,
        stream: Option<&Stream>,
        pointer: NonNull<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        let memory = &self.shared.memory;
        let pointer = DevicePointer::from_raw(pointer.as_ptr().addr() as u64);
        // SAFETY: the caller guarantees the memory, and that only earlier work on this stream uses
        // it.
        unsafe {
            memory.deallocate(
                stream.unwrap_or(&self.shared.host),
                pointer,
                bytes,
                alignment,
            )
        }
    }

    /// Returns `true` if memory that work on `stream` uses can be freed without a wait: the
    /// resource can record events on it.
    #[inline]
    pub(crate) fn follows(&self, stream: &Stream) -> bool {
        self.shared.options.cache
            && self.context().as_raw() == stream.context().as_raw()
            && self.context().shares_objects_with(stream.context())
            && stream.downgrade().is_some()
    }
}

impl OnNode {
    fn new(node: u32) -> Self {
        Self {
            node,
            mappings: Mutex::default(),
        }
    }
}

// SAFETY: a mapping is accessible to the device of its context, lives until it is removed, and is
// removed only after the stream has been synchronized.
unsafe impl Resource for OnNode {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        const OPERATION: &str = "PinnedCache::allocate";
        Request::new(OPERATION, bytes, alignment, DRIVER_ALIGNMENT)?;
        let mapping = map_on_node(OPERATION, stream.context(), self.node, bytes)?;
        let pointer = mapping.as_pointer();
        self.mappings.lock().insert(pointer.as_raw(), mapping);
        Ok(pointer)
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        _bytes: usize,
        _alignment: usize,
    ) -> Result<()> {
        wait::before_free(stream)?;
        let address = pointer.as_raw();
        let Some(mapping) = self.mappings.lock().remove(&address) else {
            let reason = format!("no allocation at {address:#x}");
            return Err(Error::argument("PinnedCache::trim", reason));
        };
        mapping.close().map_err(|Returned { value, error }| {
            self.mappings.lock().insert(address, value);
            error
        })
    }
}

impl fmt::Debug for PinnedCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = self.statistics();
        let live = statistics.live_bytes();
        let reserved = statistics.reserved_bytes;
        write!(formatter, "PinnedCache({live} of {reserved} bytes in use)")
    }
}
