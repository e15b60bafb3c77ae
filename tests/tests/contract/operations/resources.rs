//! The operations of the sources of memory.

use curium_driver::Result;
use curium_memory::{CachingOptions, CachingResource, Plain, Reclaiming, Resource, StreamOrdered};

use super::{Fixture, Made, Operation, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Plain::allocate and Plain::deallocate", |fixture| allocate_and_free(fixture, Plain)),
    ("StreamOrdered::allocate and StreamOrdered::deallocate", |fixture| allocate_and_free(fixture, StreamOrdered)),
];

/// Those that make up for calls that fail.
#[cfg(not(miri))]
pub(super) const SOLITARY: &[Operation] = &[
    ("StreamOrdered::trim", |fixture| {
        StreamOrdered.trim(&fixture.stream, 0)?;
        made(())
    }),
    ("Reclaiming::allocate and Reclaiming::deallocate", |fixture| {
        allocate_and_free(fixture, Reclaiming::new(StreamOrdered))
    }),
    ("CachingResource::new", |fixture| made(CachingResource::new(&fixture.context)?)),
    ("CachingResource::with_options", |fixture| {
        made(CachingResource::with_options(&fixture.context, &CachingOptions::default())?)
    }),
    ("CachingResource::with_upstream", |fixture| {
        let resource = CachingResource::with_upstream(&fixture.context, &CachingOptions::default(), Plain)?;
        allocate_and_free(fixture, resource)
    }),
    ("CachingResource::allocate and CachingResource::deallocate", |fixture| {
        allocate_and_free(fixture, CachingResource::new(&fixture.context)?)
    }),
    ("CachingResource::private_pool", |fixture| made(CachingResource::new(&fixture.context)?.private_pool()?)),
    ("CachingResource::purge and CachingResource::synchronize and CachingResource::trim", |fixture| {
        let resource = CachingResource::new(&fixture.context)?;
        let pointer = resource.allocate(&fixture.stream, 64, 8)?;
        // SAFETY: the memory was just allocated here, and nothing uses it.
        unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) }?;
        resource.purge()?;
        resource.synchronize(&fixture.stream)?;
        resource.trim(&fixture.stream, 0)?;
        made(resource)
    }),
];

/// Allocates, and gives back what was allocated at the first or the second attempt.
fn allocate_and_free(fixture: &Fixture, resource: impl Resource) -> Result<Made> {
    let pointer = resource.allocate(&fixture.stream, 64, 8)?;
    // SAFETY: the memory was just allocated here, and nothing uses it.
    let freed = unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) };
    freed.or_else(|error| {
        // SAFETY: the memory is still allocated, since the first attempt failed.
        unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) }?;
        Err(error)
    })?;
    made(())
}
