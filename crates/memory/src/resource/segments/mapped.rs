//! Segments of physical memory mapped into one reserved virtual address range.

use curium_driver::extend::report;
use curium_driver::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType,
};
use curium_driver::{Context, Device, Driver, Error, Result, call};

use super::Provision;
use crate::cache::{
    AddressSpace, CentralHeap, Gap, Part, Segment, StitchedRange, Stitching, part_bytes,
};
use crate::resource::segment_change::{SegmentChangeKind, SegmentChanges};

/// A reserved virtual address range. The parts that are mapped to physical memory are its segments.
/// A part mapped directly after free memory extends that memory in place.
///
/// Free memory between allocations in use is fragmented: together it may suffice for an allocation,
/// but no range of it does. Its parts are then mapped a second time, one after the other, before
/// physical memory is created. One call gives access to all of them. The driver requires that work
/// on memory at one address has completed before work on it at another address begins: parts move
/// only while they are available to every stream.
pub(in crate::resource) struct Mapped {
    /// Keeps the context of the device alive.
    context: Context,
    granularity: u64,
    addresses: AddressSpace<CUmemGenericAllocationHandle>,
    stitching: Stitching,
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
            stitching: Stitching::default(),
        })
    }

    /// Provides free memory for an allocation of `bytes` bytes: fragmented memory in one piece,
    /// otherwise new memory. That may be fragmented until the next call. If no part is free, new
    /// memory has at least `step` bytes as far as there is enough. Records the changes of the
    /// segments.
    pub(super) fn provide(
        &mut self,
        bytes: u64,
        step: u64,
        heap: &CentralHeap,
        changes: &SegmentChanges,
    ) -> Result<Provision> {
        let reserved = heap.with(|heap| heap.reserved_bytes());
        // With the heap locked throughout, so that all free memory is at home.
        let (has_moved, parts) = heap.with(|heap| {
            let has_moved = self
                .stitching
                .reuse(heap, bytes, |from, to| changes.record_move(from, to));
            let parts = if has_moved {
                None
            } else {
                heap.remove_free_segments(bytes)
            };
            (has_moved, parts)
        });
        if has_moved {
            return Ok(Provision::Reused);
        }
        if let Some(parts) = parts {
            match self.stitch(&parts, reserved) {
                Ok(start) => {
                    heap.with(|heap| {
                        self.stitching.insert(heap, start, &parts, |from, to| {
                            changes.record_move(from, to);
                        });
                    });
                    return Ok(Provision::Stitched);
                }
                Err(error) => {
                    report(&error);
                    heap.with(|heap| parts.iter().for_each(|part| heap.add_segment(*part)));
                }
            }
        }
        self.grow(bytes, step, heap, changes)?;
        Ok(Provision::Grown)
    }

    /// Maps new memory.
    fn grow(
        &mut self,
        bytes: u64,
        step: u64,
        heap: &CentralHeap,
        changes: &SegmentChanges,
    ) -> Result<()> {
        let (gap, free_bytes) =
            heap.with(|heap| self.addresses.growth(bytes, self.granularity, heap));
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
        let needed_end = start + needed;
        let wanted_end = if free_bytes == 0 {
            (start + step.min(available)).max(needed_end)
        } else {
            needed_end
        };
        let mut end = start;
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
        let new_end = new.last().map_or(start, |(segment, _)| segment.end());
        if let Err(error) = self.allow(start, new_end) {
            return self.undo(new).and(Err(error));
        }
        for (segment, memory) in new {
            self.insert(segment, memory, heap, changes);
        }
        Ok(())
    }

    /// Maps parts a second time, one after the other, and returns the address. Unmaps ranges that
    /// have not been used for long if there are too many for a memory of `reserved` bytes.
    fn stitch(&mut self, parts: &[Segment], reserved: u64) -> Result<u64> {
        let length = parts.iter().map(|part| part.length).sum();
        while let Some(unused) = self.stitching.take_excess(length, reserved) {
            self.unmap_range(unused)?;
        }
        // The last addresses are not used, so that memory does not coalesce with that of the next
        // range.
        let range = reserve(self.context.device(), length + self.granularity)?;
        let mut end = range.start;
        let mapped = parts.iter().try_for_each(|part| {
            let Some(&Part { length, memory }) = self.addresses.get(part.start) else {
                unreachable!("free memory that is not in a stitched range is at home");
            };
            self.map(end, length, memory)?;
            end += length;
            Ok(())
        });
        if let Err(error) = mapped.and_then(|()| self.allow(range.start, end)) {
            let unmapped = if end == range.start {
                Ok(())
            } else {
                self.unmap(range.start, end - range.start)
            };
            return unmapped
                .and_then(|()| self.free_addresses(range))
                .and(Err(error));
        }
        Ok(range.start)
    }

    /// Moves memory that is available to every stream out of stitched ranges.
    pub(super) fn recall(&mut self, heap: &CentralHeap, changes: &SegmentChanges) {
        heap.with(|heap| {
            self.stitching
                .recall(heap, |from, to| changes.record_move(from, to));
        });
    }

    /// Returns the number of bytes freed by a thread cache after which it is idle.
    pub(super) fn idle_limit(&self, reserved_bytes: u64) -> u64 {
        self.stitching.idle_limit(reserved_bytes)
    }

    /// Unmaps the stitched ranges of which no memory is in use.
    pub(super) fn unmap_unused_ranges(&mut self) -> Result<()> {
        while let Some(unused) = self.stitching.take_unused() {
            self.unmap_range(unused)?;
        }
        Ok(())
    }

    /// Unmaps a stitched range that was taken out. If that fails, it is kept.
    fn unmap_range(&mut self, mut range: StitchedRange) -> Result<()> {
        for run in range.mapped() {
            if let Err(error) = self.unmap(run.start, run.length) {
                self.stitching.restore(range);
                return Err(error);
            }
            range.set_unmapped(run);
        }
        let Segment { start, length } = range.segment();
        self.free_addresses(Segment {
            start,
            length: length + self.granularity,
        })
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

    /// Unmaps a part everywhere and releases its memory. If unmapping fails, the part is kept.
    pub(super) fn remove(&mut self, start: u64) -> Result<()> {
        let Some(part) = self.addresses.get(start) else {
            return Ok(());
        };
        let Part { length, memory } = *part;
        let driver = self.context.driver();
        self.stitching.remove_part(start, |addresses| {
            unmap(driver, addresses.start, addresses.length)
        })?;
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
        match self.addresses.take_unused() {
            Some(range) => self.free_addresses(range),
            None => Ok(()),
        }
    }

    /// Frees a reserved range.
    fn free_addresses(&self, Segment { start, length }: Segment) -> Result<()> {
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
        match self.map(start, length, memory) {
            Ok(()) => Ok(memory),
            Err(error) => self.release(memory).and(Err(error)),
        }
    }

    /// Maps physical memory into a reserved range, without access.
    fn map(&self, start: u64, length: u64, memory: CUmemGenericAllocationHandle) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: the addresses belong to a reserved range, nothing is mapped there, and the memory
        // is of this length. Where it is also mapped, no work accesses it any more.
        unsafe { call!(driver, cuMemMap(start, length as usize, 0, memory, 0)) }
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
        unmap(self.context.driver(), start, length)
    }

    fn release(&self, memory: CUmemGenericAllocationHandle) -> Result<()> {
        // SAFETY: the handle is live and owned, and it is not used again.
        unsafe { call!(self.context.driver(), cuMemRelease(memory)) }
    }
}

/// Unmaps a range that consists of whole mappings of a [`Mapped`].
fn unmap(driver: &Driver, start: u64, length: u64) -> Result<()> {
    // SAFETY: the range consists of whole mappings, and no work accesses it.
    unsafe { call!(driver, cuMemUnmap(start, length as usize)) }
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
