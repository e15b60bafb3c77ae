//! Segments of physical memory that is mapped into one row of addresses.

use std::collections::BTreeMap;

use curium_driver::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp,
    CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType,
};
use curium_driver::{Context, Device, Error, Result, call};

use super::{HeapAccess, Segment};
use crate::cache::{FreeRange, Generation, Owner};

/// A row of addresses, parts of which have memory behind them. It is one region of the heap, so that what is free joins across the
/// parts, and a part that is added behind free memory makes that longer.
pub(in crate::resource) struct Mapped {
    /// Keeps the driver's state for the device alive.
    context: Context,
    row: Segment,
    granularity: u64,
    /// The parts with memory, by address.
    parts: BTreeMap<u64, Part>,
}

/// Physical memory at its address.
struct Part {
    length: u64,
    memory: CUmemGenericAllocationHandle,
}

/// Where a part can be added, and how long it must be.
struct Place {
    start: u64,
    needed: u64,
    available: u64,
}

/// The row is this many times as long as the device's memory: parts that are in use keep what is free between them apart.
const ROW_PER_MEMORY: u64 = 4;

impl Mapped {
    pub(in crate::resource) fn new(context: &Context) -> Result<Self> {
        let device = context.device();
        let properties = properties(device);
        let mut granularity = 0;
        let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        // SAFETY: `granularity` is a valid place for the answer, and the properties are complete.
        unsafe {
            call!(device.driver(), cuMemGetAllocationGranularity(&raw mut granularity, &raw const properties, option))
        }?;
        let granularity = granularity as u64;
        let length = (device.total_memory()? as u64 * ROW_PER_MEMORY).next_multiple_of(granularity);
        let row = reserve(device, length)?;
        Ok(Self { context: context.clone(), row, granularity, parts: BTreeMap::new() })
    }

    pub(in crate::resource) fn grow(&mut self, bytes: u64, step: u64, heap: &impl HeapAccess) -> Result<()> {
        // Addresses run out as memory does.
        let place = self.place(bytes, heap).ok_or_else(|| {
            let [bytes, row] = [bytes, self.row.length].map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            Error::refused_memory(bytes, Some(row), None)
        })?;
        let length = step.min(place.available).next_multiple_of(self.granularity).clamp(place.needed, place.available);
        let part = match self.map(place.start, length) {
            Err(error) if error.is_out_of_memory() && length > place.needed => self.map(place.start, place.needed)?,
            result => result?,
        };
        heap.with_heap(|heap| {
            heap.declare(self.row.start, self.row.length);
            heap.free(place.start, part.length, Owner::ALL, Generation::default());
        });
        self.parts.insert(place.start, part);
        Ok(())
    }

    pub(in crate::resource) fn trim(&mut self, keep: u64, heap: &impl HeapAccess) -> Result<()> {
        let mut left = self.list().iter().map(|segment| segment.length).sum::<u64>();
        for Segment { start, length } in self.list().into_iter().rev() {
            if left - length < keep || !heap.with_heap(|heap| heap.withdraw(start, length)) {
                continue;
            }
            if let Err(error) = self.unmap(start) {
                if self.parts.contains_key(&start) {
                    heap.with_heap(|heap| heap.free(start, length, Owner::ALL, Generation::default()));
                }
                return Err(error);
            }
            left -= length;
        }
        Ok(())
    }

    pub(in crate::resource) fn close(&mut self, heap: &impl HeapAccess) -> Result<()> {
        let free = self.list().into_iter().filter(|part| heap.with_heap(|heap| heap.withdraw(part.start, part.length)));
        // One part that is refused must not keep the others.
        free.map(|part| self.unmap(part.start)).fold(Ok(()), Result::and)?;
        if !self.parts.is_empty() {
            return Ok(());
        }
        let Segment { start, length } = std::mem::replace(&mut self.row, Segment { start: 0, length: 0 });
        if length == 0 {
            return Ok(());
        }
        // SAFETY: the addresses were reserved in one piece of this length, nothing is mapped there any more, and they are forgotten.
        unsafe { call!(self.context.driver(), cuMemAddressFree(start, length as usize)) }
    }

    pub(in crate::resource) fn list(&self) -> Vec<Segment> {
        self.parts.iter().map(|(start, part)| Segment { start: *start, length: part.length }).collect()
    }

    /// The gap between parts where the least is missing to a free row of `bytes` bytes.
    #[inline]
    fn place(&self, bytes: u64, heap: &impl HeapAccess) -> Option<Place> {
        let begins = std::iter::once(self.row.start).chain(self.parts.iter().map(|(start, part)| start + part.length));
        let ends = self.parts.keys().copied().chain([self.row.end()]);
        let place = |(start, end): (u64, u64)| {
            let before: Option<FreeRange> = heap.with_heap(|heap| heap.ending_at(start));
            let needed = Segment::beyond(before, bytes).next_multiple_of(self.granularity).max(self.granularity);
            (needed <= end - start).then_some(Place { start, needed, available: end - start })
        };
        begins.zip(ends).filter_map(place).min_by_key(|place| (place.needed, place.start))
    }

    /// Puts physical memory behind addresses of the row.
    #[inline]
    fn map(&self, start: u64, length: u64) -> Result<Part> {
        let (device, driver) = (self.context.device(), self.context.driver());
        let properties = properties(device);
        let mut memory: CUmemGenericAllocationHandle = 0;
        // SAFETY: `memory` is a valid place for the answer, and the properties are complete.
        let created = unsafe {
            call!(driver, cuMemCreate(&raw mut memory, length as usize, &raw const properties, 0) creates memory)
        };
        created.map_err(|error| error.about(format!("{length} bytes")))?;
        // SAFETY: the addresses belong to the row, nothing is mapped there, and the memory is new and of this length.
        let mapped = unsafe { call!(driver, cuMemMap(start, length as usize, 0, memory, 0)) };
        if let Err(error) = mapped {
            return self.release(memory).and(Err(error));
        }
        let access = access(device);
        // SAFETY: the addresses are mapped, and `access` is one description.
        let allowed = unsafe { call!(driver, cuMemSetAccess(start, length as usize, &raw const access, 1)) };
        if let Err(error) = allowed {
            return self.take_away(start, length).and(self.release(memory)).and(Err(error));
        }
        Ok(Part { length, memory })
    }

    /// Takes the memory of a part away, and gives it back.
    #[inline]
    fn unmap(&mut self, start: u64) -> Result<()> {
        let Some(part) = self.parts.get(&start) else { return Ok(()) };
        let (length, memory) = (part.length, part.memory);
        self.take_away(start, length)?;
        // Without its address the memory is of no use, even if it were not given back.
        self.parts.remove(&start);
        self.release(memory)
    }

    #[inline]
    fn take_away(&self, start: u64, length: u64) -> Result<()> {
        // SAFETY: exactly this range was mapped, and no work uses it.
        unsafe { call!(self.context.driver(), cuMemUnmap(start, length as usize)) }
    }

    #[inline]
    fn release(&self, memory: CUmemGenericAllocationHandle) -> Result<()> {
        // SAFETY: the handle is live and ours, and it is forgotten here.
        unsafe { call!(self.context.driver(), cuMemRelease(memory)) }
    }
}

/// Reserves a row of addresses.
#[inline]
fn reserve(device: &Device, length: u64) -> Result<Segment> {
    let mut start: CUdeviceptr = 0;
    // SAFETY: `start` is a valid place for the answer; 0 stands for any alignment and any address.
    let result =
        unsafe { call!(device.driver(), cuMemAddressReserve(&raw mut start, length as usize, 0, 0, 0) creates start) };
    result.map_err(|error| error.about(format!("{length} addresses")))?;
    Ok(Segment { start, length })
}

/// Ordinary memory of the device.
#[inline]
fn properties(device: &Device) -> CUmemAllocationProp {
    let type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    CUmemAllocationProp { type_, location: location(device), ..CUmemAllocationProp::default() }
}

/// What the device may do with its own memory.
#[inline]
fn access(device: &Device) -> CUmemAccessDesc {
    let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemAccessDesc { location: location(device), flags }
}

#[inline]
fn location(device: &Device) -> CUmemLocation {
    let type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let mut location = CUmemLocation { type_, ..CUmemLocation::default() };
    location.__bindgen_anon_1.id = device.as_raw();
    location
}
