//! Segments: the large pieces of memory that a resource cuts into blocks.

mod mapped;
mod upstream;

use std::sync::Arc;

use curium_driver::extend::{leak, report};
use curium_driver::sys::CUdevice_attribute;
use curium_driver::{Context, Driver, Error, Function, LeakedMemory, Result};

pub(super) use self::mapped::Mapped;
pub(super) use self::upstream::Upstream;
use crate::cache::{FreeRange, Heap};
#[cfg(feature = "diagnostics")]
use crate::diagnostics::EventKind;

/// Where a heap gets its memory from.
pub(super) enum Segments {
    /// Physical memory that is mapped into one row of addresses: a segment grows in place.
    Mapped(Mapped),
    /// Pieces of another resource.
    Upstream(Upstream),
}

/// A piece of memory that belongs to a heap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) length: u64,
}

/// A heap that is locked for a moment at a time, since memory is fetched without the lock.
pub(super) trait HeapAccess {
    /// Has `operation` use the heap.
    fn with_heap<T>(&self, operation: impl FnOnce(&mut Heap) -> T) -> T;
}

impl Segments {
    /// Mapped memory where device and driver can, else pieces of the device's pool.
    #[inline]
    pub(super) fn best(context: &Context) -> Result<Self> {
        if can_map(context)? {
            return Mapped::new(context).map(Self::Mapped);
        }
        Upstream::new(context, Arc::new(super::StreamOrdered)).map(Self::Upstream)
    }

    /// Makes room for `bytes` bytes in one row, of which some may be free already. It takes at least `step` bytes if it can.
    #[inline]
    pub(super) fn grow(&mut self, bytes: u64, step: u64, heap: &impl HeapAccess) -> Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.grow(bytes, step, heap),
            Self::Upstream(upstream) => upstream.grow(bytes, step, heap),
        }
    }

    /// Gives pieces back that are free for all, for as long as more than `keep` bytes are left then.
    #[inline]
    pub(super) fn trim(&mut self, keep: u64, heap: &impl HeapAccess) -> Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.trim(keep, heap),
            Self::Upstream(upstream) => upstream.trim(keep, heap),
        }
    }

    /// Gives every piece back that is free for all. The others stay where they are for good, since work may use them.
    #[inline]
    pub(super) fn close(&mut self, heap: &impl HeapAccess) -> Result<()> {
        match self {
            Self::Mapped(mapped) => mapped.close(heap),
            Self::Upstream(upstream) => upstream.close(heap),
        }
    }

    /// The pieces by address.
    #[inline]
    pub(super) fn list(&self) -> Vec<Segment> {
        match self {
            Self::Mapped(mapped) => mapped.list(),
            Self::Upstream(upstream) => upstream.list(),
        }
    }

    /// What it is called when a piece comes, and when it goes.
    #[cfg(feature = "diagnostics")]
    #[inline]
    pub(super) fn kinds(&self) -> [EventKind; 2] {
        match self {
            Self::Mapped(_) => [EventKind::MapSegment, EventKind::UnmapSegment],
            Self::Upstream(_) => [EventKind::AllocateSegment, EventKind::FreeSegment],
        }
    }
}

/// Counts and reports the segments that are left after `closed`, the result of closing all of them, and reports its error in any case.
#[inline]
pub(super) fn leak_rest(operation: &'static str, driver: &Driver, left: &[Segment], closed: Result<()>) {
    let bytes = left.iter().map(|segment| segment.length).sum();
    let leaked = LeakedMemory::new(left.len() as u64, bytes);
    match closed {
        Ok(()) if left.is_empty() => {}
        Err(error) if left.is_empty() => report(&error),
        closed => leak(driver, leaked, &leaked_segments(operation, leaked, closed.err())),
    }
}

#[cold]
#[inline]
fn leaked_segments(operation: &'static str, leaked: LeakedMemory, cause: Option<Error>) -> Error {
    let LeakedMemory { allocations, bytes, .. } = leaked;
    match cause {
        None => Error::argument(
            operation,
            format!("{bytes} bytes in {allocations} segments are leaked, since allocations in them were not freed"),
        ),
        Some(error) if error.function().is_some() => {
            error.about(format!("before {bytes} bytes in {allocations} segments are freed, which are leaked now"))
        }
        Some(error) => {
            Error::argument(operation, format!("{bytes} bytes in {allocations} segments are leaked: {error}"))
        }
    }
}

/// Whether memory can be mapped on the context's device.
#[inline]
pub(super) fn can_map(context: &Context) -> Result<bool> {
    const FUNCTIONS: [Function; 8] = [
        Function::cuMemAddressReserve,
        Function::cuMemAddressFree,
        Function::cuMemCreate,
        Function::cuMemRelease,
        Function::cuMemMap,
        Function::cuMemUnmap,
        Function::cuMemSetAccess,
        Function::cuMemGetAllocationGranularity,
    ];
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    let has_all = FUNCTIONS.into_iter().all(|function| context.driver().has(function));
    Ok(has_all && context.device().attribute(attribute)? != 0)
}

impl Segment {
    #[inline]
    pub(super) fn end(self) -> u64 {
        self.start + self.length
    }

    /// What more than the free range behind which it begins a row of `bytes` bytes needs.
    #[inline]
    fn beyond(range: Option<FreeRange>, bytes: u64) -> u64 {
        bytes.saturating_sub(range.map_or(0, |range| range.length))
    }
}
