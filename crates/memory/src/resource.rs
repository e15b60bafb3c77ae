//! Memory resources.

pub(crate) mod arena;
pub(crate) mod caching;
mod driver_memory;
pub(crate) mod failure_callback;
mod forward;
pub(crate) mod leak_tracker;
pub(crate) mod limited;
pub(crate) mod managed;
pub(crate) mod pinned;
pub(crate) mod pinned_cache;
pub(crate) mod reclaiming;
mod segment_change;
mod segments;
pub(crate) mod statistics;
mod stream_ordered;
pub(crate) mod sync_alloc;
pub(crate) mod table;

pub(crate) use self::driver_memory::{free_in_order, refused};
pub use self::segment_change::{SegmentChange, SegmentChangeKind};
pub use self::stream_ordered::StreamOrdered;

use std::sync::Arc;

use curium_driver::{DevicePointer, Result, Stream};

/// A source of device memory.
///
/// Sources allocate from the driver. Adaptors wrap another resource without run-time cost, because
/// they are composed by type. `&R`, `Box<R>` and `Arc<R>` are resources too; use
/// `Arc<dyn Resource>` to select a resource at run time.
///
/// Memory is allocated and deallocated in stream order. Neither operation waits for the device
/// unless the resource documents it.
///
/// # Safety
///
/// An implementation guarantees the following for memory returned by [`Resource::allocate`], until
/// it is deallocated successfully:
///
/// - It has `bytes` bytes at an address that is a multiple of `alignment`, and the stream's device
///   can access it.
/// - Work enqueued on the stream afterwards may access it, and no other work does: earlier accesses
///   have completed in stream order.
/// - It stays valid when the resource is moved, and for as long as the resource or a clone that
///   shares its state exists.
///
/// Its methods can be called from any thread, including concurrently.
pub unsafe trait Resource: Send + Sync {
    /// Allocates `bytes` bytes aligned to `alignment`, for use in the order of `stream`. The
    /// contents are undefined.
    ///
    /// `bytes` must not be 0, and `alignment` must be a power of two; 256 is always supported.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0 or the alignment is not supported;
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    #[track_caller]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>>;

    /// Deallocates memory once the work currently enqueued on `stream` has completed. The host
    /// waits for that only if the resource documents it.
    ///
    /// # Safety
    ///
    /// - `pointer` was returned by [`Resource::allocate`] of this resource for these `bytes` and
    ///   this `alignment`, and was not deallocated since.
    /// - `stream` belongs to the context in which the memory was allocated. It may differ from the
    ///   stream of the allocation, if it has waited for the allocation and for every access.
    /// - No work that accesses the memory is enqueued afterwards.
    ///
    /// # Errors
    ///
    /// An error returned by the driver, including a failed wait. The memory is then still
    /// allocated, and the call may be repeated.
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()>;

    /// Returns an owned resource that can deallocate memory of this one, for graphs that outlive a
    /// buffer. `None`, the default, means that memory is freed with its buffer, after which graphs
    /// that lease it can no longer be launched.
    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        None
    }

    /// Returns `true` if an allocation on a stream that is being captured becomes a memory
    /// allocation node of the graph.
    #[inline]
    fn allocates_in_graphs(&self) -> bool {
        false
    }

    /// Returns free memory from thread caches to the central heap and coalesces it. Does not wait.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[inline]
    fn purge(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until all work in the stream's context has completed. All free memory can then be
    /// reused by every stream.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work, after the wait.
    #[inline]
    fn synchronize(&self, stream: &Stream) -> Result<()> {
        stream.context().synchronize()
    }

    /// Releases free memory upstream until at most `keep` bytes are left. The stream selects the
    /// device for resources that serve several devices.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    fn trim(&self, stream: &Stream, keep: usize) -> Result<()> {
        let _ = (stream, keep);
        Ok(())
    }

    /// Returns the segment changes from the given number on, inclusive, oldest first; empty for
    /// resources without segments. The `AllocationRecorder` of `curium-diagnostics` queries this
    /// for each event.
    #[inline]
    fn segment_changes(&self, since: u64) -> Vec<SegmentChange> {
        let _ = since;
        Vec::new()
    }
}
