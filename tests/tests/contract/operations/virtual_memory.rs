//! The operations on virtual memory.

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

use curium_driver::hazard::AccessGuard;
use curium_driver::{Argument, Result};
use curium_memory::virtual_memory::{FabricHandle, Granularity, PhysicalOptions, ReserveOptions};
use curium_memory::{
    AddressRange, BorrowedBuffer, DeviceVec, Im2col, Im2colWide, Im2colWideMode, Mapping, MemoryAccess, MemoryLocation,
    PhysicalMemory, TensorAllocationClass, TensorDataType, TensorLayout, TensorMap, TensorRead, TensorSwizzle,
    TensorView, TensorViewMut, TensorWrite,
};
use curium_tests::shared_handle_types;

use super::memory::pass;
use super::{Fixture, LEN, Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("PhysicalOptions::granularity", |fixture| made(granularity(fixture)?)),
    ("AddressRange::reserve", |fixture| made(AddressRange::reserve(&fixture.driver, granularity(fixture)?)?)),
    ("AddressRange::map", |fixture| made(map(fixture)?)),
    ("AddressRange::close", |fixture| {
        let range = AddressRange::reserve(&fixture.driver, granularity(fixture)?)?;
        range.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("PhysicalMemory::new", |fixture| made(memory(fixture)?)),
    ("PhysicalMemory::options", |fixture| made(memory(fixture)?.options()?)),
    #[cfg(target_os = "linux")]
    ("PhysicalMemory::export_fd", |fixture| made(memory(fixture)?.export_fd()?)),
    #[cfg(target_os = "linux")]
    ("PhysicalMemory::import_fd", |fixture| {
        let memory = memory(fixture)?;
        let descriptor = memory.export_fd()?;
        made(PhysicalMemory::import_fd(&fixture.driver, descriptor.as_fd(), memory.byte_len())?)
    }),
    ("PhysicalMemory::close", |fixture| memory(fixture)?.close().map_err(|returned| returned.error).map(boxed)),
    ("Mapping::set_access", |fixture| made(map(fixture)?.set_access(&fixture.device, MemoryAccess::ReadWrite)?)),
    ("Mapping::access", |fixture| made(map(fixture)?.access(&fixture.device)?)),
    ("Mapping::retain_memory", |fixture| made(map(fixture)?.retain_memory()?)),
    ("Mapping::close", |fixture| {
        let memory = memory(fixture)?;
        let range = AddressRange::reserve(&fixture.driver, memory.byte_len())?;
        range.map(0, &memory)?.close()?;
        made((range, memory))
    }),
    ("AddressRange::reserve_with", |fixture| {
        made(AddressRange::reserve_with(&fixture.driver, granularity(fixture)?, ReserveOptions::new())?)
    }),
    ("PhysicalMemory::with_options", |fixture| made(memory(fixture)?)),
    ("Mapping::set_accesses", |fixture| {
        let (mapping, location) = (map(fixture)?, MemoryLocation::from(&fixture.device));
        made(mapping.set_accesses(&[(location, MemoryAccess::ReadWrite)])?)
    }),
    ("DeviceVec::from_slice", |fixture| made(DeviceVec::from_slice(&fixture.stream, &[1_u32; LEN])?)),
    ("DeviceVec::push", |fixture| {
        let mut vector = vector(fixture)?;
        vector.push(1)?;
        made(vector)
    }),
    ("DeviceVec::extend_from_slice", |fixture| {
        let mut vector = vector(fixture)?;
        vector.extend_from_slice(&[1, 2])?;
        made(vector)
    }),
    ("DeviceVec::copy_from_slice", |fixture| {
        let mut vector = filled(fixture)?;
        vector.copy_from_slice(&[1; LEN])?;
        made(vector)
    }),
    ("DeviceVec::copy_to_slice", |fixture| {
        let vector = filled(fixture)?;
        vector.copy_to_slice(&mut [0; LEN])?;
        made(vector)
    }),
    ("DeviceVec::bind", |fixture| {
        let mut vector = filled(fixture)?;
        let mut argument = &mut vector;
        // SAFETY: no work is enqueued on the stream.
        unsafe { Argument::<&mut [u32]>::bind(&mut argument, &mut AccessGuard::new(&fixture.other)?) }?;
        made(vector)
    }),
    ("DeviceVec::try_clone", |fixture| {
        let vector = filled(fixture)?;
        let clone = vector.try_clone()?;
        made((vector, clone))
    }),
    ("DeviceVec::close", |fixture| filled(fixture)?.close().map_err(|returned| returned.error).map(boxed)),
    ("DeviceVec::with_max_len", |fixture| made(vector(fixture)?)),
    ("DeviceVec::new", |fixture| made(DeviceVec::<u32>::new(&fixture.stream)?)),
    ("DeviceVec::reserve", |fixture| {
        let mut vector = vector(fixture)?;
        vector.reserve(LEN)?;
        made(vector)
    }),
    ("DeviceVec::resize", |fixture| made(filled(fixture)?)),
    ("DeviceVec::extend_from_device", |fixture| {
        let mut vector = vector(fixture)?;
        vector.extend_from_device(&fixture.buffer)?;
        made(vector)
    }),
    ("BorrowedBuffer::to_vec", |fixture| {
        let buffer = foreign(fixture)?;
        buffer.to_vec()?;
        made(buffer)
    }),
    ("BorrowedBuffer::into_owner", |fixture| {
        foreign(fixture)?.into_owner().map_err(|returned| returned.error).map(boxed)
    }),
    ("TensorMap::tiled", |fixture| made(map_tensor(fixture)?)),
    ("TensorMap::im2col", |fixture| {
        let layout = images(fixture);
        made(TensorMap::im2col(&fixture.context, &layout, &pixels())?)
    }),
    ("TensorView::tiled", |fixture| {
        let layout = images(fixture);
        made(TensorView::tiled(fixture.buffer.as_slice(), &layout, &[4, 1, 1, 1])?.as_map().to_words())
    }),
    ("TensorView::im2col", |fixture| {
        let (layout, pixels) = (images(fixture), pixels());
        made(TensorView::im2col(fixture.buffer.as_slice(), &layout, &pixels)?.as_map().to_words())
    }),
    ("TensorViewMut::tiled", |fixture| {
        let layout = images(fixture);
        made(TensorViewMut::tiled(fixture.buffer.as_slice_mut(), &layout, &[4, 1, 1, 1])?.as_map().to_words())
    }),
    ("TensorViewMut::im2col", |fixture| {
        let (layout, pixels) = (images(fixture), pixels());
        made(TensorViewMut::im2col(fixture.buffer.as_slice_mut(), &layout, &pixels)?.as_map().to_words())
    }),
    ("BorrowedBuffer::bind", |fixture| {
        let mut buffer = foreign(fixture)?;
        pass::<&mut [u32]>(&fixture.other, &mut buffer)?;
        made(buffer)
    }),
    ("TensorView::bind and TensorView::launched", |fixture| {
        let view = TensorView::tiled(fixture.buffer.as_slice(), &images(fixture), &[4, 1, 1, 1])?;
        pass::<TensorRead>(&fixture.other, &view)
    }),
    ("TensorViewMut::bind and TensorViewMut::launched", |fixture| {
        let layout = images(fixture);
        let mut view = TensorViewMut::tiled(fixture.buffer.as_slice_mut(), &layout, &[4, 1, 1, 1])?;
        pass::<TensorWrite>(&fixture.other, &mut view)
    }),
    ("TensorMap::replace_address", |fixture| {
        made(map_tensor(fixture)?.replace_address(&fixture.context, fixture.buffer.as_pointer())?)
    }),
    ("DeviceVec::to_vec", |fixture| {
        let vector = filled(fixture)?;
        vector.to_vec()?;
        made(vector)
    }),
];

/// Operations that a simulated machine may not support.
#[cfg(not(miri))]
pub(super) const SOLITARY: &[Operation] = &[
    ("DeviceVec::shrink_to and DeviceVec::shrink_to_fit", |fixture| {
        let mut vector = filled(fixture)?;
        vector.truncate(1);
        vector.shrink_to(2)?;
        vector.shrink_to_fit()?;
        made(vector)
    }),
    ("TensorMap::im2col_wide", |fixture| {
        let layout = images(fixture).with_swizzle(TensorSwizzle::Bytes64);
        made(TensorMap::im2col_wide(&fixture.context, &layout, &wide_pixels())?)
    }),
    ("TensorView::im2col_wide", |fixture| {
        let layout = images(fixture).with_swizzle(TensorSwizzle::Bytes64);
        made(TensorView::im2col_wide(fixture.buffer.as_slice(), &layout, &wide_pixels())?.as_map().to_words())
    }),
    ("TensorMap::set_allocation_class", |fixture| {
        let mut map = map_tensor(fixture)?;
        // SAFETY: only the tensor itself is encoded.
        made(unsafe { map.set_allocation_class(&fixture.context, TensorAllocationClass::Auto) }?)
    }),
    ("PhysicalMemory::export_fabric", |fixture| made(memory(fixture)?.export_fabric()?)),
    ("PhysicalMemory::import_fabric", |fixture| {
        let handle = FabricHandle::from_bytes([1; 64]);
        made(PhysicalMemory::import_fabric(&fixture.driver, handle, granularity(fixture)?)?)
    }),
];

fn options(fixture: &Fixture) -> PhysicalOptions {
    PhysicalOptions::new(&fixture.device).with_handle_types(shared_handle_types())
}

fn granularity(fixture: &Fixture) -> Result<usize> {
    options(fixture).granularity(&fixture.driver, Granularity::Minimum)
}

fn memory(fixture: &Fixture) -> Result<PhysicalMemory> {
    PhysicalMemory::with_options(&fixture.driver, granularity(fixture)?, &options(fixture))
}

fn map(fixture: &Fixture) -> Result<Mapping> {
    let memory = memory(fixture)?;
    AddressRange::reserve(&fixture.driver, memory.byte_len())?.map(0, &memory)
}

fn vector(fixture: &Fixture) -> Result<DeviceVec<u32>> {
    DeviceVec::with_max_len(&fixture.stream, LEN)
}

pub(super) fn filled(fixture: &Fixture) -> Result<DeviceVec<u32>> {
    let mut vector = vector(fixture)?;
    vector.resize(LEN, 1)?;
    Ok(vector)
}

fn map_tensor(fixture: &Fixture) -> Result<TensorMap> {
    let layout = TensorLayout::new(TensorDataType::Uint32, fixture.buffer.as_pointer(), &[4, LEN as u64 / 4]);
    TensorMap::tiled(&fixture.context, &layout, &[4, 1])
}

/// Returns a buffer of words in a mapping.
pub(super) fn foreign(fixture: &Fixture) -> Result<BorrowedBuffer<u32, Mapping>> {
    let mapping = map(fixture)?;
    mapping.set_access(&fixture.device, MemoryAccess::ReadWrite)?;
    // SAFETY: the mapping has this many words, is accessible to the device, and is not used elsewhere.
    let mut buffer = unsafe { BorrowedBuffer::new(&fixture.stream, mapping.as_pointer().cast(), LEN, mapping) }?;
    buffer.as_slice_mut().fill(3)?;
    Ok(buffer)
}

/// Returns the layout of one image of two by two pixels.
fn images(fixture: &Fixture) -> TensorLayout {
    TensorLayout::new(TensorDataType::Uint32, fixture.buffer.as_pointer(), &[4, 2, 2, 1])
}

fn pixels() -> Im2col<'static> {
    Im2col { lower: &[0, 0], upper: &[0, 0], channels_per_pixel: 4, pixels_per_column: 2 }
}

fn wide_pixels() -> Im2colWide {
    Im2colWide { lower: 0, upper: 0, channels_per_pixel: 4, pixels_per_column: 2, mode: Im2colWideMode::Column }
}
