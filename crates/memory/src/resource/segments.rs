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
use crate::resource::segment_change::{SegmentChangeKind, SegmentChanges};

/// The segments of a heap. The methods lock the heap only between driver calls.
pub(super) struct Segments {
    source: Source,
    changes: Arc<SegmentChanges>,
}

/// The source of a heap's memory.
enum Source {
    /// Physical memory mapped into one reserved virtual address range.
    Mapped(Mapped),
    /// Allocations of another resource.
    Upstream(Upstream),
}

/// The source of memory that was provided.
pub(super) enum Provision {
    /// Moved to addresses that already map it.
    Reused,
    /// Mapped a second time.
    Stitched,
    /// Obtained from the device or the upstream resource.
    Grown,
}

impl Segments {
    /// Uses virtual memory management if the device and the driver support it, otherwise the
    /// device's current memory pool.
    pub(super) fn best(context: &Context) -> Result<Self> {
        if can_map(context)? {
            Self::mapped(context)
        } else {
            Self::upstream(context, Arc::new(super::StreamOrdered))
        }
    }

    pub(super) fn mapped(context: &Context) -> Result<Self> {
        Ok(Self::from_source(Source::Mapped(Mapped::new(context)?)))
    }

    pub(super) fn upstream(context: &Context, resource: Arc<dyn Resource>) -> Result<Self> {
        let upstream = Upstream::new(context, resource)?;
        Ok(Self::from_source(Source::Upstream(upstream)))
    }

    fn from_source(source: Source) -> Self {
        Self {
            source,
            changes: Arc::default(),
        }
    }

    /// Returns the record of the segments that were added and removed.
    pub(super) fn changes(&self) -> Arc<SegmentChanges> {
        Arc::clone(&self.changes)
    }

    /// Creates the heap for these segments.
    pub(super) fn heap(&self) -> CentralHeap {
        CentralHeap::new(matches!(self.source, Source::Mapped(_)))
    }

    /// Provides free memory for an allocation of `bytes` bytes, part of which may already be free.
    /// If another thread or fragmentation is in the way, the next call provides the rest. New
    /// memory has at least `step` bytes if there is enough. Mapped memory is divided into several
    /// segments.
    pub(super) fn provide(
        &mut self,
        bytes: u64,
        step: u64,
        heap: &CentralHeap,
    ) -> Result<Provision> {
        match &mut self.source {
            Source::Mapped(mapped) => mapped.provide(bytes, step, heap, &self.changes),
            Source::Upstream(upstream) => {
                let segment = upstream.add(bytes, step)?;
                // Recorded first: once the heap has the segment, another thread may allocate from
                // it and record that.
                self.changes.record(SegmentChangeKind::Allocate, segment);
                heap.with(|heap| heap.add_segment(segment));
                Ok(Provision::Grown)
            }
        }
    }

    /// Moves free memory to the addresses where it coalesces best, without driver calls.
    pub(super) fn recall(&mut self, heap: &CentralHeap) {
        if let Source::Mapped(mapped) = &mut self.source {
            mapped.recall(heap, &self.changes);
        }
    }

    /// Returns the number of bytes freed by a thread cache after which it is idle.
    pub(super) fn idle_limit(&self, heap: &CentralHeap) -> u64 {
        match &self.source {
            Source::Mapped(mapped) => mapped.idle_limit(heap.with(|heap| heap.reserved_bytes())),
            Source::Upstream(_) => u64::MAX,
        }
    }

    /// Removes unused segments for as long as at least `keep` bytes are left.
    pub(super) fn trim(&mut self, keep: u64, heap: &CentralHeap) -> Result<()> {
        self.recall(heap);
        let (mut left, segments) = heap.with(|heap| (heap.reserved_bytes(), heap.segments()));
        if left <= keep {
            return Ok(());
        }
        if let Source::Mapped(mapped) = &mut self.source {
            mapped.unmap_unused_ranges()?;
        }
        for segment in segments.into_iter().rev() {
            if left - segment.length >= keep && self.remove(segment, heap)? {
                left -= segment.length;
            }
        }
        Ok(())
    }

    /// Removes all unused segments. The others are leaked, since work may access them.
    pub(super) fn close(&mut self, heap: &CentralHeap) -> Result<()> {
        self.recall(heap);
        let unmapped = match &mut self.source {
            Source::Mapped(mapped) => mapped.unmap_unused_ranges(),
            Source::Upstream(_) => Ok(()),
        };
        let segments = heap.with(|heap| heap.segments()).into_iter();
        // Attempts every segment, even if one fails.
        let closed = segments
            .map(|segment| self.remove(segment, heap).map(drop))
            .fold(unmapped, Result::and);
        match &mut self.source {
            Source::Mapped(mapped) => closed.and(mapped.close()),
            Source::Upstream(upstream) => closed
                .inspect(|()| upstream.close())
                .inspect_err(|_| upstream.close()),
        }
    }

    /// Removes a segment. Returns `false` if it is in use, or in a stitched range.
    fn remove(&mut self, segment: Segment, heap: &CentralHeap) -> Result<bool> {
        if let Source::Mapped(mapped) = &self.source
            && !mapped.contains(segment.start)
        {
            return Ok(false);
        }
        if !heap.with(|heap| heap.remove_segment(segment)) {
            return Ok(false);
        }
        let start = segment.start;
        let (removed, is_left, kind) = match &mut self.source {
            Source::Mapped(mapped) => (
                mapped.remove(start),
                mapped.contains(start),
                SegmentChangeKind::Unmap,
            ),
            Source::Upstream(upstream) => (
                upstream.remove(start),
                upstream.contains(start),
                SegmentChangeKind::Free,
            ),
        };
        if is_left {
            heap.with(|heap| heap.add_segment(segment));
        } else {
            self.changes.record(kind, segment);
        }
        removed.map(|()| true)
    }
}

/// Counts and reports the segments that remain after closing with the result `closed`. An error in
/// it is reported in any case.
pub(super) fn leak_rest(
    operation: &'static str,
    driver: &Driver,
    heap: &CentralHeap,
    closed: Result<()>,
) {
    let remaining = heap.with(|heap| heap.joined_segments());
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
