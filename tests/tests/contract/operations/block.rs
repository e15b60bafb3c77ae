//! Allocations from memory resources, for their operations.

use curium_driver::{DevicePointer, Result, Stream};
use curium_memory::Resource;

use super::{Fixture, Made, made};

const BYTES: usize = 1000;

/// A block of memory, deallocated on drop.
pub(crate) struct Block<R: Resource> {
    pub(crate) resource: R,
    stream: Stream,
    pub(crate) pointer: DevicePointer<u8>,
}

impl<R: Resource> Drop for Block<R> {
    fn drop(&mut self) {
        // SAFETY: the block was allocated from this resource with this size and alignment, and is
        // not in use.
        let freed = unsafe {
            self.resource
                .deallocate(&self.stream, self.pointer, BYTES, 256)
        };
        freed.expect("the driver frees the memory");
    }
}

pub(crate) fn block<R: Resource>(stream: &Stream, resource: R) -> Result<Block<R>> {
    let pointer = resource.allocate(stream, BYTES, 256)?;
    Ok(Block {
        resource,
        stream: stream.clone(),
        pointer,
    })
}

/// Allocates a block, which is deallocated when the result is dropped.
pub(crate) fn allocate<R: Resource + 'static>(fixture: &Fixture, resource: R) -> Result<Made> {
    made(block(&fixture.stream, resource)?)
}

/// Allocates, and deallocates at the first or the second attempt.
pub(crate) fn allocate_and_free(fixture: &Fixture, resource: impl Resource) -> Result<Made> {
    let pointer = resource.allocate(&fixture.stream, 64, 8)?;
    // SAFETY: the memory was just allocated here and is not in use.
    let freed = unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) };
    freed.or_else(|error| {
        // SAFETY: the memory is still allocated, because the first attempt failed.
        unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) }?;
        Err(error)
    })?;
    made(())
}

/// Releases the memory that a resource caches.
pub(crate) fn upkeep(fixture: &Fixture, resource: impl Resource) -> Result<Made> {
    resource.synchronize(&fixture.stream)?;
    resource.trim(&fixture.stream, 0)?;
    made(resource.purge()?)
}
