//! Arithmetic with carry.

use super::frame::InFile;
use super::integer::Integer;
use super::lane::LANES;
use super::op::{Control, Op};
use super::unit::Unit;

/// Flags in `Op::imm`.
pub(crate) const READS: u64 = 1;

pub(crate) const WRITES: u64 = 2;

/// The operations.
pub(crate) const SUM: u8 = 0;

pub(crate) const DIFFERENCE: u8 = 1;

pub(crate) const LOW_PRODUCT: u8 = 2;

/// An integer type whose sums and differences carry.
pub(crate) trait Carrying: Integer<Raw: InFile> {
    fn sum(self, other: Self, carry: bool) -> (Self, bool);
    fn difference(self, other: Self, borrow: bool) -> (Self, bool);
}

pub(crate) fn run_extended<T: Carrying, const KIND: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let before = if op.imm & READS == 0 { 0 } else { unit.frame.predicate(op.e) };
    let rows = [op.a, op.b, op.c].map(|row| *unit.frame.row::<T::Raw>(row));
    let mut result = [T::Raw::default(); LANES];
    let mut after = 0;
    for lane in 0..LANES {
        let [a, b, c] = rows.map(|row| T::from_raw(row[lane]));
        let carry = before & (1 << lane) != 0;
        let (value, carry) = match KIND {
            SUM => a.sum(b, carry),
            DIFFERENCE => a.difference(b, carry),
            LOW_PRODUCT => a.low_product(b).sum(c, carry),
            _ => a.high_product(b).sum(c, carry),
        };
        result[lane] = value.into_raw();
        after |= u32::from(carry) << lane;
    }
    let active = unit.active;
    unit.frame.row_mut::<T::Raw>(op.d).merge(&result, active);
    if op.imm & WRITES != 0 {
        unit.frame.set_predicate(op.e, after, active);
    }
    Control::Next
}
