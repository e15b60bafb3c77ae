//! Handlers of `cvt` to and from tf32 and the formats of at most 8 bits, and of `cvt.pack`.

use super::{ternary, unary};
use crate::exec::machine::op::Handler;
use crate::exec::values::exact::{self, BF16, F16, Rounding};
use crate::exec::values::float::Real;
use crate::exec::values::narrow::{Bfloat, Half};
use crate::exec::values::small_float::{
    E2M1, E2M3, E3M2, E4M3, E5M2, ScaleRounding, narrow_scale, widen_scale,
};
use crate::syntax::{Instruction, Keyword, Modifier, Rounding as Written, ScalarType};

/// Returns the handler of `cvt.pack`: two saturated integers, below the low bits of a third operand.
pub(crate) fn pack_integers(to: ScalarType) -> Option<Handler> {
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
pub(crate) fn to_tf32(instruction: &Instruction) -> Option<Handler> {
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
pub(crate) fn narrowing(instruction: &Instruction, to: ScalarType) -> Option<Handler> {
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
pub(crate) fn widening(
    instruction: &Instruction,
    to: ScalarType,
    from: ScalarType,
) -> Option<Handler> {
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
