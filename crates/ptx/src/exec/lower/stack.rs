//! `alloca`, `stacksave` and `stackrestore`: local memory that a function allocates while it runs.
//!
//! The memory of `alloca` follows the function's variables. Its size may differ from lane to lane.
//! A called function's memory begins after that of the lane with the most.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Op;
use crate::exec::ops::stack::{run_allocate, run_restore, run_save};
use crate::syntax::{Instruction, Opcode, Operand, ScalarType};

/// The default alignment of an allocation.
const DEFAULT_ALIGN: u64 = 8;

impl Lowerer<'_> {
    /// `alloca`, `stacksave`, `stackrestore`.
    pub(super) fn stack(&mut self, instruction: &Instruction) -> Lowered {
        match (instruction.opcode, &instruction.operands[..]) {
            (Opcode::Alloca, [to, size]) => {
                self.allocate_on_stack(instruction, to, size, DEFAULT_ALIGN)
            }
            (Opcode::Alloca, [to, size, Operand::Integer(align)])
                if align.bits.is_power_of_two() =>
            {
                self.allocate_on_stack(instruction, to, size, align.bits)
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

    /// `alloca`: writes the address of `size` new bytes to `to`.
    fn allocate_on_stack(
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
            ..Op::new(run_allocate)
        })
        .imm = align;
        Ok(())
    }

    /// Returns the row of a 64-bit operand, or of a 32-bit one extended to 64 bits.
    fn wide_source(&mut self, instruction: &Instruction, operand: &Operand) -> Lowered<u32> {
        match instruction.types().next() {
            Some(ScalarType::U32 | ScalarType::U64) => self.source(operand, ScalarType::U64),
            _ => Err(Refusal::form(instruction)),
        }
    }
}
