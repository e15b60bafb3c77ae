//! The operations on resources.

use curium_driver::{Result, Stream};
use curium_memory::{
    Arena, CachingOptions, CachingResource, Managed, Pinned, Plain, Reclaiming, Resource, StreamOrdered, Tracking,
};

use super::{Fixture, Made, Operation, made};

/// Memory that goes back when it is dropped.
struct Block<R: Resource> {
    resource: R,
    stream: Stream,
    pointer: curium_driver::DevicePointer<u8>,
}

const BYTES: usize = 1000;

impl<R: Resource> Drop for Block<R> {
    fn drop(&mut self) {
        // SAFETY: the block came from this resource with these figures, and nothing uses it.
        let freed = unsafe { self.resource.deallocate(&self.stream, self.pointer, BYTES, 256) };
        freed.expect("the driver frees the memory");
    }
}

/// Allocates, and frees when the result is dropped.
fn allocate<R: Resource + 'static>(fixture: &Fixture, resource: R) -> Result<Made> {
    let stream = fixture.stream.clone();
    let pointer = resource.allocate(&stream, BYTES, 256)?;
    made(Block { resource, stream, pointer })
}

/// Allocates and frees.
fn round(fixture: &Fixture, resource: &impl Resource) -> Result<Made> {
    let pointer = resource.allocate(&fixture.stream, BYTES, 256)?;
    // SAFETY: the block came from this resource with these figures, and nothing uses it.
    made(unsafe { resource.deallocate(&fixture.stream, pointer, BYTES, 256) }?)
}

fn caching(fixture: &Fixture) -> Result<CachingResource> {
    CachingResource::with_options(&fixture.context, &CachingOptions::new().with_cache(true))
}

pub(super) const OPERATIONS: &[Operation] = &[
    ("StreamOrdered::allocate", |fixture| allocate(fixture, StreamOrdered)),
    ("StreamOrdered::trim", |fixture| made(StreamOrdered.trim(&fixture.stream, 0)?)),
    ("Plain::allocate", |fixture| allocate(fixture, Plain)),
    ("Managed::allocate", |fixture| allocate(fixture, Managed)),
    ("Pinned::allocate", |fixture| allocate(fixture, Pinned)),
    ("Arena::new", |fixture| made(Arena::new(&fixture.context)?)),
    ("Arena::allocate", |fixture| allocate(fixture, Arena::new(&fixture.context)?)),
    ("CachingResource::new", |fixture| made(CachingResource::new(&fixture.context)?)),
    ("CachingResource::with_upstream", |fixture| {
        made(CachingResource::with_upstream(&fixture.context, &CachingOptions::new(), Plain)?)
    }),
    ("CachingResource::private_pool", |fixture| {
        let resource = caching(fixture)?;
        made((resource.private_pool()?, resource))
    }),
    ("CachingResource::allocate", |fixture| allocate(fixture, caching(fixture)?)),
    ("CachingResource::synchronize", |fixture| {
        let resource = caching(fixture)?;
        resource.synchronize(&fixture.stream)?;
        made(resource)
    }),
    ("Reclaiming::allocate", |fixture| allocate(fixture, Reclaiming::new(caching(fixture)?))),
    ("Tracking::allocate", |fixture| round(fixture, &Tracking::new(StreamOrdered))),
    ("Stream::is_capturing", |fixture| made(fixture.stream.is_capturing()?)),
];
