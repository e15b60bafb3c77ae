//! The operations of hazard tracking for owners of memory.

use curium_driver::hazard::Accesses;
use curium_tests::guard;

use super::{Operation, made};

pub(super) const OPERATIONS: &[Operation] = &[
    ("Accesses::before_read and Accesses::after_read", |fixture| {
        let (accesses, mut guard) = (Accesses::allocated(&fixture.stream), guard(&fixture.other));
        accesses.before_read(&mut guard)?;
        accesses.after_read(&mut guard);
        made(())
    }),
    ("Accesses::before_write and Accesses::after_partial_write", |fixture| {
        let accesses = Accesses::allocated(&fixture.stream);
        accesses.before_read(&mut guard(&fixture.other))?;
        accesses.after_read(&mut guard(&fixture.other));
        let mut guard = guard(&fixture.stream);
        accesses.before_write(&mut guard)?;
        accesses.after_partial_write(&mut guard);
        made(())
    }),
    ("Accesses::after_write and Accesses::before_free", |fixture| {
        let (mut accesses, mut guard) = (Accesses::allocated(&fixture.stream), guard(&fixture.other));
        accesses.before_write(&mut guard)?;
        accesses.after_write(&mut guard);
        made(accesses.before_free(&fixture.stream)?)
    }),
    ("Accesses::synchronize and Accesses::synchronize_writes and Accesses::users", |fixture| {
        let accesses = Accesses::allocated(&fixture.stream);
        accesses.after_read(&mut guard(&fixture.other));
        accesses.synchronize_writes()?;
        accesses.synchronize()?;
        made(accesses.users()?.len())
    }),
];
