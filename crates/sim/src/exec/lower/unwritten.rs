//! What is looked for around accesses: reads of memory that nobody wrote.

use super::address::{Target, state};
use super::function::Lowerer;
use crate::exec::op::Space;
use crate::exec::unwritten::{run_check, run_note};
use crate::ptx::{Instruction, Space as State};

impl Lowerer<'_> {
    /// Appends a check that what the instruction reads was written.
    ///
    /// Parameters and results of functions are left out: a caller may pass what it never computed, as long as nobody uses it.
    pub(super) fn check_written(&mut self, instruction: &Instruction, target: Target, bytes: u64) {
        let is_parameter = matches!(state(instruction), Some(State::Param | State::ParamEntry | State::ParamFunction));
        if self.context.checking.unwritten && !is_parameter && target.space != Space::Param {
            self.access(run_check, target, 0, bytes);
        }
    }

    /// Appends a note that the instruction writes.
    pub(super) fn note_write(&mut self, target: Target, bytes: u64) {
        if self.context.checking.unwritten {
            self.access(run_note, target, 0, bytes);
        }
    }
}
