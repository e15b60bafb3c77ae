//! Integers wider than a register: sums, differences and products that pass a carry on.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::frame::InFile;
use crate::exec::integer::Integer;
use crate::exec::lane::LANES;
use crate::exec::op::{Control, Handler, Op};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Modifier, Opcode, ScalarType};

/// Bits of `Op::imm`.
const READS: u64 = 1;
const WRITES: u64 = 2;

/// What is added to what.
const SUM: u8 = 0;
const DIFFERENCE: u8 = 1;
const LOW_PRODUCT: u8 = 2;
const HIGH_PRODUCT: u8 = 3;

impl Lowerer<'_> {
    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
    pub(super) fn extended(&mut self, instruction: &Instruction) -> Lowered {
        use Opcode as O;
        let ([destination, sources @ ..], Some(scalar)) = (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let kind = match instruction.opcode {
            O::Add | O::Addc => SUM,
            O::Sub | O::Subc => DIFFERENCE,
            _ if instruction.has(Modifier::Hi) => HIGH_PRODUCT,
            _ => LOW_PRODUCT,
        };
        let wanted = if kind >= LOW_PRODUCT { 3 } else { 2 };
        if sources.len() != wanted {
            return Err(Refusal::form(instruction));
        }
        let mut rows = [0; 3];
        for (row, source) in rows.iter_mut().zip(sources) {
            *row = self.source(source, scalar)?;
        }
        let run = match scalar {
            ScalarType::U32 => pick::<u32>(kind),
            ScalarType::S32 => pick::<i32>(kind),
            ScalarType::U64 => pick::<u64>(kind),
            ScalarType::S64 => pick::<i64>(kind),
            _ => return Err(Refusal::scalar(instruction, scalar)),
        };
        let d = self.destination(destination, scalar)?;
        let carry = self.carry();
        let reads = matches!(instruction.opcode, O::Addc | O::Subc | O::Madc);
        let writes = instruction.has(Modifier::Carry);
        let op = self.emit(run, d, rows);
        op.e = carry;
        op.imm = if reads { READS } else { 0 } | if writes { WRITES } else { 0 };
        Ok(())
    }
}

/// An integer whose sums and differences carry.
trait Carrying: Integer<Raw: InFile> {
    fn sum(self, other: Self, carry: bool) -> (Self, bool);
    fn difference(self, other: Self, borrow: bool) -> (Self, bool);
}

macro_rules! carrying {
    ($($ty:ty as $unsigned:ty),*) => {$(
        impl Carrying for $ty {
            #[inline(always)]
            fn sum(self, other: Self, carry: bool) -> (Self, bool) {
                let (sum, first) = (self as $unsigned).overflowing_add(other as $unsigned);
                let (sum, second) = sum.overflowing_add(<$unsigned>::from(carry));
                (sum as Self, first | second)
            }
            #[inline(always)]
            fn difference(self, other: Self, borrow: bool) -> (Self, bool) {
                let (difference, first) = (self as $unsigned).overflowing_sub(other as $unsigned);
                let (difference, second) = difference.overflowing_sub(<$unsigned>::from(borrow));
                (difference as Self, first | second)
            }
        }
    )*};
}

carrying!(u32 as u32, i32 as u32, u64 as u64, i64 as u64);

fn pick<T: Carrying>(kind: u8) -> Handler {
    match kind {
        SUM => run_extended::<T, SUM>,
        DIFFERENCE => run_extended::<T, DIFFERENCE>,
        LOW_PRODUCT => run_extended::<T, LOW_PRODUCT>,
        _ => run_extended::<T, HIGH_PRODUCT>,
    }
}

fn run_extended<T: Carrying, const KIND: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
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
