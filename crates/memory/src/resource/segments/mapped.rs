//! Segments of physical memory mapped into one reserved virtual address range.

use curium_driver::extend::report;
use curium_driver::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType,
};
use curium_driver::{Context, Device, Error, Result, call};

use crate::cache::{AddressSpace, CentralHeap, Gap, Part, Segment, part_bytes};
use crate::resource::segment_change::{SegmentChangeKind, SegmentChanges};

/// A reserved virtual address range. The parts that are mapped to physical memory are its segments.
/// A part mapped directly after free memory extends that memory in place.
///
/// Free memory between allocations in use is fragmented: together it may suffice for an allocation,
/// but no range of it does. Its parts are then mapped again, one after the other, before physical
/// memory is created. Adjacent parts are unmapped by one call, and one call gives access to all
/// parts that are mapped.
pub(in crate::resource) struct Mapped {
    /// Keeps the context of the device alive.
    context: Context,
    granularity: u64,
    addresses: AddressSpace<CUmemGenericAllocationHandle>,
}

/// The length of the reserved range as a multiple of the device's memory, since parts in use
/// separate the gaps between them.
const RANGE_PER_MEMORY: u64 = 4;

impl Mapped {
    pub(in crate::resource) fn new(context: &Context) -> Result<Self> {
        let device = context.device();
        let properties = properties(device);
        let mut granularity = 0;
        let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        // SAFETY: `granularity` is valid for writes, and the properties are complete.
        unsafe {
            call!(
                device.driver(),
                cuMemGetAllocationGranularity(&raw mut granularity, &raw const properties, option)
            )
        }?;
        let granularity = granularity as u64;
        let length =
            (device.total_memory()? as u64 * RANGE_PER_MEMORY).next_multiple_of(granularity);
        let range = reserve(device, length)?;
        Ok(Self {
            context: context.clone(),
            granularity,
            addresses: AddressSpace::new(range),
        })
    }

    /// Maps parts, so that a range of `bytes` bytes is free, part of which may already be free. New
    /// memory has at least `step` bytes if there is enough. Records the changes of the segments.
    pub(super) fn grow(
        &mut self,
        bytes: u64,
        step: u64,
        heap: &CentralHeap,
        changes: &SegmentChanges,
    ) -> Result<()> {
        let free_before = |end| heap.with(|heap| heap.free_before(end));
        let gap = self.addresses.gap(bytes, self.granularity, free_before);
        // Exhausted addresses are reported like exhausted memory.
        let Gap {
            start,
            needed,
            available,
        } = gap.ok_or_else(|| {
            let [bytes, range] = [bytes, self.addresses.len()]
                .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            Error::refused_memory(bytes, Some(range), None)
        })?;
        let step = step.min(available).next_multiple_of(self.granularity);
        let reserved = heap.with(|heap| heap.reserved_bytes());
        let part = part_bytes(reserved).next_multiple_of(self.granularity);
        let mut end = self.move_free(start, needed, available, heap, changes);
        let has_moved = end > start;
        let needed_end = start + needed;
        let wanted_end = if has_moved {
            needed_end
        } else {
            (start + step.min(available)).max(needed_end)
        };
        let new_start = end;
        let mut new = Vec::new();
        while end < wanted_end {
            let length = part.min(wanted_end - end);
            match self.create(end, length) {
                Ok(memory) => new.push((Segment { start: end, length }, memory)),
                Err(error) if error.is_out_of_memory() && end >= needed_end => {
                    // Memory is scarce: the rest of the step is left to others.
                    let kept = new.partition_point(|(segment, _)| segment.start < needed_end);
                    self.undo(new.split_off(kept))?;
                    break;
                }
                Err(error) => return self.undo(new).and(Err(error)),
            }
            end += length;
        }
        let new_end = new.last().map_or(new_start, |(segment, _)| segment.end());
        if let Err(error) = self.allow(new_start, new_end) {
            return self.undo(new).and(Err(error));
        }
        for (segment, memory) in new {
            self.insert(segment, memory, heap, changes);
        }
        Ok(())
    }

    /// Maps free memory of other ranges in the gap at `start`, up to `needed` bytes or somewhat
    /// more, but at most `available`. Returns the end of the mapped memory. Memory that the driver
    /// does not move stays where it is.
    fn move_free(
        &mut self,
        start: u64,
        needed: u64,
        available: u64,
        heap: &CentralHeap,
        changes: &SegmentChanges,
    ) -> u64 {
        let free = heap.with(|heap| heap.remove_free_segments(needed, available, start));
        let mut end = start;
        let mut moved = Vec::new();
        for run in free.chunk_by(|left, right| left.end() == right.start) {
            let length = run.iter().map(|segment| segment.length).sum();
            if let Err(error) = self.unmap(run[0].start, length) {
                report(&error);
                for segment in run {
                    heap.with(|heap| heap.add_segment(*segment));
                }
                continue;
            }
            for segment in run {
                changes.record(SegmentChangeKind::Unmap, *segment);
                let Some(Part { length, memory }) = self.addresses.remove(segment.start) else {
                    continue;
                };
                match self.map(end, length, memory) {
                    Ok(()) => {
                        let segment = Segment { start: end, length };
                        end = segment.end();
                        moved.push((segment, memory));
                    }
                    Err(error) => report(&error),
                }
            }
        }
        if let Err(error) = self.allow(start, end) {
            report(&error);
            if let Err(error) = self.undo(moved) {
                report(&error);
            }
            return start;
        }
        for (segment, memory) in moved {
            self.insert(segment, memory, heap, changes);
        }
        end
    }

    fn insert(
        &mut self,
        segment: Segment,
        memory: CUmemGenericAllocationHandle,
        heap: &CentralHeap,
        changes: &SegmentChanges,
    ) {
        let Segment { start, length } = segment;
        self.addresses.insert(start, Part { length, memory });
        // Recorded first: once the heap has the segment, another thread may allocate from it and
        // record that.
        changes.record(SegmentChangeKind::Map, segment);
        heap.with(|heap| heap.add_segment(segment));
    }

    /// Unmaps and releases memory that the heap does not have, after a later call has failed.
    fn undo(&self, mapped: Vec<(Segment, CUmemGenericAllocationHandle)>) -> Result<()> {
        mapped
            .into_iter()
            .map(|(segment, memory)| {
                self.unmap(segment.start, segment.length)
                    .and(self.release(memory))
            })
            .fold(Ok(()), Result::and)
    }

    /// Unmaps a part and releases its memory. If unmapping fails, the part is kept.
    pub(super) fn remove(&mut self, start: u64) -> Result<()> {
        let Some(part) = self.addresses.get(start) else {
            return Ok(());
        };
        let Part { length, memory } = *part;
        self.unmap(start, length)?;
        // Unmapped memory is not kept, even if releasing it fails.
        self.addresses.remove(start);
        self.release(memory)
    }

    pub(super) fn contains(&self, start: u64) -> bool {
        self.addresses.get(start).is_some()
    }

    /// Frees the reserved range if nothing is mapped.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some(Segment { start, length }) = self.addresses.take_unused() else {
            return Ok(());
        };
        // SAFETY: the range was reserved in one piece of this length, nothing is mapped in it any
        // more, and it is not used again.
        unsafe {
            call!(
                self.context.driver(),
                cuMemAddressFree(start, length as usize)
            )
        }
    }

    /// Maps new physical memory into the reserved range, without access.
    fn create(&self, start: u64, length: u64) -> Result<CUmemGenericAllocationHandle> {
        let properties = properties(self.context.device());
        let driver = self.context.driver();
        let mut memory: CUmemGenericAllocationHandle = 0;
        // SAFETY: `memory` is valid for writes, and the properties are complete.
        let created = unsafe {
            call!(driver, cuMemCreate(&raw mut memory, length as usize, &raw const properties, 0) creates memory)
        };
        created.map_err(|error| error.about(format!("{length} bytes")))?;
        self.map(start, length, memory)?;
        Ok(memory)
    }

    /// Maps physical memory into the reserved range, without access, or releases it.
    fn map(&self, start: u64, length: u64, memory: CUmemGenericAllocationHandle) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: the addresses belong to the reserved range, nothing is mapped there, and the
        // memory is mapped nowhere and of this length.
        let mapped = unsafe { call!(driver, cuMemMap(start, length as usize, 0, memory, 0)) };
        mapped.or_else(|error| self.release(memory).and(Err(error)))
    }

    /// Gives the device access to the mappings from `start` to `end`, which may be none. One call
    /// serves all of them.
    fn allow(&self, start: u64, end: u64) -> Result<()> {
        if start == end {
            return Ok(());
        }
        let access = access(self.context.device());
        // SAFETY: all of the addresses are mapped, and `access` is one descriptor.
        unsafe {
            call!(
                self.context.driver(),
                cuMemSetAccess(start, (end - start) as usize, &raw const access, 1)
            )
        }
    }

    /// Unmaps a range that consists of whole mappings.
    fn unmap(&self, start: u64, length: u64) -> Result<()> {
        // SAFETY: the range consists of whole mappings, and no work accesses it.
        unsafe { call!(self.context.driver(), cuMemUnmap(start, length as usize)) }
    }

    fn release(&self, memory: CUmemGenericAllocationHandle) -> Result<()> {
        // SAFETY: the handle is live and owned, and it is not used again.
        unsafe { call!(self.context.driver(), cuMemRelease(memory)) }
    }
}

/// Reserves a virtual address range.
fn reserve(device: &Device, length: u64) -> Result<Segment> {
    let mut start: CUdeviceptr = 0;
    // SAFETY: `start` is valid for writes; 0 selects any alignment and any address.
    let result = unsafe {
        call!(device.driver(), cuMemAddressReserve(&raw mut start, length as usize, 0, 0, 0) creates start)
    };
    result.map_err(|error| error.about(format!("{length} addresses")))?;
    Ok(Segment { start, length })
}

/// Returns the properties of device memory that is not shareable.
fn properties(device: &Device) -> CUmemAllocationProp {
    let type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    CUmemAllocationProp {
        type_,
        location: location(device),
        ..CUmemAllocationProp::default()
    }
}

/// Returns the descriptor of read and write access for the device.
fn access(device: &Device) -> CUmemAccessDesc {
    let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemAccessDesc {
        location: location(device),
        flags,
    }
}

fn location(device: &Device) -> CUmemLocation {
    let type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let mut location = CUmemLocation {
        type_,
        ..CUmemLocation::default()
    };
    location.__bindgen_anon_1.id = device.as_raw();
    location
}
