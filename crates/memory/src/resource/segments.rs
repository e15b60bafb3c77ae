//! Segments: the large ranges of memory that are divided into blocks.

mod mapped;
mod upstream;

use std::sync::Arc;

use curium_driver::extend::{leak, report};
use curium_driver::sys::CUdevice_attribute;
use curium_driver::{Context, Driver, Error, Function, LeakedMemory, Result};

use self::mapped::Mapped;
use self::upstream::Upstream;
use super::Resource;
use crate::cache::{CentralHeap, Segment};
#[cfg(feature = "diagnostics")]
use crate::diagnostics::EventKind;

/// The source of a heap's memory. Its methods lock the heap only between driver calls.
pub(super) enum Segments {
    /// Physical memory mapped into one reserved virtual address range.
    Mapped(Mapped),
    /// Allocations of another resource.
    Upstream(Upstream),
}

impl Segments {
    /// Uses virtual memory management if the device and the driver support it, otherwise the device's current memory
    /// pool.
    pub(super) fn best(context: &Context) -> Result<Self> {
        if can_map(context)? {
            Self::mapped(context)
        } else {
            Self::upstream(context, Arc::new(super::StreamOrdered))
        }
    }

    pub(super) fn mapped(context: &Context) -> Result<Self> {
        Mapped::new(context).map(Self::Mapped)
    }

    pub(super) fn upstream(context: &Context, resource: Arc<dyn Resource>) -> Result<Self> {
        Upstream::new(context, resource).map(Self::Upstream)
    }

    /// Creates the heap for these segments.
    pub(super) fn heap(&self) -> CentralHeap {
        CentralHeap::new(matches!(self, Self::Mapped(_)))
    }

    /// Adds a segment, so that a range of `bytes` bytes is free, part of which may already be free. The segment has at
    /// least `step` bytes if there is enough memory.
    pub(super) fn grow(&mut self, bytes: u64, step: u64, heap: &CentralHeap) -> Result<()> {
        let segment = match self {
            Self::Mapped(mapped) => mapped.add(bytes, step, heap),
            Self::Upstream(upstream) => upstream.add(bytes, step),
        }?;
        heap.with(|heap| heap.add_segment(segment));
        Ok(())
    }

    /// Removes unused segments for as long as at least `keep` bytes are left.
    pub(super) fn trim(&mut self, keep: u64, heap: &CentralHeap) -> Result<()> {
        let (mut left, segments) = heap.with(|heap| (heap.reserved_bytes(), heap.segments()));
        for segment in segments.into_iter().rev() {
            if left - segment.length >= keep && self.remove(segment, heap)? {
                left -= segment.length;
            }
        }
        Ok(())
    }

    /// Removes all unused segments. The others are leaked, since work may access them.
    pub(super) fn close(&mut self, heap: &CentralHeap) -> Result<()> {
        let segments = heap.with(|heap| heap.segments()).into_iter();
        // Attempts every segment, even if one fails.
        let closed = segments
            .map(|segment| self.remove(segment, heap).map(drop))
            .fold(Ok(()), Result::and);
        match self {
            Self::Mapped(mapped) => closed.and(mapped.close()),
            Self::Upstream(upstream) => closed
                .inspect(|()| upstream.close())
                .inspect_err(|_| upstream.close()),
        }
    }

    /// Returns the event kinds of an added and of a removed segment.
    #[cfg(feature = "diagnostics")]
    pub(super) fn kinds(&self) -> [EventKind; 2] {
        match self {
            Self::Mapped(_) => [EventKind::MapSegment, EventKind::UnmapSegment],
            Self::Upstream(_) => [EventKind::AllocateSegment, EventKind::FreeSegment],
        }
    }

    /// Removes a segment. Returns `false` if it is in use.
    fn remove(&mut self, segment: Segment, heap: &CentralHeap) -> Result<bool> {
        if !heap.with(|heap| heap.remove_segment(segment)) {
            return Ok(false);
        }
        let (removed, is_left) = match self {
            Self::Mapped(mapped) => (mapped.remove(segment.start), mapped.contains(segment.start)),
            Self::Upstream(upstream) => (
                upstream.remove(segment.start),
                upstream.contains(segment.start),
            ),
        };
        if is_left {
            heap.with(|heap| heap.add_segment(segment));
        }
        removed.map(|()| true)
    }
}

/// Counts and reports the segments that remain after closing with the result `closed`. An error in it is reported in
/// any case.
pub(super) fn leak_rest(
    operation: &'static str,
    driver: &Driver,
    heap: &CentralHeap,
    closed: Result<()>,
) {
    let remaining = heap.with(|heap| heap.segments());
    let bytes = remaining.iter().map(|segment| segment.length).sum();
    let leaked = LeakedMemory::new(remaining.len() as u64, bytes);
    match closed {
        Ok(()) if remaining.is_empty() => {}
        Err(error) if remaining.is_empty() => report(&error),
        closed => leak(
            driver,
            leaked,
            &leaked_segments(operation, leaked, closed.err()),
        ),
    }
}

#[cold]
fn leaked_segments(operation: &'static str, leaked: LeakedMemory, cause: Option<Error>) -> Error {
    let LeakedMemory {
        allocations, bytes, ..
    } = leaked;
    match cause {
        None => Error::argument(
            operation,
            format!(
                "{bytes} bytes in {allocations} segments are leaked, since allocations in them were not freed"
            ),
        ),
        Some(error) if error.function().is_some() => error.about(format!(
            "{bytes} bytes in {allocations} segments are leaked"
        )),
        Some(error) => Error::argument(
            operation,
            format!("{bytes} bytes in {allocations} segments are leaked: {error}"),
        ),
    }
}

/// Returns `true` if the context's device and driver support virtual memory management.
fn can_map(context: &Context) -> Result<bool> {
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
    let has_all = FUNCTIONS
        .into_iter()
        .all(|function| context.driver().has(function));
    Ok(has_all && context.device().attribute(attribute)? != 0)
}
