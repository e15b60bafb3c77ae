//! Logic of predicates.

use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;

/// `and`, `or`, `xor` of predicates.
pub(crate) fn run_predicate<const OPERATION: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let a = unit.frame.predicate(op.a) ^ (op.imm >> 32) as u32;
    let b = unit.frame.predicate(op.b) ^ op.imm as u32;
    let value = match OPERATION {
        0 => a & b,
        1 => a | b,
        _ => a ^ b,
    };
    unit.frame.set_predicate(op.d, value, unit.active);
    Control::Next
}
