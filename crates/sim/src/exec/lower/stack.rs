//! `alloca`, `stacksave` and `stackrestore`: local memory that a function takes while it runs.
//!
//! What the lanes took lies behind the variables of the function, in each lane as far as that lane's calls need; a function that is called
//! then begins behind the longest.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::lane::{Lanes, Row};
use crate::exec::op::{Control, Op};
use crate::exec::report::{ReportKind, Trap};
use crate::exec::transfer::LOCAL_LIMIT;
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Opcode, Operand, ScalarType};

/// The alignment of what is taken if nothing is said of it.
const DEFAULT_ALIGN: u64 = 8;

impl Lowerer<'_> {
    /// `alloca`, `stacksave`, `stackrestore`.
    pub(super) fn stack(&mut self, instruction: &Instruction) -> Lowered {
        match (instruction.opcode, &instruction.operands[..]) {
            (Opcode::Alloca, [to, size]) => self.take(instruction, to, size, DEFAULT_ALIGN),
            (Opcode::Alloca, [to, size, Operand::Integer(align)]) if align.bits.is_power_of_two() => {
                self.take(instruction, to, size, align.bits)
            }
            (Opcode::Stacksave, [to]) => {
                let d = self.destination(to, ScalarType::U64)?;
                self.push(Op { d, ..Op::new(run_save) });
                Ok(())
            }
            (Opcode::Stackrestore, [from]) => {
                let a = self.wide_source(instruction, from)?;
                self.push(Op { a, ..Op::new(run_restore) });
                Ok(())
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    fn take(&mut self, instruction: &Instruction, to: &Operand, size: &Operand, align: u64) -> Lowered {
        let a = self.wide_source(instruction, size)?;
        let d = self.destination(to, ScalarType::U64)?;
        self.push(Op { a, d, ..Op::new(run_take) }).imm = align;
        Ok(())
    }

    /// The 64-bit row of an operand that may have 32 bits.
    fn wide_source(&mut self, instruction: &Instruction, operand: &Operand) -> Lowered<u32> {
        match instruction.types().next() {
            Some(ScalarType::U32 | ScalarType::U64) => self.source(operand, ScalarType::U64),
            _ => Err(Refusal::form(instruction)),
        }
    }
}

/// Where the memory that a lane has taken ends.
fn end(unit: &Unit<'_>, lane: usize) -> u64 {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    unit.warp.taken[lane].max(unit.frame.local + function.local_size)
}

fn run_take(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let start = end(unit, lane).next_multiple_of(op.imm);
        let size = unit.frame.row::<u64>(op.a)[lane];
        let after = start.saturating_add(size).checked_next_multiple_of(8).filter(|after| *after <= LOCAL_LIMIT);
        let Some(after) = after else {
            return unit.fault(Trap::new(ReportKind::HardwareStackError, lane));
        };
        let words = (after / 8) as usize;
        if unit.warp.local.len() < words {
            unit.warp.local.resize(words, Row::splat(0));
        }
        if unit.launch.program.checking.unwritten {
            let whole = start / 8 * 8;
            unit.warp.written.enter(whole, after - whole, 1 << lane);
        }
        unit.warp.taken[lane] = after;
        unit.frame.row_mut::<u64>(op.d).0[lane] = start;
    }
    Control::Next
}

fn run_save(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let end = end(unit, lane);
        unit.frame.row_mut::<u64>(op.d).0[lane] = end;
    }
    Control::Next
}

fn run_restore(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        unit.warp.taken[lane] = unit.frame.row::<u64>(op.a)[lane].min(LOCAL_LIMIT);
    }
    Control::Next
}
