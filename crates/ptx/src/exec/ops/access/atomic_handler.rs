//! Handlers of `atom` and `red`.

use crate::exec::machine::op::Handler;
use crate::exec::ops::access::atomic;
use crate::exec::ops::atomic::{change, flushed_sum, run_generic_sum, sum};
use crate::exec::space::Space;
use crate::exec::values::float::{self, Mode, Real, inherit};
use crate::exec::values::narrow::{Bfloat, Half};
use crate::syntax::{Operation, ScalarClass, ScalarType};

/// Returns the handler of an operation on a value of a type.
pub(crate) fn atomic_handler(
    operation: Operation,
    scalar: ScalarType,
    space: Space,
) -> Option<Handler> {
    macro_rules! bits {
        ($word:ty, $raw:ty) => {
            match operation {
                Operation::And => atomic::<$word, $raw, _>(|old, b, _| old & b),
                Operation::Or => atomic::<$word, $raw, _>(|old, b, _| old | b),
                Operation::Xor => atomic::<$word, $raw, _>(|old, b, _| old ^ b),
                Operation::Exchange => atomic::<$word, $raw, _>(|_, b, _| b),
                Operation::CompareAndSwap => {
                    atomic::<$word, $raw, _>(|old, b, c| if old == b { c } else { old })
                }
                Operation::Add => atomic::<$word, $raw, _>(|old, b, _| old.wrapping_add(b)),
                _ => return integer_atomic(operation, scalar),
            }
        };
    }
    Some(match (scalar, operation) {
        (ScalarType::F32, Operation::Add) => float_add(space),
        (ScalarType::F64, Operation::Add) => atomic::<u64, u64, _>(|old, b, _| {
            let x = f64::from_bits(old);
            let y = f64::from_bits(b);
            inherit(x + y, [x, y]).to_bits()
        }),
        (ScalarType::F16, _) => narrow_atomic::<Half>(operation)?,
        (ScalarType::Bf16, _) => narrow_atomic::<Bfloat>(operation)?,
        (ScalarType::F16x2, _) => pair_atomic::<Half>(operation)?,
        (ScalarType::Bf16x2, _) => pair_atomic::<Bfloat>(operation)?,
        _ if scalar.class() == ScalarClass::Float => return None,
        _ => match scalar.bits() {
            16 => bits!(u16, u32),
            32 => bits!(u32, u32),
            64 => bits!(u64, u64),
            _ => return None,
        },
    })
}

/// Returns the handler of an operation that depends on the sign, or wraps at a bound.
fn integer_atomic(operation: Operation, scalar: ScalarType) -> Option<Handler> {
    Some(match (operation, scalar) {
        (Operation::Min, ScalarType::U32) => atomic::<u32, u32, _>(|old, b, _| old.min(b)),
        (Operation::Max, ScalarType::U32) => atomic::<u32, u32, _>(|old, b, _| old.max(b)),
        (Operation::Min, ScalarType::U64) => atomic::<u64, u64, _>(|old, b, _| old.min(b)),
        (Operation::Max, ScalarType::U64) => atomic::<u64, u64, _>(|old, b, _| old.max(b)),
        (Operation::Min, ScalarType::S32) => atomic::<u32, u32, _>(|old, b, _| {
            old.cast_signed().min(b.cast_signed()).cast_unsigned()
        }),
        (Operation::Max, ScalarType::S32) => atomic::<u32, u32, _>(|old, b, _| {
            old.cast_signed().max(b.cast_signed()).cast_unsigned()
        }),
        (Operation::Min, ScalarType::S64) => atomic::<u64, u64, _>(|old, b, _| {
            old.cast_signed().min(b.cast_signed()).cast_unsigned()
        }),
        (Operation::Max, ScalarType::S64) => atomic::<u64, u64, _>(|old, b, _| {
            old.cast_signed().max(b.cast_signed()).cast_unsigned()
        }),
        (Operation::Increment, ScalarType::U32) => {
            atomic::<u32, u32, _>(|old, b, _| if old >= b { 0 } else { old + 1 })
        }
        (Operation::Decrement, ScalarType::U32) => {
            atomic::<u32, u32, _>(|old, b, _| if old == 0 || old > b { b } else { old - 1 })
        }
        _ => return None,
    })
}

/// Returns the handler of an addition of f32. It flushes subnormals in global memory, but not in
/// shared memory.
fn float_add(space: Space) -> Handler {
    match space {
        Space::Global => atomic::<u32, u32, _>(|old, b, _| flushed_sum(old, b)),
        Space::Generic => run_generic_sum,
        _ => atomic::<u32, u32, _>(|old, b, _| sum(old, b)),
    }
}

/// Returns the handler of `add`, `min` or `max` of a 16-bit float, which does not flush subnormals.
fn narrow_atomic<T: Real<Raw = u32>>(operation: Operation) -> Option<Handler> {
    Some(match operation {
        Operation::Add => atomic::<u16, u32, _>(|old, b, _| {
            change::<T>(old, b, |a, b| float::add(a, b, Mode::NEAREST))
        }),
        Operation::Min => atomic::<u16, u32, _>(|old, b, _| change::<T>(old, b, float::min)),
        Operation::Max => atomic::<u16, u32, _>(|old, b, _| change::<T>(old, b, float::max)),
        _ => return None,
    })
}

/// Returns the handler of `add`, `min` or `max` of two 16-bit floats.
fn pair_atomic<T: Real<Raw = u32>>(operation: Operation) -> Option<Handler> {
    Some(match operation {
        Operation::Add => atomic::<u32, u32, _>(|old, b, _| {
            change_pair::<T>(old, b, |a, b| float::add(a, b, Mode::NEAREST))
        }),
        Operation::Min => atomic::<u32, u32, _>(|old, b, _| change_pair::<T>(old, b, float::min)),
        Operation::Max => atomic::<u32, u32, _>(|old, b, _| change_pair::<T>(old, b, float::max)),
        _ => return None,
    })
}

fn change_pair<T: Real>(old: u32, b: u32, f: impl Fn(T, T) -> T + Copy) -> u32 {
    let high = change((old >> 16) as u16, (b >> 16) as u16, f);
    u32::from(high) << 16 | u32::from(change(old as u16, b as u16, f))
}
