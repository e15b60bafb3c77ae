//! Arithmetic with carry.
//!
//! As on hardware, a difference is the sum with the complement, and its carry is set unless it
//! borrows. So a sum can read the carry of a difference, and the reverse.

use crate::exec::frame::InFile;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::integer::Integer;
use crate::exec::values::lane::LANES;

/// Flags in `Op::imm`.
pub(crate) const READS: u64 = 1;

pub(crate) const WRITES: u64 = 2;

/// The operations.
pub(crate) const SUM: u8 = 0;

pub(crate) const DIFFERENCE: u8 = 1;

pub(crate) const LOW_PRODUCT: u8 = 2;

pub(crate) const HIGH_PRODUCT: u8 = 3;

/// An integer type whose sums and differences carry.
pub(crate) trait Carrying: Integer<Raw: InFile> {
    fn sum(self, other: Self, carry: bool) -> (Self, bool);
    fn complement(self) -> Self;
}

pub(crate) fn run_extended<T: Carrying, const KIND: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane::<T, KIND>(unit, op, |[a, b, c], carry| match KIND {
        SUM => a.sum(b, carry),
        DIFFERENCE => a.sum(b.complement(), carry),
        LOW_PRODUCT => a.low_product(b).sum(c, carry),
        _ => a.high_product(b).sum(c, carry),
    })
}

/// Runs arithmetic of `.s32` that saturates. It has no low product.
pub(crate) fn run_saturating<const KIND: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane::<i32, KIND>(unit, op, |numbers, carry| {
        let [a, b, c] = numbers.map(i64::from);
        let carry = i64::from(carry);
        let exact = match KIND {
            SUM => a + b + carry,
            DIFFERENCE => a - b - 1 + carry,
            _ => ((a * b) >> 32) + c + carry,
        };
        (exact.clamp(i32::MIN.into(), i32::MAX.into()) as i32, false)
    })
}

/// Computes a result and a carry for each lane from three numbers and the carry before.
#[inline(always)]
fn each_lane<T: Carrying, const KIND: u8>(
    unit: &mut Unit<'_>,
    op: &Op,
    compute: impl Fn([T; 3], bool) -> (T, bool),
) -> Control {
    let before = if op.imm & READS != 0 {
        unit.frame.predicate(op.e)
    } else if KIND == DIFFERENCE {
        u32::MAX
    } else {
        0
    };
    let rows = [op.a, op.b, op.c].map(|row| *unit.frame.row::<T::Raw>(row));
    let mut result = [T::Raw::default(); LANES];
    let mut after = 0;
    for lane in 0..LANES {
        let (value, carry) = compute(
            rows.map(|row| T::from_raw(row[lane])),
            before & (1 << lane) != 0,
        );
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
