//! Segments of physical memory mapped into one reserved virtual address range.

use std::collections::BTreeMap;

use curium_driver::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType,
};
use curium_driver::{Context, Device, Error, Result, call};

use crate::cache::{CentralHeap, Segment};

/// A reserved virtual address range. The parts that are mapped to physical memory are its segments. A part mapped
/// directly after free memory extends that memory in place.
pub(in crate::resource) struct Mapped {
    /// Keeps the context of the device alive.
    context: Context,
    /// The reserved range; empty once it was freed.
    range: Segment,
    granularity: u64,
    /// The mapped parts, by address.
    parts: BTreeMap<u64, Part>,
}

/// Mapped physical memory.
struct Part {
    length: u64,
    memory: CUmemGenericAllocationHandle,
}

/// A gap between parts, and the number of bytes to map at its start.
struct Gap {
    start: u64,
    needed: u64,
    available: u64,
}

/// The length of the reserved range as a multiple of the device's memory, since parts in use separate the gaps between
/// them.
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
            range,
            granularity,
            parts: BTreeMap::new(),
        })
    }

    /// Maps a new part.
    pub(super) fn add(&mut self, bytes: u64, step: u64, heap: &CentralHeap) -> Result<Segment> {
        // Exhausted addresses are reported like exhausted memory.
        let gap = self.gap(bytes, heap).ok_or_else(|| {
            let [bytes, range] = [bytes, self.range.length]
                .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            Error::refused_memory(bytes, Some(range), None)
        })?;
        let length = step
            .min(gap.available)
            .next_multiple_of(self.granularity)
            .clamp(gap.needed, gap.available);
        let part = match self.map(gap.start, length) {
            Err(error) if error.is_out_of_memory() && length > gap.needed => {
                self.map(gap.start, gap.needed)?
            }
            result => result?,
        };
        let segment = Segment {
            start: gap.start,
            length: part.length,
        };
        self.parts.insert(gap.start, part);
        Ok(segment)
    }

    /// Unmaps a part and releases its memory. If unmapping fails, the part is kept.
    pub(super) fn remove(&mut self, start: u64) -> Result<()> {
        let Some(part) = self.parts.get(&start) else {
            return Ok(());
        };
        let length = part.length;
        let memory = part.memory;
        self.unmap(start, length)?;
        // Unmapped memory is not kept, even if releasing it fails.
        self.parts.remove(&start);
        self.release(memory)
    }

    pub(super) fn contains(&self, start: u64) -> bool {
        self.parts.contains_key(&start)
    }

    /// Frees the reserved range if nothing is mapped.
    pub(super) fn close(&mut self) -> Result<()> {
        if !self.parts.is_empty() || self.range.length == 0 {
            return Ok(());
        }
        let Segment { start, length } = std::mem::replace(
            &mut self.range,
            Segment {
                start: 0,
                length: 0,
            },
        );
        // SAFETY: the range was reserved in one piece of this length, nothing is mapped in it any more, and it is not
        // used again.
        unsafe {
            call!(
                self.context.driver(),
                cuMemAddressFree(start, length as usize)
            )
        }
    }

    /// Returns the gap in which the fewest bytes must be mapped to obtain a free range of `bytes` bytes.
    fn gap(&self, bytes: u64, heap: &CentralHeap) -> Option<Gap> {
        let starts = std::iter::once(self.range.start)
            .chain(self.parts.iter().map(|(start, part)| start + part.length));
        let ends = self.parts.keys().copied().chain([self.range.end()]);
        starts
            .zip(ends)
            .filter_map(|(start, end)| {
                let missing = bytes.saturating_sub(heap.with(|heap| heap.free_before(start)));
                let needed = missing
                    .next_multiple_of(self.granularity)
                    .max(self.granularity);
                (needed <= end - start).then_some(Gap {
                    start,
                    needed,
                    available: end - start,
                })
            })
            .min_by_key(|gap| (gap.needed, gap.start))
    }

    /// Maps new physical memory into the reserved range.
    fn map(&self, start: u64, length: u64) -> Result<Part> {
        let device = self.context.device();
        let driver = self.context.driver();
        let properties = properties(device);
        let mut memory: CUmemGenericAllocationHandle = 0;
        // SAFETY: `memory` is valid for writes, and the properties are complete.
        let created = unsafe {
            call!(driver, cuMemCreate(&raw mut memory, length as usize, &raw const properties, 0) creates memory)
        };
        created.map_err(|error| error.about(format!("{length} bytes")))?;
        // SAFETY: the addresses belong to the reserved range, nothing is mapped there, and the memory is new and of
        // this length.
        let mapped = unsafe { call!(driver, cuMemMap(start, length as usize, 0, memory, 0)) };
        if let Err(error) = mapped {
            return self.release(memory).and(Err(error));
        }
        let access = access(device);
        // SAFETY: the addresses are mapped, and `access` is one descriptor.
        let allowed = unsafe {
            call!(
                driver,
                cuMemSetAccess(start, length as usize, &raw const access, 1)
            )
        };
        if let Err(error) = allowed {
            return self
                .unmap(start, length)
                .and(self.release(memory))
                .and(Err(error));
        }
        Ok(Part { length, memory })
    }

    fn unmap(&self, start: u64, length: u64) -> Result<()> {
        // SAFETY: exactly this range was mapped, and no work accesses it.
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
