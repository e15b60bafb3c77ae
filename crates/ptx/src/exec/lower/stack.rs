//! `alloca`, `stacksave` and `stackrestore`: local memory that a function allocates while it runs.
//!
//! Allocated memory follows the function's variables, in each lane as much as the lane allocated. A called function's memory begins after
//! the longest allocation.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::op::Op;
use crate::exec::stack::{run_restore, run_save, run_take};
use crate::syntax::{Instruction, Opcode, Operand, ScalarType};

/// The default alignment of an allocation.
const DEFAULT_ALIGN: u64 = 8;

impl Lowerer<'_> {
    /// `alloca`, `stacksave`, `stackrestore`.
    pub(super) fn stack(&mut self, instruction: &Instruction) -> Lowered {
        match (instruction.opcode, &instruction.operands[..]) {
            (Opcode::Alloca, [to, size]) => self.take(instruction, to, size, DEFAULT_ALIGN),
            (Opcode::Alloca, [to, size, Operand::Integer(align)])
                if align.bits.is_power_of_two() =>
            {
                self.take(instruction, to, size, align.bits)
            }
            (Opcode::Stacksave, [to]) => {
                let d = self.destination(to, ScalarType::U64)?;
                self.push(Op {
                    d,
                    ..Op::new(run_save)
                });
                Ok(())
            }
            (Opcode::Stackrestore, [from]) => {
                let a = self.wide_source(instruction, from)?;
                self.push(Op {
                    a,
                    ..Op::new(run_restore)
                });
                Ok(())
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    fn take(
        &mut self,
        instruction: &Instruction,
        to: &Operand,
        size: &Operand,
        align: u64,
    ) -> Lowered {
        let a = self.wide_source(instruction, size)?;
        let d = self.destination(to, ScalarType::U64)?;
        self.push(Op {
            a,
            d,
            ..Op::new(run_take)
        })
        .imm = align;
        Ok(())
    }

    /// Returns the 64-bit row of an operand of 32 or 64 bits.
    fn wide_source(&mut self, instruction: &Instruction, operand: &Operand) -> Lowered<u32> {
        match instruction.types().next() {
            Some(ScalarType::U32 | ScalarType::U64) => self.source(operand, ScalarType::U64),
            _ => Err(Refusal::form(instruction)),
        }
    }
}
