//! Extended-precision integer arithmetic: sums, differences and products with a carry flag.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Handler;
use crate::exec::ops::extended::{
    Carrying, DIFFERENCE, HIGH_PRODUCT, LOW_PRODUCT, SUM, run_extended, run_saturating,
};
use crate::isa::Extended;
use crate::syntax::{Instruction, ScalarType};

impl Lowerer<'_> {
    /// Lowers arithmetic with the carry flag.
    pub(super) fn extended(&mut self, instruction: &Instruction, extended: Extended) -> Lowered {
        let Extended {
            operation,
            flags,
            saturates,
        } = extended;
        let ([destination, sources @ ..], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let mut rows = [0; 3];
        for (row, source) in rows.iter_mut().zip(sources) {
            *row = self.source(source, scalar)?;
        }
        let run = match scalar {
            ScalarType::S32 if saturates => pick_saturating(operation),
            ScalarType::U16 => pick::<u16>(operation),
            ScalarType::S16 => pick::<i16>(operation),
            ScalarType::U32 => pick::<u32>(operation),
            ScalarType::S32 => pick::<i32>(operation),
            ScalarType::U64 => pick::<u64>(operation),
            ScalarType::S64 => pick::<i64>(operation),
            _ => return Err(Refusal::scalar(instruction, scalar)),
        };
        let d = self.destination(destination, scalar)?;
        let carry = self.carry();
        let op = self.emit(run, d, rows);
        op.e = carry;
        op.imm = flags;
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
