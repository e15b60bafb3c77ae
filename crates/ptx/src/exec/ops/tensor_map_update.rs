//! Updates of tensor maps: `tensormap.replace`, `tensormap.cp_fenceproxy`.

use super::tensor_map::Field;
use crate::exec::check::report::Trap;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::{check_alignment, read_at, write_at};
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The alignment of a map, in bytes.
const ALIGNMENT: u64 = 64;

/// The number of bytes of a map.
pub(crate) const SIZE: u64 = 128;

pub(crate) fn run_replace(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        if let Err(trap) = replace(unit, op, lane) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn replace(unit: &mut Unit<'_>, op: &Op, lane: usize) -> Result<(), Trap> {
    let map = unit.frame.row::<u64>(op.a)[lane];
    let value = unit.frame.row::<u64>(op.b)[lane];
    let field = Field::unpack(op.imm);
    check_alignment(map, ALIGNMENT, lane, AccessMode::Write)?;
    let address = map.wrapping_add(8 * field.word() as u64);
    let word = if field.is_whole() {
        0
    } else {
        read_at(unit, op.space, lane, address)?
    };
    write_at(unit, op.space, lane, address, field.set(word, value))
}

/// Copies a map once, because the threads of the warp have the same operands.
pub(crate) fn run_publish(unit: &mut Unit<'_>, op: &Op) -> Control {
    let lane = unit.leader();
    match publish(unit, op, lane) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

fn publish(unit: &mut Unit<'_>, op: &Op, lane: usize) -> Result<(), Trap> {
    let to = unit.frame.row::<u64>(op.a)[lane];
    let from = unit.frame.row::<u64>(op.b)[lane];
    check_alignment(to, SIZE, lane, AccessMode::Write)?;
    check_alignment(from, SIZE, lane, AccessMode::Read)?;
    for offset in (0..SIZE).step_by(8) {
        let word: u64 = read_at(unit, Space::Shared, lane, from.wrapping_add(offset))?;
        write_at(unit, Space::Global, lane, to.wrapping_add(offset), word)?;
    }
    Ok(())
}
