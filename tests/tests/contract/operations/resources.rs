//! The operations on resources. Resources with out-of-memory recovery have tests of their own.

use curium_driver::Result;
#[cfg(not(miri))]
use curium_driver::Stream;
#[cfg(not(miri))]
use curium_memory::Arena;
use curium_memory::c_resource::{ExternalResource, ResourceTable};
#[cfg(not(miri))]
use curium_memory::diagnostics::AllocationLog;
use curium_memory::diagnostics::AllocationRecorder;
use curium_memory::{
    CachingOptions, CachingResource, FailureCallback, LeakTracker, LimitedResource, Managed, Pinned, Reclaiming,
    Resource, Statistics, StreamOrdered, SyncAlloc,
};

use super::{Fixture, Made, Operation, made};

/// A block of memory, deallocated on drop.
#[cfg(not(miri))]
pub(super) struct Block<R: Resource> {
    pub(super) resource: R,
    stream: Stream,
    pub(super) pointer: curium_driver::DevicePointer<u8>,
}

#[cfg(not(miri))]
const BYTES: usize = 1000;

#[cfg(not(miri))]
impl<R: Resource> Drop for Block<R> {
    fn drop(&mut self) {
        // SAFETY: the block was allocated from this resource with this size and alignment, and is not in use.
        let freed = unsafe { self.resource.deallocate(&self.stream, self.pointer, BYTES, 256) };
        freed.expect("the driver frees the memory");
    }
}

/// Allocates a block, which is deallocated when the result is dropped.
#[cfg(not(miri))]
pub(super) fn allocate<R: Resource + 'static>(fixture: &Fixture, resource: R) -> Result<Made> {
    made(block(&fixture.stream, resource)?)
}

#[cfg(not(miri))]
pub(super) fn block<R: Resource>(stream: &Stream, resource: R) -> Result<Block<R>> {
    let pointer = resource.allocate(stream, BYTES, 256)?;
    Ok(Block { resource, stream: stream.clone(), pointer })
}

/// Operations that recover from failed calls.
#[cfg(not(miri))]
pub(super) const SOLITARY: &[Operation] = &[
    ("Reclaiming::allocate and Reclaiming::deallocate", |fixture| {
        allocate_and_free(fixture, Reclaiming::new(StreamOrdered))
    }),
    ("Reclaiming::trim and Reclaiming::synchronize and Reclaiming::purge", |fixture| {
        upkeep(fixture, Reclaiming::new(StreamOrdered))
    }),
    ("ResourceTable::export and ExternalResource::allocate and ExternalResource::deallocate", |fixture| {
        let table = ResourceTable::export(StreamOrdered, &fixture.context);
        // SAFETY: the table is that of a resource, and has no other owner.
        allocate_and_free(fixture, unsafe { ExternalResource::from_table(table) }?)
    }),
    ("AllocationLog::replay", |fixture| {
        let recording = AllocationRecorder::ring(StreamOrdered, 16);
        allocate_and_free(fixture, &recording)?;
        made(AllocationLog::new(recording.events()).replay(&StreamOrdered, &fixture.context)?)
    }),
    ("CachingResource::with_options", |fixture| {
        made(CachingResource::with_options(&fixture.context, &CachingOptions::default())?)
    }),
    ("CachingResource::deallocate", |fixture| allocate_and_free(fixture, CachingResource::new(&fixture.context)?)),
    ("CachingResource::purge and CachingResource::trim", |fixture| {
        let resource = CachingResource::new(&fixture.context)?;
        let pointer = resource.allocate(&fixture.stream, 64, 8)?;
        // SAFETY: the memory was just allocated here and is not in use.
        unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) }?;
        resource.purge()?;
        resource.trim(&fixture.stream, 0)?;
        made(resource)
    }),
];

/// Allocates, and deallocates at the first or the second attempt.
pub(super) fn allocate_and_free(fixture: &Fixture, resource: impl Resource) -> Result<Made> {
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

#[cfg(not(miri))]
fn caching(fixture: &Fixture) -> Result<CachingResource> {
    // Segments of exactly the required size: the cache retries with that size after a larger one fails.
    let options = CachingOptions::new().with_cache(true).with_segment_bytes(1);
    CachingResource::with_options(&fixture.context, &options)
}

pub(super) const OPERATIONS: &[Operation] = &[
    ("StreamOrdered::allocate and StreamOrdered::deallocate", |fixture| allocate_and_free(fixture, StreamOrdered)),
    ("StreamOrdered::trim", |fixture| made(StreamOrdered.trim(&fixture.stream, 0)?)),
    ("SyncAlloc::allocate and SyncAlloc::deallocate", |fixture| allocate_and_free(fixture, SyncAlloc)),
    ("Managed::allocate and Managed::deallocate", |fixture| allocate_and_free(fixture, Managed)),
    ("Pinned::allocate and Pinned::deallocate", |fixture| allocate_and_free(fixture, Pinned)),
    #[cfg(not(miri))]
    ("Arena::new", |fixture| made(Arena::new(&fixture.context)?)),
    #[cfg(not(miri))]
    ("Arena::allocate", |fixture| allocate(fixture, Arena::new(&fixture.context)?)),
    #[cfg(not(miri))]
    ("CachingResource::new", |fixture| made(CachingResource::new(&fixture.context)?)),
    ("CachingResource::with_upstream", |fixture| {
        made(CachingResource::with_upstream(&fixture.context, &CachingOptions::new(), SyncAlloc)?)
    }),
    #[cfg(not(miri))]
    ("CachingResource::private_pool", |fixture| {
        let resource = caching(fixture)?;
        made((resource.private_pool()?, resource))
    }),
    #[cfg(not(miri))]
    ("CachingResource::allocate", |fixture| allocate(fixture, caching(fixture)?)),
    #[cfg(not(miri))]
    ("CachingResource::synchronize", |fixture| {
        let resource = caching(fixture)?;
        resource.synchronize(&fixture.stream)?;
        made(resource)
    }),
    ("LeakTracker::allocate and LeakTracker::deallocate", |fixture| {
        allocate_and_free(fixture, LeakTracker::new(StreamOrdered))
    }),
    ("LimitedResource::allocate and LimitedResource::deallocate", |fixture| {
        allocate_and_free(fixture, LimitedResource::new(StreamOrdered, 1 << 20))
    }),
    ("FailureCallback::allocate and FailureCallback::deallocate", |fixture| {
        allocate_and_free(fixture, FailureCallback::new(StreamOrdered, |_, _, _| false))
    }),
    ("AllocationRecorder::allocate and AllocationRecorder::deallocate", |fixture| {
        allocate_and_free(fixture, AllocationRecorder::ring(StreamOrdered, 16))
    }),
    ("Statistics::allocate and Statistics::deallocate", |fixture| {
        allocate_and_free(fixture, Statistics::new(StreamOrdered))
    }),
    ("LimitedResource::trim and LimitedResource::synchronize and LimitedResource::purge", |fixture| {
        upkeep(fixture, LimitedResource::new(StreamOrdered, 64))
    }),
    ("FailureCallback::trim and FailureCallback::synchronize and FailureCallback::purge", |fixture| {
        upkeep(fixture, FailureCallback::new(StreamOrdered, |_, _, _| false))
    }),
    ("AllocationRecorder::trim and AllocationRecorder::synchronize and AllocationRecorder::purge", |fixture| {
        upkeep(fixture, AllocationRecorder::ring(StreamOrdered, 16))
    }),
    ("Statistics::trim and Statistics::synchronize and Statistics::purge", |fixture| {
        upkeep(fixture, Statistics::new(StreamOrdered))
    }),
    ("LeakTracker::trim and LeakTracker::synchronize and LeakTracker::purge", |fixture| {
        upkeep(fixture, LeakTracker::new(StreamOrdered))
    }),
    #[cfg(not(miri))]
    ("Arena::deallocate", |fixture| {
        let arena = Arena::new(&fixture.context)?;
        allocate_and_free(fixture, &arena)?;
        made(arena)
    }),
    #[cfg(not(miri))]
    ("Arena::trim", |fixture| {
        let arena = Arena::new(&fixture.context)?;
        allocate_and_free(fixture, &arena)?;
        arena.trim(&fixture.stream, 0)?;
        made(arena)
    }),
];

/// Releases the memory that a resource caches.
fn upkeep(fixture: &Fixture, resource: impl Resource) -> Result<Made> {
    resource.synchronize(&fixture.stream)?;
    resource.trim(&fixture.stream, 0)?;
    made(resource.purge()?)
}
