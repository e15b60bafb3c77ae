//! The operations on pools and on memory of other processes.

use curium_driver::{DevicePointer, MemoryHandleTypes, Result, Stream};
use curium_memory::{IpcMemoryHandle, MemoryAccess, MemoryPool, Plain, PoolOptions, Resource};

use super::{Fixture, Operation, boxed, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("MemoryPool::new", |fixture| made(MemoryPool::new(&fixture.device)?)),
    ("MemoryPool::default_of", |fixture| made(MemoryPool::default_of(&fixture.device)?)),
    ("MemoryPool::current_of", |fixture| made(MemoryPool::current_of(&fixture.device)?)),
    ("MemoryPool::set_current_of", |fixture| {
        made(MemoryPool::current_of(&fixture.device)?.set_current_of(&fixture.device)?)
    }),
    ("MemoryPool::release_threshold", |fixture| made(pool(fixture)?.release_threshold()?)),
    ("MemoryPool::set_reuses_by_waiting", |fixture| made(pool(fixture)?.set_reuses_by_waiting(true)?)),
    ("MemoryPool::statistics", |fixture| made(pool(fixture)?.statistics()?)),
    ("MemoryPool::reset_maxima", |fixture| made(pool(fixture)?.reset_maxima()?)),
    ("MemoryPool::trim_to", |fixture| made(pool(fixture)?.trim_to(0)?)),
    ("MemoryPool::access", |fixture| made(pool(fixture)?.access(&fixture.device)?)),
    ("MemoryPool::set_access", |fixture| made(pool(fixture)?.set_access(&fixture.device, MemoryAccess::ReadWrite)?)),
    ("MemoryPool::export_fd", |fixture| made(pool(fixture)?.export_fd()?)),
    ("MemoryPool::close", |fixture| pool(fixture)?.close().map_err(|(_, error)| error).map(boxed)),
    ("IpcMemoryHandle::of", |fixture| {
        let memory = PlainMemory::new(&fixture.stream)?;
        let name = IpcMemoryHandle::of(&fixture.context, memory.pointer)?;
        made((memory, name))
    }),
];

fn pool(fixture: &Fixture) -> Result<MemoryPool> {
    let options = PoolOptions::new(&fixture.device).with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
    MemoryPool::with_options(&fixture.driver, &options)
}

/// Memory that was not allocated in stream order.
struct PlainMemory {
    pointer: DevicePointer<u8>,
    stream: Stream,
}

impl PlainMemory {
    const BYTES: usize = 256;

    fn new(stream: &Stream) -> Result<Self> {
        Ok(Self { pointer: Plain.allocate(stream, Self::BYTES, 256)?, stream: stream.clone() })
    }
}

impl Drop for PlainMemory {
    fn drop(&mut self) {
        // SAFETY: the memory came from this resource with these figures, and nobody uses it.
        unsafe { Plain.deallocate(&self.stream, self.pointer, Self::BYTES, 256) }.expect("idle memory can be freed");
    }
}
