//! Handlers of integer arithmetic and logic.

use super::{binary, ternary, unary};
use crate::exec::machine::op::Handler;
use crate::exec::values::integer::Integer;
use crate::syntax::{Instruction, Keyword, Modifier, Opcode, ScalarType};

/// Selects a handler by integer type. `T` stands for the type in the body.
macro_rules! by_type {
    ($scalar:expr, $t:ident => $body:expr) => {
        match $scalar {
            ScalarType::U16 => {
                type $t = u16;
                Some($body)
            }
            ScalarType::S16 => {
                type $t = i16;
                Some($body)
            }
            ScalarType::U32 => {
                type $t = u32;
                Some($body)
            }
            ScalarType::S32 => {
                type $t = i32;
                Some($body)
            }
            ScalarType::U64 => {
                type $t = u64;
                Some($body)
            }
            ScalarType::S64 => {
                type $t = i64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// Returns the handler of an instruction on integers of a type.
pub(crate) fn integer(instruction: &Instruction, scalar: ScalarType) -> Option<Handler> {
    use Opcode as O;
    let saturates = instruction.has(Modifier::Saturate);
    match instruction.opcode {
        O::Add if saturates => {
            (scalar == ScalarType::S32).then(|| binary(|a: i32, b: i32| a.saturating_add(b)))
        }
        O::Sub if saturates => {
            (scalar == ScalarType::S32).then(|| binary(|a: i32, b: i32| a.saturating_sub(b)))
        }
        O::Add => by_type!(scalar, T => binary(|a: T, b: T| a.wrapping_add(b)))
            .or_else(|| packed(O::Add, scalar)),
        O::Sub => by_type!(scalar, T => binary(|a: T, b: T| a.wrapping_sub(b))),
        O::Mul => product(instruction, scalar),
        O::Mad => product_sum(instruction, scalar),
        O::Div => by_type!(scalar, T => binary(|a: T, b: T| a.quotient(b))),
        O::Min | O::Max if instruction.has_keyword(Keyword::Relu) => {
            rectified(instruction.opcode, scalar)
        }
        O::Min => {
            by_type!(scalar, T => binary(|a: T, b: T| a.min(b))).or_else(|| packed(O::Min, scalar))
        }
        O::Max => {
            by_type!(scalar, T => binary(|a: T, b: T| a.max(b))).or_else(|| packed(O::Max, scalar))
        }
        O::Neg => match scalar {
            ScalarType::S16 => Some(unary(|a: i16| a.wrapping_neg())),
            ScalarType::S32 => Some(unary(|a: i32| a.wrapping_neg())),
            ScalarType::S64 => Some(unary(|a: i64| a.wrapping_neg())),
            _ => None,
        },
        O::Abs => match scalar {
            ScalarType::S16 => Some(unary(|a: i16| a.wrapping_abs())),
            ScalarType::S32 => Some(unary(|a: i32| a.wrapping_abs())),
            ScalarType::S64 => Some(unary(|a: i64| a.wrapping_abs())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the handler of `min.relu` and `max.relu`: negative results become zero.
fn rectified(opcode: Opcode, scalar: ScalarType) -> Option<Handler> {
    #[inline(always)]
    fn halves(a: u32, b: u32, f: impl Fn(i16, i16) -> i16) -> u32 {
        let low = f(a as i16, b as i16).max(0);
        let high = f((a >> 16) as i16, (b >> 16) as i16).max(0);
        u32::from(high.cast_unsigned()) << 16 | u32::from(low.cast_unsigned())
    }
    Some(match (opcode, scalar) {
        (Opcode::Min, ScalarType::S32) => binary(|a: i32, b: i32| a.min(b).max(0)),
        (_, ScalarType::S32) => binary(|a: i32, b: i32| a.max(b).max(0)),
        (Opcode::Min, ScalarType::S16x2) => binary(|a: u32, b: u32| halves(a, b, Ord::min)),
        (_, ScalarType::S16x2) => binary(|a: u32, b: u32| halves(a, b, Ord::max)),
        _ => return None,
    })
}

/// Returns the handler of an operation on two 16-bit halves.
fn packed(opcode: Opcode, scalar: ScalarType) -> Option<Handler> {
    #[inline(always)]
    fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
        let low = f(a as u16, b as u16);
        let high = f((a >> 16) as u16, (b >> 16) as u16);
        u32::from(high) << 16 | u32::from(low)
    }
    #[inline(always)]
    fn signed(f: impl Fn(i16, i16) -> i16) -> impl Fn(u16, u16) -> u16 {
        move |a, b| f(a.cast_signed(), b.cast_signed()).cast_unsigned()
    }
    Some(match (opcode, scalar) {
        (Opcode::Add, ScalarType::U16x2 | ScalarType::S16x2) => {
            binary(|a: u32, b: u32| halves(a, b, u16::wrapping_add))
        }
        (Opcode::Min, ScalarType::U16x2) => binary(|a: u32, b: u32| halves(a, b, Ord::min)),
        (Opcode::Max, ScalarType::U16x2) => binary(|a: u32, b: u32| halves(a, b, Ord::max)),
        (Opcode::Min, ScalarType::S16x2) => binary(|a: u32, b: u32| halves(a, b, signed(Ord::min))),
        (Opcode::Max, ScalarType::S16x2) => binary(|a: u32, b: u32| halves(a, b, signed(Ord::max))),
        _ => return None,
    })
}

fn product(instruction: &Instruction, scalar: ScalarType) -> Option<Handler> {
    if instruction.has(Modifier::Wide) {
        return Some(match scalar {
            ScalarType::U16 => binary(|a: u16, b: u16| u32::from(a) * u32::from(b)),
            ScalarType::S16 => binary(|a: i16, b: i16| i32::from(a) * i32::from(b)),
            ScalarType::U32 => binary(|a: u32, b: u32| u64::from(a) * u64::from(b)),
            ScalarType::S32 => binary(|a: i32, b: i32| i64::from(a) * i64::from(b)),
            _ => return None,
        });
    }
    if instruction.has(Modifier::Hi) {
        return by_type!(scalar, T => binary(|a: T, b: T| a.high_product(b)));
    }
    by_type!(scalar, T => binary(|a: T, b: T| a.wrapping_mul(b)))
}

fn product_sum(instruction: &Instruction, scalar: ScalarType) -> Option<Handler> {
    if instruction.has(Modifier::Wide) {
        return Some(match scalar {
            ScalarType::U16 => {
                ternary(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))
            }
            ScalarType::S16 => {
                ternary(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c))
            }
            ScalarType::U32 => {
                ternary(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
            }
            ScalarType::S32 => {
                ternary(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c))
            }
            _ => return None,
        });
    }
    if instruction.has(Modifier::Hi) && instruction.has(Modifier::Saturate) {
        return (scalar == ScalarType::S32)
            .then(|| ternary(|a: i32, b: i32, c: i32| a.high_product(b).saturating_add(c)));
    }
    if instruction.has(Modifier::Hi) {
        return by_type!(scalar, T => ternary(|a: T, b: T, c: T| a.high_multiply_add(b, c)));
    }
    by_type!(scalar, T => ternary(|a: T, b: T, c: T| a.multiply_add(b, c)))
}
