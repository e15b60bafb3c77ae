//! `cvt` to and from tf32 and the formats of at most 8 bits.

use super::convert_random::join;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::moves::widen_half;
use crate::exec::ops::handler::{ternary, unary};
use crate::exec::values::exact::{self, BF16, F16, Rounding};
use crate::exec::values::float::Real;
use crate::exec::values::narrow::{Bfloat, Half};
use crate::exec::values::small_float::{
    E2M1, E2M3, E3M2, E4M3, E5M2, ScaleRounding, narrow_scale, widen_scale,
};
use crate::syntax::{Instruction, Keyword, Modifier, Operand, Rounding as Written, ScalarType};

/// Returns `true` if a type is a pair of numbers of at most 8 bits.
pub(super) fn is_small(scalar: ScalarType) -> bool {
    use ScalarType as S;
    matches!(
        scalar,
        S::E4m3x2 | S::E5m2x2 | S::E2m3x2 | S::E3m2x2 | S::E2m1x2 | S::Ue8m0x2
    )
}

/// Returns the number of bits of each of the two numbers.
fn width(scalar: ScalarType) -> u32 {
    if scalar == ScalarType::E2m1x2 { 4 } else { 8 }
}

impl Lowerer<'_> {
    /// `cvt` with tf32 or a format of at most 8 bits.
    pub(super) fn convert_small(
        &mut self,
        instruction: &Instruction,
        to: ScalarType,
        from: ScalarType,
    ) -> Lowered {
        match &instruction.operands[..] {
            [destination, source] if to == ScalarType::Tf32 && from == ScalarType::F32 => {
                let a = self.source(source, from)?;
                let run = to_tf32(instruction).ok_or_else(|| Refusal::form(instruction))?;
                let d = self.destination(destination, ScalarType::B32)?;
                self.emit(run, d, [a, 0, 0]);
                Ok(())
            }
            [destination, high, low] if from == ScalarType::F32 => {
                let high = self.source(high, from)?;
                let low = self.source(low, from)?;
                let run = narrowing(instruction, to).ok_or_else(|| Refusal::form(instruction))?;
                self.narrow_pair(destination, to, run, [high, low])
            }
            [destination, source]
                if from == ScalarType::F16x2 && is_small(to)
                    || from == ScalarType::Bf16x2 && to == ScalarType::Ue8m0x2 =>
            {
                let widen = widen_half(from).ok_or_else(|| Refusal::form(instruction))?;
                let a = self.source(source, ScalarType::B32)?;
                let [low, high] = self.halves(a).map(|half| (half, self.new_word()));
                for (half, wide) in [low, high] {
                    self.emit(widen, wide, [half, 0, 0]);
                }
                let run = narrowing(instruction, to).ok_or_else(|| Refusal::form(instruction))?;
                self.narrow_pair(destination, to, run, [high.1, low.1])
            }
            [destination, source] if is_small(from) => {
                self.widen_pair(instruction, destination, source, to, from)
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `cvt.pack`: two saturated integers, below the low bits of a third operand.
    pub(super) fn pack_integers(&mut self, instruction: &Instruction) -> Lowered {
        let (Some(to), [destination, a, b, rest @ ..]) =
            (instruction.types().next(), &instruction.operands[..])
        else {
            return Err(Refusal::form(instruction));
        };
        let run = pack_integers(to).ok_or_else(|| Refusal::scalar(instruction, to))?;
        let c = match rest.first() {
            Some(c) => self.source(c, ScalarType::B32)?,
            None => self.word(0),
        };
        let a = self.source(a, ScalarType::S32)?;
        let b = self.source(b, ScalarType::S32)?;
        let d = self.destination(destination, ScalarType::B32)?;
        self.emit(run, d, [a, b, c]);
        Ok(())
    }

    fn narrow_pair(
        &mut self,
        destination: &Operand,
        to: ScalarType,
        run: Handler,
        sources: [u32; 2],
    ) -> Lowered {
        let halves = [self.new_word(), self.new_word()];
        for (half, source) in halves.into_iter().zip(sources) {
            self.emit(run, half, [source, 0, 0]);
        }
        let d = self.destination(destination, ScalarType::B16)?;
        self.emit(join(width(to)), d, [halves[0], halves[1], 0]);
        Ok(())
    }

    fn widen_pair(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
        source: &Operand,
        to: ScalarType,
        from: ScalarType,
    ) -> Lowered {
        let a = self.source(source, ScalarType::B16)?;
        let run = widening(instruction, to, from).ok_or_else(|| Refusal::form(instruction))?;
        let d = self.destination(destination, ScalarType::B32)?;
        self.emit(run, d, [a, 0, 0]);
        Ok(())
    }
}

/// Returns the handler of `cvt.pack`: two saturated integers, below the low bits of a third operand.
fn pack_integers(to: ScalarType) -> Option<Handler> {
    macro_rules! pack {
        ($low:literal, $high:literal, $width:literal) => {
            ternary(|a: i32, b: i32, c: u32| {
                let mask = u32::MAX >> (32 - $width);
                let a = a.clamp($low, $high).cast_unsigned() & mask;
                let b = b.clamp($low, $high).cast_unsigned() & mask;
                // Pairs of 16 bits have no third operand.
                let above = if $width == 16 {
                    0
                } else {
                    c << (2 * $width % 32)
                };
                above | a << $width | b
            })
        };
    }
    Some(match to {
        ScalarType::U16 => pack!(0, 0xffff, 16),
        ScalarType::S16 => pack!(-0x8000, 0x7fff, 16),
        ScalarType::U8 => pack!(0, 0xff, 8),
        ScalarType::S8 => pack!(-0x80, 0x7f, 8),
        ScalarType::U4 => pack!(0, 0xf, 4),
        ScalarType::S4 => pack!(-8, 7, 4),
        ScalarType::U2 => pack!(0, 3, 2),
        ScalarType::S2 => pack!(-2, 1, 2),
        _ => return None,
    })
}

/// Returns the handler of a conversion from f32 to tf32.
fn to_tf32(instruction: &Instruction) -> Option<Handler> {
    #[inline(always)]
    fn round(value: f32, up: impl Fn(u32) -> u32) -> f32 {
        let bits = value.to_bits();
        if value.is_nan() {
            return f32::from_bits(0x7fff_ffff);
        }
        // The fraction keeps ten bits. A carry out of it increments the exponent, and may give infinity.
        if value.is_infinite() {
            value
        } else {
            f32::from_bits(bits.wrapping_add(up(bits)) & !0x1fff)
        }
    }
    #[inline(always)]
    fn rectify(value: f32) -> f32 {
        if value.is_nan() || value > 0.0 {
            value
        } else {
            0.0
        }
    }
    /// Replaces infinity by the largest finite number.
    #[inline(always)]
    fn finite(value: f32) -> f32 {
        if value.is_infinite() {
            f32::from_bits(value.to_bits() - 0x2000)
        } else {
            value
        }
    }
    if instruction.has(Modifier::SaturateFinite) {
        return Some(
            match (
                instruction.rounding()?,
                instruction.has_keyword(Keyword::Relu),
            ) {
                (Written::NearestEven, false) => {
                    unary(|a: f32| finite(round(a, |bits| 0xfff + (bits >> 13 & 1))))
                }
                (Written::NearestEven, true) => {
                    unary(|a: f32| rectify(finite(round(a, |bits| 0xfff + (bits >> 13 & 1)))))
                }
                (Written::Zero, false) => unary(|a: f32| finite(round(a, |_| 0))),
                (Written::Zero, true) => unary(|a: f32| rectify(finite(round(a, |_| 0)))),
                // A NaN whose upper payload bits are zero becomes an infinity first.
                (Written::NearestAway, false) => unary(|a: f32| {
                    finite(if a.is_nan() {
                        f32::from_bits(a.to_bits() & !0x1fff)
                    } else {
                        round(a, |_| 0x1000)
                    })
                }),
                _ => return None,
            },
        );
    }
    Some(
        match (
            instruction.rounding()?,
            instruction.has_keyword(Keyword::Relu),
        ) {
            (Written::NearestEven, false) => {
                unary(|a: f32| round(a, |bits| 0xfff + (bits >> 13 & 1)))
            }
            (Written::NearestEven, true) => {
                unary(|a: f32| rectify(round(a, |bits| 0xfff + (bits >> 13 & 1))))
            }
            (Written::Zero, false) => unary(|a: f32| round(a, |_| 0)),
            (Written::Zero, true) => unary(|a: f32| rectify(round(a, |_| 0))),
            // Hardware truncates the payload of a NaN, which gives an infinity if no payload bits remain.
            (Written::NearestAway, false) => unary(|a: f32| {
                if a.is_nan() {
                    f32::from_bits(a.to_bits() & !0x1fff)
                } else {
                    round(a, |_| 0x1000)
                }
            }),
            (Written::NearestAway, true) => unary(|a: f32| rectify(round(a, |_| 0x1000))),
            _ => return None,
        },
    )
}

/// Returns the conversion of one f32 to an element of a packed type.
fn narrowing(instruction: &Instruction, to: ScalarType) -> Option<Handler> {
    macro_rules! form {
        ($format:ident) => {
            if instruction.has_keyword(Keyword::Relu) {
                // NaN is not negative, so it remains NaN.
                unary(|a: f32| {
                    $format.narrow(if a.is_nan() {
                        f64::NAN
                    } else {
                        f64::from(a.max(0.0))
                    }) & 0x7f
                })
            } else {
                unary(|a: f32| $format.narrow(f64::from(a)))
            }
        };
    }
    Some(match (to, instruction.rounding()?) {
        (ScalarType::E4m3x2, Written::NearestEven) => form!(E4M3),
        (ScalarType::E5m2x2, Written::NearestEven) => form!(E5M2),
        (ScalarType::E2m3x2, Written::NearestEven) => form!(E2M3),
        (ScalarType::E3m2x2, Written::NearestEven) => form!(E3M2),
        (ScalarType::E2m1x2, Written::NearestEven) => form!(E2M1),
        (ScalarType::Ue8m0x2, Written::Up) => {
            unary(|a: f32| narrow_scale(f64::from(a), ScaleRounding::Up))
        }
        (ScalarType::Ue8m0x2, Written::Zero) => {
            unary(|a: f32| narrow_scale(f64::from(a), ScaleRounding::Zero))
        }
        _ => return None,
    })
}

/// Returns the conversion of a packed type to two numbers of 16 bits.
fn widening(instruction: &Instruction, to: ScalarType, from: ScalarType) -> Option<Handler> {
    #[inline(always)]
    fn half(value: f64, rectifies: bool) -> u32 {
        if value.is_nan() {
            return u32::from(Half::nan(&[]).0);
        }
        let value = if rectifies && value <= 0.0 {
            0.0
        } else {
            value
        };
        exact::narrow(value, F16, Rounding::Nearest) as u32
    }
    macro_rules! form {
        ($format:ident, $width:literal) => {
            if instruction.has_keyword(Keyword::Relu) {
                unary(|a: u32| {
                    half($format.widen(a >> $width), true) << 16 | half($format.widen(a), true)
                })
            } else {
                unary(|a: u32| {
                    half($format.widen(a >> $width), false) << 16 | half($format.widen(a), false)
                })
            }
        };
    }
    fn scale(bits: u32) -> u32 {
        let value = widen_scale(bits);
        if value.is_nan() {
            u32::from(Bfloat::nan(&[]).0)
        } else {
            exact::narrow(value, BF16, Rounding::Nearest) as u32
        }
    }
    Some(match (to, from) {
        (ScalarType::F16x2, ScalarType::E4m3x2) => form!(E4M3, 8),
        (ScalarType::F16x2, ScalarType::E5m2x2) => form!(E5M2, 8),
        (ScalarType::F16x2, ScalarType::E2m3x2) => form!(E2M3, 8),
        (ScalarType::F16x2, ScalarType::E3m2x2) => form!(E3M2, 8),
        (ScalarType::F16x2, ScalarType::E2m1x2) => form!(E2M1, 4),
        (ScalarType::Bf16x2, ScalarType::Ue8m0x2) => unary(|a: u32| scale(a >> 8) << 16 | scale(a)),
        _ => return None,
    })
}
