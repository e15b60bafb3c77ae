//! The operations on virtual memory.

use std::os::fd::AsFd;

use curium_driver::{MemoryHandleTypes, Result};
use curium_memory::virtual_memory::{Granularity, PhysicalOptions};
use curium_memory::{
    AddressRange, DeviceVec, Mapping, MemoryAccess, PhysicalMemory, TensorDataType, TensorLayout, TensorMap,
};

use super::{Fixture, LEN, Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("PhysicalOptions::granularity", |fixture| made(granularity(fixture)?)),
    ("AddressRange::reserve", |fixture| made(AddressRange::reserve(&fixture.driver, granularity(fixture)?)?)),
    ("AddressRange::map", |fixture| made(map(fixture)?)),
    ("AddressRange::close", |fixture| {
        let range = AddressRange::reserve(&fixture.driver, granularity(fixture)?)?;
        range.close().map_err(|(_, error)| error).map(boxed)
    }),
    ("PhysicalMemory::new", |fixture| made(memory(fixture)?)),
    ("PhysicalMemory::options", |fixture| made(memory(fixture)?.options()?)),
    ("PhysicalMemory::export_fd", |fixture| made(memory(fixture)?.export_fd()?)),
    ("PhysicalMemory::import_fd", |fixture| {
        let memory = memory(fixture)?;
        let descriptor = memory.export_fd()?;
        made(PhysicalMemory::import_fd(&fixture.driver, descriptor.as_fd(), memory.byte_len())?)
    }),
    ("PhysicalMemory::close", |fixture| memory(fixture)?.close().map_err(|(_, error)| error).map(boxed)),
    ("Mapping::set_access", |fixture| made(map(fixture)?.set_access(&fixture.device, MemoryAccess::ReadWrite)?)),
    ("Mapping::access", |fixture| made(map(fixture)?.access(&fixture.device)?)),
    ("Mapping::retain_memory", |fixture| made(map(fixture)?.retain_memory()?)),
    ("Mapping::close", |fixture| {
        let memory = memory(fixture)?;
        let range = AddressRange::reserve(&fixture.driver, memory.byte_len())?;
        range.map(0, &memory)?.close().map_err(|(_, error)| error)?;
        made((range, memory))
    }),
    ("DeviceVec::with_max_len", |fixture| made(vector(fixture)?)),
    ("DeviceVec::new", |fixture| made(DeviceVec::<u32>::new(&fixture.stream)?)),
    ("DeviceVec::reserve", |fixture| {
        let mut vector = vector(fixture)?;
        vector.reserve(LEN)?;
        made(vector)
    }),
    ("DeviceVec::resize", |fixture| made(filled(fixture)?)),
    ("DeviceVec::extend_from_buffer", |fixture| {
        let mut vector = vector(fixture)?;
        vector.extend_from_buffer(&fixture.buffer)?;
        made(vector)
    }),
    ("TensorMap::tiled", |fixture| made(map_tensor(fixture)?)),
    ("TensorMap::replace_address", |fixture| {
        made(map_tensor(fixture)?.replace_address(&fixture.context, fixture.buffer.as_pointer())?)
    }),
    ("DeviceVec::to_vec", |fixture| {
        let vector = filled(fixture)?;
        vector.to_vec()?;
        made(vector)
    }),
];

fn options(fixture: &Fixture) -> PhysicalOptions {
    PhysicalOptions::new(&fixture.device).with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR)
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

fn filled(fixture: &Fixture) -> Result<DeviceVec<u32>> {
    let mut vector = vector(fixture)?;
    vector.resize(LEN, 1)?;
    Ok(vector)
}

fn map_tensor(fixture: &Fixture) -> Result<TensorMap> {
    let layout = TensorLayout::new(TensorDataType::Uint32, fixture.buffer.as_pointer(), &[4, LEN as u64 / 4]);
    TensorMap::tiled(&fixture.context, &layout, &[4, 1])
}
