//! Handlers of floating-point arithmetic on two numbers in one register.

use super::float::{Choice, mode, plain};
use super::narrow_rows::{self, Narrow};
use super::{binary, quaternary, ternary, unary};
use crate::exec::machine::frame::InFile;
use crate::exec::values::float::{self, Mode, Real, flush_any};
use crate::exec::values::lane::Lane;
use crate::exec::values::narrow::{self, Bfloat, Half, Pair, approximate_narrow};
use crate::syntax::{Instruction, Keyword, Modifier, Opcode, ScalarType};

/// Returns the handler of an instruction on pairs.
pub(super) fn packed(instruction: &Instruction, scalar: ScalarType) -> Option<Choice> {
    match scalar {
        ScalarType::F16x2 => nearest::<Half>(instruction)
            .or_else(|| arithmetic::<Half>(instruction))
            .or_else(|| function::<Half>(instruction)),
        ScalarType::Bf16x2 => nearest::<Bfloat>(instruction)
            .or_else(|| arithmetic::<Bfloat>(instruction))
            .or_else(|| function::<Bfloat>(instruction)),
        ScalarType::F32x2 => arithmetic::<f32>(instruction),
        _ => None,
    }
}

/// Returns the handler of arithmetic rounded to nearest, without flushing and saturation.
fn nearest<T: Narrow>(instruction: &Instruction) -> Option<Choice> {
    use Opcode as O;
    if mode(instruction)? != Mode::NEAREST {
        return None;
    }
    plain(match instruction.opcode {
        O::Add => narrow_rows::packed_binary::<T, _>(|a, b| a + b),
        O::Sub => narrow_rows::packed_binary::<T, _>(|a, b| a - b),
        O::Mul => narrow_rows::packed_binary::<T, _>(|a, b| a * b),
        O::Fma => narrow_rows::packed_fused::<T>(),
        _ => return None,
    })
}

fn arithmetic<T: Real>(instruction: &Instruction) -> Option<Choice>
where
    Pair<T>: Lane<Raw: InFile>,
{
    use Opcode as O;
    let run = match instruction.opcode {
        O::Add => {
            ternary(|a: Pair<T>, b: Pair<T>, mode: Mode| a.zip(b, |a, b| float::add(a, b, mode)))
        }
        O::Sub => {
            ternary(|a: Pair<T>, b: Pair<T>, mode: Mode| a.zip(b, |a, b| float::sub(a, b, mode)))
        }
        O::Mul => {
            ternary(|a: Pair<T>, b: Pair<T>, mode: Mode| a.zip(b, |a, b| float::mul(a, b, mode)))
        }
        O::Fma => quaternary(|a: Pair<T>, b: Pair<T>, c: Pair<T>, mode: Mode| {
            Pair(
                float::fma(a.0, b.0, c.0, mode),
                float::fma(a.1, b.1, c.1, mode),
            )
        }),
        _ => return None,
    };
    Some((run, Some(mode(instruction)?)))
}

fn function<T: Real>(instruction: &Instruction) -> Option<Choice>
where
    Pair<T>: Lane<Raw: InFile>,
{
    use Opcode as O;
    let flushes = instruction.has(Modifier::FlushToZero);
    plain(match (instruction.opcode, flushes) {
        (O::Abs, false) => unary(|a: Pair<T>| a.map(narrow::abs_narrow)),
        (O::Abs, true) => unary(|a: Pair<T>| a.map(|a| flush_any(narrow::abs_narrow(a)))),
        (O::Neg, false) => unary(|a: Pair<T>| a.map(narrow::neg_narrow)),
        (O::Neg, true) => unary(|a: Pair<T>| a.map(|a| flush_any(narrow::neg_narrow(a)))),
        (O::Ex2, false) => unary(|a: Pair<T>| a.map(|a| approximate_narrow(a, f64::exp2))),
        (O::Ex2, true) => {
            unary(|a: Pair<T>| a.map(|a| flush_any(approximate_narrow(flush_any(a), f64::exp2))))
        }
        (O::Tanh, _) => unary(|a: Pair<T>| a.map(|a| approximate_narrow(a, f64::tanh))),
        (O::Min | O::Max, _) => return extremum::<T>(instruction),
        _ => return None,
    })
}

fn extremum<T: Real>(instruction: &Instruction) -> Option<Choice>
where
    Pair<T>: Lane<Raw: InFile>,
{
    macro_rules! form {
        ($pick:ident) => {
            match (
                instruction.has_keyword(Keyword::Xorsign),
                instruction.has(Modifier::FlushToZero),
            ) {
                (false, false) => binary(|a: Pair<T>, b: Pair<T>| a.zip(b, float::$pick)),
                (false, true) => {
                    binary(|a: Pair<T>, b: Pair<T>| a.flushed().zip(b.flushed(), float::$pick))
                }
                (true, false) => binary(|a: Pair<T>, b: Pair<T>| {
                    a.zip(b, |a, b| float::with_multiplied_signs(a, b, float::$pick))
                }),
                (true, true) => binary(|a: Pair<T>, b: Pair<T>| {
                    a.flushed().zip(b.flushed(), |a, b| {
                        float::with_multiplied_signs(a, b, float::$pick)
                    })
                }),
            }
        };
    }
    plain(match (instruction.opcode, instruction.has(Modifier::Nan)) {
        (Opcode::Min, false) => form!(min),
        (Opcode::Min, true) => form!(min_nan),
        (_, false) => form!(max),
        (_, true) => form!(max_nan),
    })
}

impl<T: Real> Pair<T> {
    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        Self(f(self.0), f(self.1))
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Self(f(self.0, other.0), f(self.1, other.1))
    }

    #[inline(always)]
    fn flushed(self) -> Self {
        self.map(flush_any)
    }
}
