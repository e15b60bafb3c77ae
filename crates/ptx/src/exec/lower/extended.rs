//! Extended-precision integer arithmetic: sums, differences and products with a carry flag.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Handler;
use crate::exec::ops::extended::{
    Carrying, DIFFERENCE, LOW_PRODUCT, READS, SUM, WRITES, run_extended, run_saturating,
};
use crate::syntax::{Instruction, Modifier, Opcode, ScalarType};

const HIGH_PRODUCT: u8 = 3;

impl Lowerer<'_> {
    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
    pub(super) fn extended(&mut self, instruction: &Instruction) -> Lowered {
        use Opcode as O;
        let ([destination, sources @ ..], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
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
            ScalarType::S32 if instruction.has(Modifier::Saturate) => pick_saturating(kind),
            ScalarType::U16 => pick::<u16>(kind),
            ScalarType::S16 => pick::<i16>(kind),
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
            fn complement(self) -> Self {
                !self
            }
        }
    )*};
}

carrying!(
    u16 as u16, i16 as u16, u32 as u32, i32 as u32, u64 as u64, i64 as u64
);

fn pick_saturating(kind: u8) -> Handler {
    match kind {
        SUM => run_saturating::<SUM>,
        DIFFERENCE => run_saturating::<DIFFERENCE>,
        _ => run_saturating::<HIGH_PRODUCT>,
    }
}

fn pick<T: Carrying>(kind: u8) -> Handler {
    match kind {
        SUM => run_extended::<T, SUM>,
        DIFFERENCE => run_extended::<T, DIFFERENCE>,
        LOW_PRODUCT => run_extended::<T, LOW_PRODUCT>,
        _ => run_extended::<T, HIGH_PRODUCT>,
    }
}
