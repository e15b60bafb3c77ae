//! A resource: where device memory comes from, and where it goes back.

#[cfg(feature = "diagnostics")]
mod allocation_recorder;
mod arena;
mod caching;
mod driver_memory;
mod failure_callback;
mod forward;
mod leak_tracker;
mod limited;
mod managed;
mod pinned;
mod reclaiming;
mod request;
#[cfg(feature = "diagnostics")]
mod segment_change;
mod segments;
mod statistics;
mod stream_ordered;
mod sync_alloc;
mod table;

#[cfg(feature = "diagnostics")]
pub use self::allocation_recorder::AllocationRecorder;
pub use self::arena::Arena;
pub use self::caching::{CachingOptions, CachingResource, CachingStatistics};
pub(crate) use self::driver_memory::{free_in_order, refused};
pub use self::failure_callback::FailureCallback;
pub use self::leak_tracker::{LeakTracker, LiveAllocation};
pub use self::limited::LimitedResource;
pub use self::managed::Managed;
pub use self::pinned::Pinned;
pub use self::reclaiming::{ReclaimerGuard, Reclaiming, RecoveryStatistics, RecoveryStep, RecoveryStepStatistics};
pub(crate) use self::request::DRIVER_ALIGNMENT;
pub(crate) use self::request::Request;
#[cfg(feature = "diagnostics")]
pub use self::segment_change::SegmentChange;
pub use self::statistics::{AllocationCounts, Statistics};
pub use self::stream_ordered::StreamOrdered;
pub use self::sync_alloc::SyncAlloc;
pub use self::table::{AllocateFunction, DeallocateFunction, ForeignResource, ResourceTable};

use std::sync::Arc;

use curium_driver::{DevicePointer, Result, Stream};

/// Where device memory comes from, and where it goes back.
///
/// Sources ask the driver, and adaptors wrap another resource: composed by type, they cost nothing. `&R`, `Box<R>` and `Arc<R>`
/// are resources as well, and `Arc<dyn Resource>` is one that is chosen at run time.
///
/// Memory is allocated and given back in the order of a stream, and neither waits for the device unless a resource says so.
///
/// # Safety
///
/// An implementation promises of memory that [`Resource::allocate`] returned, until it is given back without an error:
///
/// - it has `bytes` bytes at an address that is a multiple of `alignment`, and the device of the stream can reach it;
/// - work that is put on the stream from then on may use it, and nobody else does: whoever had it before has finished with it in
///   the order of that stream;
/// - it stays valid when the resource is moved, and for as long as the resource or, for those that share their state, a clone of it
///   exists.
///
/// It allocates and frees from any thread, also for several at once.
pub unsafe trait Resource: Send + Sync {
    /// Memory of `bytes` bytes, aligned to `alignment`, for use in the order of `stream`. What it holds is undefined.
    ///
    /// `bytes` is not 0, and `alignment` is a power of two; 256 is always possible.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0 or the alignment is not possible; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[track_caller]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>>;

    /// Takes memory back once the work that is on `stream` by now is done. The host waits for that only where a resource says so.
    ///
    /// # Safety
    ///
    /// - `pointer` came from [`Resource::allocate`] of this resource, with these `bytes` and this `alignment`, and was not given back
    ///   since.
    /// - `stream` is of the context that the memory was allocated in, but may be another stream: it has waited for every use of
    ///   the memory on others, the allocation included.
    /// - Nobody puts work that uses the memory on any stream from now on.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns, also if the wait for the stream fails. The memory is still the caller's then, who may try again.
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()>;

    /// A resource on its own that memory of this one can be given back to: graphs keep it for buffers that they outlive. None, as for
    /// adaptors that are not shared, means that memory ends with its buffer; graphs that use it cannot be launched from then on.
    #[inline]
    fn detached(&self) -> Option<Arc<dyn Resource>> {
        None
    }

    /// Whether an allocation on a stream that is being captured becomes a part of the graph, in whose order it is allocated and freed.
    #[inline]
    fn allocates_in_graphs(&self) -> bool {
        false
    }

    /// Puts free memory that threads hold back to where others find it, and joins what lies side by side. Waits for nothing.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    fn purge(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until all work of the stream's context is done, after which all free memory is free for every stream.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; the wait takes place all the same.
    #[inline]
    fn synchronize(&self, stream: &Stream) -> Result<()> {
        stream.context().synchronize()
    }

    /// Gives free memory back to where the resource has it from, for as long as more than `keep` bytes are left then. Of resources that
    /// are shared by devices or have no state, the stream says whose.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    fn trim(&self, stream: &Stream, keep: usize) -> Result<()> {
        let _ = (stream, keep);
        Ok(())
    }

    /// The segments that the resource took or gave back since the change with this number, that one included, the oldest first; none of
    /// resources without segments. An [`AllocationRecorder`] calls this for every event that it records.
    #[cfg(feature = "diagnostics")]
    #[inline]
    fn segment_changes(&self, since: u64) -> Vec<SegmentChange> {
        let _ = since;
        Vec::new()
    }
}
