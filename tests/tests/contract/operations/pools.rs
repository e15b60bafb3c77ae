//! The operations on pools and on memory shared by other processes.

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

use curium_driver::Result;
use curium_memory::virtual_memory::FabricHandle;
#[cfg(target_os = "linux")]
use curium_memory::{IpcMemory, IpcMemoryHandle, PoolMemory, SyncAlloc};
use curium_memory::{MemoryAccess, MemoryLocation, MemoryPool, PoolKind, PoolOptions};
use curium_tests::shared_handle_types;

#[cfg(target_os = "linux")]
use super::other_process::OtherProcess;
use super::resources::{Block, allocate, allocate_and_free, block};
use super::{Fixture, Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("MemoryPool::new", |fixture| made(MemoryPool::new(&fixture.device)?)),
    ("MemoryPool::default_for", |fixture| made(MemoryPool::default_for(&fixture.device)?)),
    ("MemoryPool::current_for", |fixture| made(MemoryPool::current_for(&fixture.device)?)),
    ("MemoryPool::set_current_for", |fixture| {
        made(MemoryPool::current_for(&fixture.device)?.set_current_for(&fixture.device)?)
    }),
    ("MemoryPool::release_threshold", |fixture| made(pool(fixture)?.release_threshold()?)),
    ("MemoryPool::set_reuse_allow_internal_dependencies", |fixture| {
        made(pool(fixture)?.set_reuse_allow_internal_dependencies(true)?)
    }),
    ("MemoryPool::statistics", |fixture| made(pool(fixture)?.statistics()?)),
    ("MemoryPool::reset_high_watermarks", |fixture| made(pool(fixture)?.reset_high_watermarks()?)),
    ("MemoryPool::trim_to", |fixture| made(pool(fixture)?.trim_to(0)?)),
    ("MemoryPool::access", |fixture| made(pool(fixture)?.access(&fixture.device)?)),
    ("MemoryPool::set_access", |fixture| made(pool(fixture)?.set_access(&fixture.device, MemoryAccess::ReadWrite)?)),
    #[cfg(target_os = "linux")]
    ("MemoryPool::export_fd", |fixture| made(pool(fixture)?.export_fd()?)),
    ("MemoryPool::close", |fixture| pool(fixture)?.close().map_err(|returned| returned.error).map(boxed)),
    #[cfg(target_os = "linux")]
    ("IpcMemoryHandle::of", |fixture| {
        let memory = block(&fixture.stream, SyncAlloc)?;
        let name = IpcMemoryHandle::of(&fixture.context, memory.pointer)?;
        made((memory, name))
    }),
    ("MemoryPool::with_options", |fixture| made(pool(fixture)?)),
    ("MemoryPool::allocate", |fixture| allocate(fixture, MemoryPool::new(&fixture.device)?)),
    ("MemoryPool::deallocate", |fixture| allocate_and_free(fixture, MemoryPool::new(&fixture.device)?)),
    ("MemoryPool::default_for_location", |fixture| {
        made(MemoryPool::default_for_location(&fixture.driver, here(fixture), KIND)?)
    }),
    ("MemoryPool::current_for_location", |fixture| {
        made(MemoryPool::current_for_location(&fixture.driver, here(fixture), KIND)?)
    }),
    ("MemoryPool::set_current_for_location", |fixture| {
        let current = MemoryPool::current_for(&fixture.device)?;
        made(current.set_current_for_location(here(fixture), KIND)?)
    }),
    ("MemoryPool::set_release_threshold", |fixture| made(pool(fixture)?.set_release_threshold(1 << 20)?)),
    ("MemoryPool::reuse_follow_event_dependencies", |fixture| made(pool(fixture)?.reuse_follow_event_dependencies()?)),
    ("MemoryPool::set_reuse_follow_event_dependencies", |fixture| {
        made(pool(fixture)?.set_reuse_follow_event_dependencies(false)?)
    }),
    ("MemoryPool::reuse_allow_opportunistic", |fixture| made(pool(fixture)?.reuse_allow_opportunistic()?)),
    ("MemoryPool::set_reuse_allow_opportunistic", |fixture| made(pool(fixture)?.set_reuse_allow_opportunistic(false)?)),
    ("MemoryPool::reuse_allow_internal_dependencies", |fixture| {
        made(pool(fixture)?.reuse_allow_internal_dependencies()?)
    }),
    #[cfg(target_os = "linux")]
    ("MemoryPool::export_pointer", |fixture| {
        let memory = block(&fixture.stream, pool(fixture)?)?;
        // Memory can be exported only after its pool was shared.
        let descriptor = memory.resource.export_fd()?;
        let name = memory.resource.export_pointer(memory.pointer)?;
        made((memory, descriptor, name))
    }),
];

/// The operations that require a driver of CUDA 13.1.
pub(super) const NEWER: &[Operation] = &[
    ("MemoryPool::kind", |fixture| made(pool(fixture)?.kind()?)),
    ("MemoryPool::location", |fixture| made(pool(fixture)?.location()?)),
    ("MemoryPool::handle_types", |fixture| made(pool(fixture)?.handle_types()?)),
    ("MemoryPool::max_bytes", |fixture| made(pool(fixture)?.max_bytes()?)),
    ("MemoryPool::is_for_hardware_decompression", |fixture| made(pool(fixture)?.is_for_hardware_decompression()?)),
];

/// The operations that open objects shared by another process, which is another simulator.
pub(super) const SHARED: &[Operation] = &[
    #[cfg(target_os = "linux")]
    ("MemoryPool::import_fd", |fixture| made(import(fixture)?.imported)),
    #[cfg(target_os = "linux")]
    ("MemoryPool::import_pointer", |fixture| made(open(fixture)?)),
    #[cfg(target_os = "linux")]
    ("PoolMemory::close", |fixture| {
        let Opened { memory, shared } = open(fixture)?;
        memory.close()?;
        made(shared)
    }),
    #[cfg(target_os = "linux")]
    ("IpcMemory::open", |fixture| made(open_ipc(fixture)?)),
    #[cfg(target_os = "linux")]
    ("IpcMemory::close", |fixture| {
        let (memory, owner) = open_ipc(fixture)?;
        memory.close()?;
        made(owner)
    }),
];

/// The operations that fail on a machine without a fabric.
pub(super) const SOLITARY: &[Operation] = &[
    ("MemoryPool::export_fabric", |fixture| made(pool(fixture)?.export_fabric()?)),
    ("MemoryPool::import_fabric", |fixture| {
        made(MemoryPool::import_fabric(&fixture.driver, FabricHandle::from_bytes([1; 64]))?)
    }),
];

const KIND: PoolKind = PoolKind::Pinned;

/// A pool of another process, on both sides.
#[cfg(target_os = "linux")]
struct SharedPool {
    imported: MemoryPool,
    theirs: Block<MemoryPool>,
    _owner: OtherProcess,
}

/// Memory of such a pool.
#[cfg(target_os = "linux")]
struct Opened {
    memory: PoolMemory,
    shared: SharedPool,
}

#[cfg(target_os = "linux")]
fn import(fixture: &Fixture) -> Result<SharedPool> {
    let owner = OtherProcess::new(fixture)?;
    let options = PoolOptions::new(&owner.device).with_handle_types(shared_handle_types());
    let theirs = MemoryPool::with_options(&owner.driver, &options).and_then(|pool| block(&owner.stream, pool));
    let theirs = theirs.expect("the other process has memory");
    let descriptor = theirs.resource.export_fd().expect("the pool can be shared");
    let imported = MemoryPool::import_fd(&fixture.driver, descriptor.as_fd())?;
    Ok(SharedPool { imported, theirs, _owner: owner })
}

#[cfg(target_os = "linux")]
fn open(fixture: &Fixture) -> Result<Opened> {
    let shared = import(fixture)?;
    let name = shared.theirs.resource.export_pointer(shared.theirs.pointer).expect("the pool is shared");
    Ok(Opened { memory: shared.imported.import_pointer(name)?, shared })
}

#[cfg(target_os = "linux")]
fn open_ipc(fixture: &Fixture) -> Result<(IpcMemory, (Block<SyncAlloc>, OtherProcess))> {
    let owner = OtherProcess::new(fixture)?;
    let theirs = block(&owner.stream, SyncAlloc).expect("the other process has memory");
    let name = IpcMemoryHandle::of(owner.stream.context(), theirs.pointer).expect("the memory has a name");
    Ok((IpcMemory::open(&fixture.context, name)?, (theirs, owner)))
}

fn here(fixture: &Fixture) -> Option<MemoryLocation> {
    Some(MemoryLocation::from(&fixture.device))
}

fn pool(fixture: &Fixture) -> Result<MemoryPool> {
    let options = PoolOptions::new(&fixture.device).with_handle_types(shared_handle_types());
    MemoryPool::with_options(&fixture.driver, &options)
}
