//! The operations of the sources of memory.

use curium_driver::Result;
use curium_memory::{Plain, Resource, StreamOrdered};

use super::{Fixture, Made, Operation, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Plain::allocate and Plain::deallocate", |fixture| allocate_and_free(fixture, Plain)),
    ("StreamOrdered::allocate and StreamOrdered::deallocate", |fixture| allocate_and_free(fixture, StreamOrdered)),
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
