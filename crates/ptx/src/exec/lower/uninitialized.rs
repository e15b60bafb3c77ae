//! Checks of accesses for uninitialized reads.

use super::address::Target;
use super::function::Lowerer;
use crate::exec::machine::op::Role;
use crate::exec::ops::uninitialized::{run_check, run_find, run_record};
use crate::exec::space::Space;

impl Lowerer<'_> {
    /// Appends a check that all bytes of a read are written.
    pub(super) fn check_written(&mut self, target: Target, bytes: u64) {
        if self.context.checking.uninitialized && target.space != Space::Param {
            self.access(run_check, target, 0, bytes);
        }
    }

    /// Appends the search for uninitialized bytes in the part of a load that begins at `start`.
    pub(super) fn find_uninitialized(
        &mut self,
        target: Target,
        start: u64,
        bytes: u64,
        is_first: bool,
    ) {
        if self.context.checking.uninitialized && target.space != Space::Param {
            let op = self.access(run_find, target, 0, bytes);
            (op.b, op.c) = (start as u32, u32::from(is_first));
            if target.space == Space::Shared {
                op.role = Role::FindUninitialized;
            }
            self.moved_at = Some(self.out.code.len());
        }
    }

    /// Appends a record of the instruction's write.
    pub(super) fn note_write(&mut self, target: Target, bytes: u64) {
        if self.context.checking.uninitialized {
            self.access(run_record, target, 0, bytes);
            self.moved_at = Some(self.out.code.len());
        }
    }
}
