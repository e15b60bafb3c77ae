//! The operations of the hazard core, which buffers make use of.

use curium_driver::hazard::Accesses;

use super::{Operation, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Accesses::before_read", |fixture| {
        let accesses = Accesses::allocated(&fixture.stream);
        made(accesses.before_read(&fixture.other)?)
    }),
    ("Accesses::before_write", |fixture| {
        let accesses = Accesses::allocated(&fixture.stream);
        accesses.before_read(&fixture.other)?;
        accesses.after_read(&fixture.other);
        made(accesses.before_write(&fixture.stream)?)
    }),
    ("Accesses::synchronize", |fixture| {
        let accesses = Accesses::allocated(&fixture.stream);
        accesses.after_read(&fixture.other);
        made(accesses.synchronize()?)
    }),
];
