//! Handlers of floating-point arithmetic: the host's operations where they round as the device's, exact ones otherwise.

use super::narrow_rows::{self, Narrow};
use super::packed::packed;
use super::superinstruction::Operation;
use super::{binary, f64_binary, f64_ternary, quaternary, ternary, unary};
use crate::exec::machine::frame::InFile;
use crate::exec::machine::op::Handler;
use crate::exec::values::approximate::{approximate, coarse};
use crate::exec::values::exact::Rounding;
use crate::exec::values::float::{
    self, Mode, Real, abs32, abs64, canonical, flush, flush_any, inherit, neg32, neg64,
};
use crate::exec::values::fused::Fused as _;
use crate::exec::values::narrow::{self, Bfloat, Half, approximate_narrow};
use crate::syntax::{Instruction, Keyword, Modifier, Opcode, Rounding as Written, ScalarType};

/// A handler, and the mode that follows its sources as an additional operand, if it has one.
pub(crate) type Choice = (Handler, Option<Mode>);

/// Returns the handler of an instruction on floating-point numbers of a type.
pub(crate) fn float(instruction: &Instruction, scalar: ScalarType) -> Option<Choice> {
    match scalar {
        ScalarType::F32 => single(instruction),
        ScalarType::F64 => double(instruction),
        ScalarType::F16 => narrow::<Half>(instruction),
        ScalarType::Bf16 => narrow::<Bfloat>(instruction),
        _ => packed(instruction, scalar),
    }
}

/// Returns the rounding of an instruction, which defaults to nearest.
fn rounding(instruction: &Instruction) -> Option<Rounding> {
    Some(match instruction.rounding() {
        None | Some(Written::NearestEven) => Rounding::Nearest,
        Some(Written::Zero) => Rounding::Zero,
        Some(Written::Down) => Rounding::Down,
        Some(Written::Up) => Rounding::Up,
        Some(_) => return None,
    })
}

pub(super) fn mode(instruction: &Instruction) -> Option<Mode> {
    let flush = instruction.has(Modifier::FlushToZero);
    let saturate = instruction.has(Modifier::Saturate);
    let mode = Mode::new(rounding(instruction)?, flush, saturate);
    let rectifies = instruction.has_keyword(Keyword::Relu);
    let mode = if rectifies { mode.rectified() } else { mode };
    Some(if instruction.has_keyword(Keyword::Oob) {
        mode.with_zeroed_out_of_bounds()
    } else {
        mode
    })
}

pub(super) fn plain(handler: Handler) -> Option<Choice> {
    Some((handler, None))
}

fn single(instruction: &Instruction) -> Option<Choice> {
    use Opcode as O;
    let flushes = instruction.has(Modifier::FlushToZero);
    let usual = rounding(instruction)? == Rounding::Nearest && !instruction.has(Modifier::Saturate);
    match (instruction.opcode, usual, flushes) {
        (O::Add, true, false) => plain(binary(|a: f32, b: f32| canonical(a + b))),
        (O::Add, true, true) => plain(binary(|a: f32, b: f32| {
            flush(canonical(flush(a) + flush(b)))
        })),
        (O::Sub, true, false) => plain(binary(|a: f32, b: f32| canonical(a - b))),
        (O::Sub, true, true) => plain(binary(|a: f32, b: f32| {
            flush(canonical(flush(a) - flush(b)))
        })),
        (O::Mul, true, false) => plain(binary(|a: f32, b: f32| canonical(a * b))),
        (O::Mul, true, true) => plain(binary(float::mul_flushing)),
        (O::Fma | O::Mad, true, false) => {
            plain(ternary(|a: f32, b: f32, c: f32| canonical(a.fused(b, c))))
        }
        (O::Fma | O::Mad, true, true) => plain(ternary(float::fma_flushing)),
        (O::Div, true, false) => plain(binary(|a: f32, b: f32| canonical(a / b))),
        (O::Div, true, true) => plain(binary(|a: f32, b: f32| {
            flush(canonical(flush(a) / flush(b)))
        })),
        (O::Rcp, true, false) => plain(unary(|a: f32| canonical(1.0 / a))),
        (O::Rcp, true, true) => plain(unary(|a: f32| flush(canonical(1.0 / flush(a))))),
        (O::Sqrt, true, false) => plain(unary(|a: f32| canonical(a.sqrt()))),
        (O::Sqrt, true, true) => plain(unary(|a: f32| flush(canonical(flush(a).sqrt())))),
        (O::Add | O::Sub | O::Mul | O::Fma | O::Mad | O::Div | O::Rcp | O::Sqrt, ..) => {
            general::<f32>(instruction)
        }
        _ => single_function(instruction, flushes),
    }
}

/// Returns the step of a superinstruction that does the same as an instruction on floating-point numbers, if there is one.
pub(crate) fn step(instruction: &Instruction, scalar: ScalarType) -> Option<Operation> {
    let is_plain = scalar == ScalarType::F32 && mode(instruction) == Some(Mode::NEAREST);
    match instruction.opcode {
        Opcode::Add if is_plain => Some(Operation::Add),
        Opcode::Sub if is_plain => Some(Operation::Subtract),
        Opcode::Mul if is_plain => Some(Operation::Multiply),
        Opcode::Fma | Opcode::Mad if is_plain => Some(Operation::MultiplyAdd),
        _ => None,
    }
}

/// Returns the handler of an approximate function of f32, or of an operation that does not round.
fn single_function(instruction: &Instruction, flushes: bool) -> Option<Choice> {
    use Opcode as O;
    if let O::Min | O::Max = instruction.opcode {
        return extremum::<f32>(instruction, flushes);
    }
    plain(match (instruction.opcode, flushes) {
        (O::Abs, false) => unary(abs32),
        (O::Abs, true) => unary(|a: f32| flush(abs32(a))),
        (O::Neg, false) => unary(neg32),
        (O::Neg, true) => unary(|a: f32| flush(neg32(a))),
        (O::Copysign, _) => binary(|a: f32, b: f32| b.copysign(a)),
        (O::Rsqrt, false) => unary(|a: f32| approximate(a, inverse_root)),
        (O::Rsqrt, true) => unary(|a: f32| flush(approximate(flush(a), inverse_root))),
        (O::Ex2, false) => unary(|a: f32| approximate(a, f64::exp2)),
        (O::Ex2, true) => unary(|a: f32| flush(approximate(flush(a), f64::exp2))),
        (O::Lg2, false) => unary(|a: f32| approximate(a, f64::log2)),
        (O::Lg2, true) => unary(|a: f32| flush(approximate(flush(a), f64::log2))),
        (O::Sin, false) => unary(|a: f32| approximate(a, f64::sin)),
        (O::Sin, true) => unary(|a: f32| flush(approximate(flush(a), f64::sin))),
        (O::Cos, false) => unary(|a: f32| approximate(a, f64::cos)),
        (O::Cos, true) => unary(|a: f32| flush(approximate(flush(a), f64::cos))),
        (O::Tanh, _) => unary(|a: f32| approximate(a, f64::tanh)),
        _ => return None,
    })
}

fn double(instruction: &Instruction) -> Option<Choice> {
    use Opcode as O;
    let approximate = instruction.has(Modifier::Approximate);
    let usual = rounding(instruction)? == Rounding::Nearest && !approximate;
    if instruction.has(Modifier::Saturate) {
        return None;
    }
    match (instruction.opcode, usual) {
        (O::Add, true) => plain(f64_binary(|a, b| a + b)),
        (O::Sub, true) => plain(f64_binary(|a, b| a - b)),
        (O::Mul, true) => plain(f64_binary(|a, b| a * b)),
        (O::Fma | O::Mad, true) => plain(f64_ternary(|a: f64, b, c| a.fused(b, c))),
        (O::Div, true) => plain(binary(|a: f64, b: f64| inherit(a / b, [b, a]))),
        (O::Rcp, true) => plain(unary(|a: f64| inherit(1.0 / a, [a]))),
        (O::Sqrt, true) => plain(unary(|a: f64| inherit(a.sqrt(), [a]))),
        (O::Rcp, false) if approximate => plain(unary(|a: f64| coarse(a, |a| 1.0 / a))),
        (O::Rsqrt, _) if instruction.has(Modifier::FlushToZero) => {
            plain(unary(|a: f64| coarse(a, inverse_root)))
        }
        (O::Rsqrt, _) => plain(unary(|a: f64| inherit(inverse_root(a), [a]))),
        (O::Add | O::Sub | O::Mul | O::Fma | O::Mad | O::Div | O::Rcp | O::Sqrt, _) => {
            general::<f64>(instruction)
        }
        (O::Min | O::Max, _) => extremum::<f64>(instruction, false),
        (O::Abs, _) => plain(unary(abs64)),
        (O::Neg, _) => plain(unary(neg64)),
        (O::Copysign, _) => plain(binary(|a: f64, b: f64| b.copysign(a))),
        _ => None,
    }
}

/// Returns the handler of an instruction on a 16-bit format, which rounds once.
fn narrow<T: Narrow>(instruction: &Instruction) -> Option<Choice> {
    use Opcode as O;
    let flushes = instruction.has(Modifier::FlushToZero);
    let is_nearest = mode(instruction) == Some(Mode::NEAREST);
    plain(match (instruction.opcode, flushes) {
        (O::Add, _) if is_nearest => narrow_rows::binary::<T, _>(|a, b| a + b),
        (O::Sub, _) if is_nearest => narrow_rows::binary::<T, _>(|a, b| a - b),
        (O::Mul, _) if is_nearest => narrow_rows::binary::<T, _>(|a, b| a * b),
        (O::Fma, _) if is_nearest => narrow_rows::fused::<T>(),
        (O::Add | O::Sub | O::Mul | O::Fma, _) => return general::<T>(instruction),
        (O::Min | O::Max, _) => return extremum::<T>(instruction, flushes),
        (O::Abs, false) => unary(narrow::abs_narrow::<T>),
        (O::Abs, true) => unary(|a: T| flush_any(narrow::abs_narrow(a))),
        (O::Neg, false) => unary(narrow::neg_narrow::<T>),
        (O::Neg, true) => unary(|a: T| flush_any(narrow::neg_narrow(a))),
        (O::Ex2, false) => unary(|a: T| approximate_narrow(a, f64::exp2)),
        // bf16 flushes the subnormals of f32.
        (O::Ex2, true) => unary(|a: T| flush_any(approximate_narrow(flush_any(a), f64::exp2))),
        (O::Tanh, _) => unary(|a: T| approximate_narrow(a, f64::tanh)),
        _ => return None,
    })
}

/// Returns the handler for any rounding, flushing and saturation, by the mode operand.
fn general<T: Real<Raw: InFile>>(instruction: &Instruction) -> Option<Choice> {
    use Opcode as O;
    let run = match instruction.opcode {
        O::Add => ternary(|a: T, b: T, mode: Mode| float::add(a, b, mode)),
        O::Sub => ternary(|a: T, b: T, mode: Mode| float::sub(a, b, mode)),
        O::Mul => ternary(|a: T, b: T, mode: Mode| float::mul(a, b, mode)),
        O::Fma | O::Mad => quaternary(|a: T, b: T, c: T, mode: Mode| float::fma(a, b, c, mode)),
        O::Div => ternary(|a: T, b: T, mode: Mode| float::div(a, b, mode)),
        O::Rcp => binary(|a: T, mode: Mode| float::rcp(a, mode)),
        O::Sqrt => binary(|a: T, mode: Mode| float::sqrt(a, mode)),
        _ => return None,
    };
    Some((run, Some(mode(instruction)?)))
}

fn extremum<T: Real<Raw: InFile>>(instruction: &Instruction, flushes: bool) -> Option<Choice> {
    let nan = instruction.has(Modifier::Nan);
    if instruction.has_keyword(Keyword::Xorsign) {
        return signed_extremum::<T>(instruction.opcode, nan, flushes);
    }
    if instruction.operands.len() == 4 {
        let magnitudes = instruction.has_keyword(Keyword::Abs);
        return ternary_extremum(instruction.opcode, nan, flushes, magnitudes);
    }
    plain(match (instruction.opcode, nan, flushes) {
        (Opcode::Min, false, false) => binary(|a: T, b: T| float::min(a, b)),
        (Opcode::Min, true, false) => binary(|a: T, b: T| float::min_nan(a, b)),
        (_, false, false) => binary(|a: T, b: T| float::max(a, b)),
        (_, true, false) => binary(|a: T, b: T| float::max_nan(a, b)),
        (Opcode::Min, false, true) => binary(|a: T, b: T| float::min(flush_any(a), flush_any(b))),
        (Opcode::Min, true, true) => {
            binary(|a: T, b: T| float::min_nan(flush_any(a), flush_any(b)))
        }
        (_, false, true) => binary(|a: T, b: T| float::max(flush_any(a), flush_any(b))),
        (_, true, true) => binary(|a: T, b: T| float::max_nan(flush_any(a), flush_any(b))),
    })
}

/// Returns the handler of `.xorsign.abs`: the extreme of the magnitudes, with the product of the signs.
fn signed_extremum<T: Real<Raw: InFile>>(
    opcode: Opcode,
    nan: bool,
    flushes: bool,
) -> Option<Choice> {
    macro_rules! form {
        ($pick:ident) => {
            if flushes {
                binary(|a: T, b: T| {
                    float::with_multiplied_signs(flush_any(a), flush_any(b), float::$pick)
                })
            } else {
                binary(|a: T, b: T| float::with_multiplied_signs(a, b, float::$pick))
            }
        };
    }
    plain(match (opcode, nan) {
        (Opcode::Min, false) => form!(min),
        (Opcode::Min, true) => form!(min_nan),
        (_, false) => form!(max),
        (_, true) => form!(max_nan),
    })
}

/// Returns the handler of the extreme of three f32, or of their magnitudes.
fn ternary_extremum(opcode: Opcode, nan: bool, flushes: bool, magnitudes: bool) -> Option<Choice> {
    macro_rules! form {
        ($pick:ident) => {
            match (flushes, magnitudes) {
                (false, false) => {
                    ternary(|a: f32, b: f32, c: f32| float::$pick(float::$pick(a, b), c))
                }
                (true, false) => ternary(|a: f32, b: f32, c: f32| {
                    float::$pick(float::$pick(flush(a), flush(b)), flush(c))
                }),
                (false, true) => ternary(|a: f32, b: f32, c: f32| {
                    float::$pick(float::$pick(a.abs(), b.abs()), c.abs())
                }),
                (true, true) => ternary(|a: f32, b: f32, c: f32| {
                    float::$pick(float::$pick(flush(a.abs()), flush(b.abs())), flush(c.abs()))
                }),
            }
        };
    }
    plain(match (opcode, nan) {
        (Opcode::Min, false) => form!(min),
        (Opcode::Min, true) => form!(min_nan),
        (_, false) => form!(max),
        (_, true) => form!(max_nan),
    })
}

fn inverse_root(value: f64) -> f64 {
    1.0 / value.sqrt()
}
