//! The operations that no simulated machine supports, if they need no object that such a machine would create.

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::os::fd::OwnedFd;

use curium_driver::{DiskCache, Image, JitOptions, Library, Module, Result};
#[cfg(unix)]
use curium_memory::external::{ExternalMemory, ExternalMemoryKind, ExternalSemaphore, ExternalSemaphoreKind};
use curium_memory::multicast::{MulticastObject, MulticastOptions};
use curium_memory::virtual_memory::Granularity;
use curium_memory::{Array, ArrayFlags, ArrayShape, Compression, DecompressBatch, DeviceBuffer, MipmappedArray};
use curium_tests::kernels;

use super::{Fixture, Operation, made};

const SHAPE: ArrayShape = ArrayShape::new_2d(4, 4);

pub(super) const OPERATIONS: &[Operation] = &[
    ("Array::memory_requirements", |fixture| made(array(fixture)?.memory_requirements(&fixture.device)?)),
    ("Array::sparse_properties", |fixture| made(array(fixture)?.sparse_properties()?)),
    ("Array::map_tiles", |fixture| {
        // SAFETY: the driver rejects the call and maps nothing.
        made(unsafe { array(fixture)?.map_tiles(&fixture.stream, &[]) }?)
    }),
    ("MipmappedArray::memory_requirements", |fixture| made(levels(fixture)?.memory_requirements(&fixture.device)?)),
    ("MipmappedArray::sparse_properties", |fixture| made(levels(fixture)?.sparse_properties()?)),
    ("MipmappedArray::map_tiles", |fixture| {
        // SAFETY: the driver rejects the call and maps nothing.
        made(unsafe { levels(fixture)?.map_tiles(&fixture.stream, &[]) }?)
    }),
    ("DecompressBatch::enqueue", |fixture| {
        let source = DeviceBuffer::from_slice(&fixture.stream, &[1_u8; 64])?;
        let mut target = DeviceBuffer::<u8>::zeroed(&fixture.stream, 256)?;
        let (target, written) = (target.as_slice_mut(), fixture.buffer.slice_mut(..1)?);
        let batch = DecompressBatch::new().add(Compression::Lz4, source.as_slice(), target, written)?;
        made(batch.enqueue(&fixture.stream)?)
    }),
    #[cfg(unix)]
    ("ExternalMemory::import_fd", |fixture| {
        made(ExternalMemory::import_fd(&fixture.context, descriptor(), ExternalMemoryKind::Opaque, 4096, false)?)
    }),
    #[cfg(unix)]
    ("ExternalSemaphore::import_fd", |fixture| {
        made(ExternalSemaphore::import_fd(&fixture.context, descriptor(), ExternalSemaphoreKind::Timeline)?)
    }),
    ("MulticastOptions::granularity", |fixture| made(multicast().granularity(&fixture.driver, Granularity::Minimum)?)),
    ("MulticastObject::new", |fixture| made(MulticastObject::new(&fixture.driver, &multicast())?)),
    ("Library::from_ptx_cached and Module::from_ptx_cached and Image::compile_cached", |fixture| {
        let folder = std::env::temp_dir().join(format!("curium-operations-{}", std::process::id()));
        let (cache, options) = (DiskCache::open(&folder)?, JitOptions::new());
        let library = Library::from_ptx_cached(&fixture.context, kernels::FILL, &options, &cache);
        let module = Module::from_ptx_cached(&fixture.context, kernels::FILL, &options, &cache);
        let image = Image::compile_cached(&cache, &fixture.context, kernels::FILL, &options).map(drop);
        std::fs::remove_dir_all(folder).unwrap_or_default();
        image?;
        made((library?, module?))
    }),
];

fn array(fixture: &Fixture) -> Result<Array<u32>> {
    Array::new(&fixture.stream, SHAPE, ArrayFlags::empty())
}

fn levels(fixture: &Fixture) -> Result<MipmappedArray<u32>> {
    MipmappedArray::new(&fixture.stream, SHAPE, 2, ArrayFlags::empty())
}

/// Returns a file descriptor that is not device memory.
#[cfg(unix)]
fn descriptor() -> OwnedFd {
    File::open("/dev/null").expect("the system has it").into()
}

fn multicast() -> MulticastOptions {
    MulticastOptions::new(2, 2 << 20)
}
