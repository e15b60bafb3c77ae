//! `st.bulk`: zeroes in shared memory.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::{check_alignment, trap, write_at};
use crate::exec::lane::Lanes;
use crate::exec::op::{Control, Op, Space};
use crate::exec::report::{ReportKind, Trap};
use crate::exec::unit::Unit;
use crate::exec::window::resolve;
use crate::ptx::{Instruction, Keyword, Modifier, Operand, ScalarType, Semantics, Space as State};

/// Bytes to which addresses and sizes are aligned.
const STEP: u64 = 8;

impl Lowerer<'_> {
    /// `st.bulk`.
    pub(super) fn store_bulk(&mut self, instruction: &Instruction) -> Lowered {
        let allowed =
            [Modifier::Keyword(Keyword::Bulk), Modifier::Semantics(Semantics::Weak), Modifier::Space(State::SharedCta)];
        let [Operand::Address(address), size, Operand::Integer(value)] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let is_whole = !matches!(size, Operand::Integer(size) if size.bits % STEP != 0);
        if value.bits != 0 || !is_whole || instruction.modifiers.iter().any(|it| !allowed.contains(it)) {
            return Err(Refusal::form(instruction));
        }
        let names_space = instruction.has(Modifier::Space(State::SharedCta));
        let a = self.address_row(*address)?;
        let b = self.source(size, ScalarType::U64)?;
        let space = if names_space { Space::Shared } else { Space::Generic };
        self.push(Op { a, b, space, ..Op::new(run_store_bulk) });
        Ok(())
    }
}

fn run_store_bulk(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let (address, size) = (unit.frame.row::<u64>(op.a)[lane], unit.frame.row::<u64>(op.b)[lane]);
        if let Err(trap) = fill(unit, op.space, lane, address, size) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn fill(unit: &mut Unit<'_>, space: Space, lane: usize, address: u64, size: u64) -> Result<(), Trap> {
    check_alignment(address | size, STEP, lane, true)?;
    if space == Space::Generic && resolve(address).0 != Space::Shared {
        return Err(trap(ReportKind::IllegalAddress, lane, address, STEP, true).in_space(space));
    }
    for offset in (0..size).step_by(STEP as usize) {
        write_at(unit, space, lane, address.wrapping_add(offset), 0_u64)?;
    }
    Ok(())
}
