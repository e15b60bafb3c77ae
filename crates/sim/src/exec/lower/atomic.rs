//! `atom` and `red`: every operation and type that compilers use.

use super::address::scalar;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::atomic;
use crate::exec::float::{canonical, flush, inherit};
use crate::exec::op::{Handler, Space};
use crate::ptx::{Instruction, Modifier, Operand, Operation, ScalarClass, ScalarType};

impl Lowerer<'_> {
    /// `atom` and `red`.
    pub(super) fn atomic(&mut self, instruction: &Instruction, returns: bool) -> Lowered {
        let skip = usize::from(returns);
        let Some(Operand::Address(address)) = instruction.operands.get(skip) else {
            return Err(Refusal::form(instruction));
        };
        let scalar = scalar(instruction)?;
        let operation = instruction.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Operation(operation) => Some(*operation),
            _ => None,
        });
        let target = self.target(instruction, *address)?;
        let flushes = target.space == Space::Global;
        let run = operation
            .and_then(|operation| atomic_handler(operation, scalar, flushes))
            .ok_or_else(|| Refusal::form(instruction))?;
        let operand = |index: usize| instruction.operands.get(skip + index);
        let b = operand(1).ok_or_else(|| Refusal::form(instruction))?;
        let b = self.source(b, scalar)?;
        let c = match (operation, operand(2)) {
            (Some(Operation::CompareAndSwap), Some(c)) => self.source(c, scalar)?,
            _ => b,
        };
        let sink = Operand::Sink;
        let destination = if returns { &instruction.operands[0] } else { &sink };
        let d = self.destination(destination, scalar)?;
        let op = self.access(run, target, 0, scalar.bytes());
        (op.d, op.b, op.c) = (d, b, c);
        Ok(())
    }
}

fn atomic_handler(operation: Operation, scalar: ScalarType, flushes: bool) -> Option<Handler> {
    macro_rules! bits {
        ($word:ty, $raw:ty) => {
            match operation {
                Operation::And => atomic::<$word, $raw, _>(|old, b, _| old & b),
                Operation::Or => atomic::<$word, $raw, _>(|old, b, _| old | b),
                Operation::Xor => atomic::<$word, $raw, _>(|old, b, _| old ^ b),
                Operation::Exchange => atomic::<$word, $raw, _>(|_, b, _| b),
                Operation::CompareAndSwap => atomic::<$word, $raw, _>(|old, b, c| if old == b { c } else { old }),
                Operation::Add => atomic::<$word, $raw, _>(|old, b, _| old.wrapping_add(b)),
                _ => return integer_atomic(operation, scalar),
            }
        };
    }
    Some(match (scalar, operation) {
        (ScalarType::F32, Operation::Add) => float_add(flushes),
        (ScalarType::F64, Operation::Add) => atomic::<u64, u64, _>(|old, b, _| {
            let (x, y) = (f64::from_bits(old), f64::from_bits(b));
            inherit(x + y, [x, y]).to_bits()
        }),
        _ if scalar.class() == ScalarClass::Float => return None,
        _ => match scalar.bits() {
            16 => bits!(u16, u32),
            32 => bits!(u32, u32),
            64 => bits!(u64, u64),
            _ => return None,
        },
    })
}

/// The operations that depend on the sign, and those that wrap at a bound.
fn integer_atomic(operation: Operation, scalar: ScalarType) -> Option<Handler> {
    Some(match (operation, scalar) {
        (Operation::Min, ScalarType::U32) => atomic::<u32, u32, _>(|old, b, _| old.min(b)),
        (Operation::Max, ScalarType::U32) => atomic::<u32, u32, _>(|old, b, _| old.max(b)),
        (Operation::Min, ScalarType::U64) => atomic::<u64, u64, _>(|old, b, _| old.min(b)),
        (Operation::Max, ScalarType::U64) => atomic::<u64, u64, _>(|old, b, _| old.max(b)),
        (Operation::Min, ScalarType::S32) => {
            atomic::<u32, u32, _>(|old, b, _| old.cast_signed().min(b.cast_signed()).cast_unsigned())
        }
        (Operation::Max, ScalarType::S32) => {
            atomic::<u32, u32, _>(|old, b, _| old.cast_signed().max(b.cast_signed()).cast_unsigned())
        }
        (Operation::Min, ScalarType::S64) => {
            atomic::<u64, u64, _>(|old, b, _| old.cast_signed().min(b.cast_signed()).cast_unsigned())
        }
        (Operation::Max, ScalarType::S64) => {
            atomic::<u64, u64, _>(|old, b, _| old.cast_signed().max(b.cast_signed()).cast_unsigned())
        }
        (Operation::Increment, ScalarType::U32) => {
            atomic::<u32, u32, _>(|old, b, _| if old >= b { 0 } else { old + 1 })
        }
        (Operation::Decrement, ScalarType::U32) => {
            atomic::<u32, u32, _>(|old, b, _| if old == 0 || old > b { b } else { old - 1 })
        }
        _ => return None,
    })
}

/// Device memory flushes subnormals when it adds; shared memory does not.
fn float_add(flushes: bool) -> Handler {
    if flushes {
        atomic::<u32, u32, _>(|old, b, _| {
            let sum = flush(f32::from_bits(old)) + flush(f32::from_bits(b));
            flush(canonical(sum)).to_bits()
        })
    } else {
        atomic::<u32, u32, _>(|old, b, _| canonical(f32::from_bits(old) + f32::from_bits(b)).to_bits())
    }
}
