//! Conversions.

use super::{Definition, Form, Run, form, with_run};
use crate::exec::check::undefined::Propagation;
use crate::exec::frame::InFile;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::{binary, quaternary, ternary, unary};
use crate::exec::values::convert::{Conversion, Floating, Source, f32_to_f64, f64_to_f32};
use crate::exec::values::exact::{self, BF16, F16, Rounding};
use crate::exec::values::float::{Real as _, canonical};
use crate::exec::values::lane::Lane;
use crate::exec::values::narrow::{Bfloat, Half, Pair};
use crate::exec::values::small_float::{
    BFLOAT, E2M1, E2M3, E3M2, E4M3, E5M2, HALF, ScaleRounding, narrow_scale, widen_scale,
};
use crate::syntax::{ScalarClass, ScalarType};

/// The form of `cvt.pack`: two saturated integers, above which are the low bits of a third operand.
macro_rules! pack {
    ($types:literal, $low:literal, $high:literal, $width:literal) => {
        form("x x x x", ".pack.sat", $types, || {
            ternary(|a: i32, b: i32, above: u32| {
                above << (2 * $width)
                    | packed_integers(a.clamp($low, $high), b.clamp($low, $high), $width)
            })
        })
    };
}

/// A form for two f32 and a packed type of small numbers, the first above the second. `$value` is
/// the number that is rounded.
macro_rules! narrow {
    ($types:literal, $suffixes:literal, $format:ident, $width:literal, $value:path) => {
        form("t+ u u", $suffixes, $types, || {
            binary(|high: f32, low: f32| {
                $format.narrow($value(high)) << $width | $format.narrow($value(low))
            })
        })
    };
}

/// A form for two f16 in a register and a packed type of small numbers.
macro_rules! narrow_halves {
    ($types:literal, $suffixes:literal, $format:ident, $width:literal, $value:path) => {
        form("t+ u", $suffixes, $types, || {
            unary(|a: Pair<Half>| {
                $format.narrow($value(a.1.to_f32())) << $width
                    | $format.narrow($value(a.0.to_f32()))
            })
        })
    };
}

/// A form for two small numbers and two f16.
macro_rules! widen {
    ($types:literal, $suffixes:literal, $format:ident, $width:literal, $half:path) => {
        form("t+ u+", $suffixes, $types, || {
            unary(|a: u32| $half($format.widen(a >> $width)) << 16 | $half($format.widen(a)))
        })
    };
}

/// A form for two f32 and two 16-bit numbers that are rounded by the random bits of a third
/// operand, from bit 16 and from bit 0.
macro_rules! stochastic {
    ($types:literal, $suffixes:literal, $format:ident, $bits:literal, $value:path, $finite:literal) => {
        form("t+ u u x", $suffixes, $types, || {
            ternary(|high: f32, low: f32, random: u32| {
                let mask = u32::MAX >> (32 - $bits);
                let high = $value(high);
                let high = $format.narrow_stochastic(high, random >> 16 & mask, $bits, $finite);
                let low = $format.narrow_stochastic($value(low), random & mask, $bits, $finite);
                high << 16 | low
            })
        })
    };
}

/// A form for four f32 and four small numbers that are rounded by random bits.
macro_rules! stochastic_quad {
    ($types:literal, $suffixes:literal, $format:ident, $width:literal, $value:path, $bits:ident) => {
        with_run(
            "t+ u4 x",
            $suffixes,
            $types,
            Run::Quad(|| {
                [
                    ternary(|a: f32, b: f32, random: u32| {
                        let [bits, _] = $bits(random);
                        let above = $format.narrow_stochastic($value(a), reversed(bits), 16, true);
                        above << $width | $format.narrow_stochastic($value(b), bits, 16, true)
                    }),
                    quaternary(|a: f32, b: f32, random: u32, above: u32| {
                        let [_, bits] = $bits(random);
                        let third = $format.narrow_stochastic($value(a), reversed(bits), 16, true);
                        let last = $format.narrow_stochastic($value(b), bits, 16, true);
                        (above << $width | third) << $width | last
                    }),
                ]
            }),
        )
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[Definition {
    name: "cvt",
    requires: &[
        "6.0 sm_70: .satfinite",
        "6.5 sm_72: .pack",
        "6.5 sm_75: .s2 .u2",
        "7.0 sm_80: .f16x2.f32",
        "7.8 sm_89: .e4m3x2 .e5m2x2",
        "7.8 sm_90: .f16.bf16 .f64.bf16 .rn.tf32 .rz.tf32",
        "7.8 sm_90: .s8.bf16 .s16.bf16 .s32.bf16 .s64.bf16 .u8.bf16 .u16.bf16 .u32.bf16 .u64.bf16",
        "8.1: .satfinite.f16.f32 .satfinite.f16x2.f32",
        "8.1 sm_80: .satfinite.bf16.f32 .satfinite.bf16x2.f32 .satfinite.tf32",
        "8.6 sm_100: .rn.satfinite.tf32 .rz.satfinite.tf32 .ue8m0x2",
        "8.7 sm_100: .rs",
    ],
    forms: &[
        // Integers. A saturating form exists if the result cannot represent every source.
        between(
            "t+ u+",
            "",
            "u8|s8|u16|s16|u32|s32|u64|s64.u8|s8|u16|s16|u32|s32|u64|s64",
            integer_to_integer,
        )
        .undefined(Propagation::Bytes { signed: false }),
        general(
            "t+ u+ c",
            ".sat",
            "u8.s8|u16|s16|u32|s32|u64|s64 s8.u8|u16|s16|u32|s32|u64|s64 u16.s8|s16|u32|s32|u64|s64 \
             s16.u16|u32|s32|u64|s64 u32.s8|s16|s32|u64|s64 s32.u32|u64|s64 u64.s8|s16|s32|s64 s64.u64",
        ),
        // Integers to floating-point numbers.
        form("t+ u+", ".rn", "f32.s32", || unary(|a: i32| a as f32)),
        form("t+ u+", ".rn", "f32.u32", || unary(|a: u32| a as f32)),
        form("t+ u+", ".rn", "f32.s64", || unary(|a: i64| a as f32)),
        form("t+ u+", ".rn", "f32.u64", || unary(|a: u64| a as f32)),
        form("t+ u+", ".rnd", "f64.s32", || unary(|a: i32| f64::from(a))),
        form("t+ u+", ".rnd", "f64.u32", || unary(|a: u32| f64::from(a))),
        form("t+ u+", ".rn", "f64.s64", || unary(|a: i64| a as f64)),
        form("t+ u+", ".rn", "f64.u64", || unary(|a: u64| a as f64)),
        general(
            "t+ u+ c",
            ".rnd{.sat}",
            "f16|f64.u8|s8|u16|s16|u32|s32|u64|s64",
        ),
        general(
            "t+ u+ c",
            ".rnd{.ftz}{.sat}",
            "f32.u8|s8|u16|s16|u32|s32|u64|s64",
        ),
        general("t u c", ".rnd", "bf16.u8|s8|u16|s16|u32|s32|u64|s64"),
        // Floating-point numbers to integers. Rust's casts clamp, and convert NaN to zero, as
        // conversions from f32 to 32 bits do.
        form("t+ u+", ".rzi", "s32.f32", || unary(|a: f32| a as i32)),
        form("t+ u+", ".rzi", "u32.f32", || unary(|a: f32| a as u32)),
        general(
            "t+ u+ c",
            ".irnd{.sat}",
            "u8|s8|u16|s16|u32|s32|u64|s64.f16|f64",
        ),
        general(
            "t+ u+ c",
            ".irnd{.ftz}{.sat}",
            "u8|s8|u16|s16|u32|s32|u64|s64.f32",
        ),
        general("t u c", ".irnd", "u8|s8|u16|s16|u32|s32|u64|s64.bf16"),
        // Floating-point numbers to narrower ones.
        form("t+ u+", ".rn", "f16.f32", || unary(Half::from_f32)),
        form("t u", ".rn", "bf16.f32", || unary(Bfloat::from_f32)),
        form("t+ u+", ".rn", "f32.f64", || unary(f64_to_f32)),
        general(
            "t+ u+ c",
            ".rnd{.ftz}{.sat} .rn|rz{.relu}{.satfinite}",
            "f16.f32",
        ),
        general("t u c", ".rnd{.ftz} .rn|rz{.relu}{.satfinite}", "bf16.f32"),
        general("t+ u+ c", ".rnd{.sat}", "f16.f64"),
        general("t u c", ".rnd", "bf16.f64"),
        general("t+ u+ c", ".rnd{.ftz}{.sat}", "f32.f64"),
        // Floating-point numbers to wider ones.
        form("t+ u+", "", "f32.f16", || {
            unary(|a: Half| canonical(a.to_f32()))
        }),
        form("t u", "", "f32.bf16", || unary(|a: u16| u32::from(a) << 16)),
        form("t+ u+", "", "f64.f32", || unary(f32_to_f64)),
        general("t+ u+ c", "{.sat}", "f64.f16"),
        general("t+ u+ c", "{.ftz}{.sat}", "f32.f16 f64.f32"),
        general("t u c", "{.rnd}{.ftz}", "f32.bf16"),
        general("t u c", "{.rnd}", "f16.bf16 bf16.f16 f64.bf16"),
        // Floating-point numbers to integral ones.
        form("t+ u+", "", "f32.f32", || unary(canonical)),
        general("t+ u+ c", "{.irnd}{.sat}", "f16.f16 f64.f64"),
        general("t+ u+ c", "{.irnd}{.ftz}{.sat}", "f32.f32"),
        general("t u c", "{.irnd}", "bf16.bf16"),
        // tf32. Hardware truncates the payload of a NaN with `.rna`, which gives an infinity if no
        // payload bits remain.
        form("t+ u+", ".rn", "tf32.f32", || unary(to_even)),
        form("t+ u+", ".rn.relu", "tf32.f32", || {
            unary(|a: f32| rectified_single(to_even(a)))
        }),
        form("t+ u+", ".rn.satfinite", "tf32.f32", || {
            unary(|a: f32| finite(to_even(a)))
        }),
        form("t+ u+", ".rn.relu.satfinite", "tf32.f32", || {
            unary(|a: f32| rectified_single(finite(to_even(a))))
        }),
        form("t+ u+", ".rz", "tf32.f32", || unary(to_zero)),
        form("t+ u+", ".rz.relu", "tf32.f32", || {
            unary(|a: f32| rectified_single(to_zero(a)))
        }),
        form("t+ u+", ".rz.satfinite", "tf32.f32", || {
            unary(|a: f32| finite(to_zero(a)))
        }),
        form("t+ u+", ".rz.relu.satfinite", "tf32.f32", || {
            unary(|a: f32| rectified_single(finite(to_zero(a))))
        }),
        form("t+ u+", ".rna", "tf32.f32", || unary(away_from_zero)),
        form("t+ u+", ".rna.satfinite", "tf32.f32", || {
            unary(|a: f32| finite(away_from_zero(a)))
        }),
        // Pairs of 16-bit numbers.
        form("t+ u u", ".rn", "f16x2.f32", || {
            binary(|high: f32, low: f32| Pair(Half::from_f32(low), Half::from_f32(high)))
        }),
        form("t+ u u", ".rn", "bf16x2.f32", || {
            binary(|high: f32, low: f32| Pair(Bfloat::from_f32(low), Bfloat::from_f32(high)))
        }),
        form(
            "t+ u u c",
            ".rn|rz{.relu}{.satfinite}",
            "f16x2.f32 bf16x2.f32",
            || {
                ternary(
                    |high: Floating<f32>, low: Floating<f32>, conversion: Conversion| {
                        let high = conversion.apply(high.number()) as u32;
                        high << 16 | conversion.apply(low.number()) as u32
                    },
                )
            },
        ),
        stochastic!("f16x2.f32", ".rs", HALF, 13, f64::from, false),
        stochastic!("f16x2.f32", ".rs.relu", HALF, 13, rectified, false),
        stochastic!("f16x2.f32", ".rs.satfinite", HALF, 13, f64::from, true),
        stochastic!("f16x2.f32", ".rs.relu.satfinite", HALF, 13, rectified, true),
        stochastic!("bf16x2.f32", ".rs", BFLOAT, 16, f64::from, false),
        stochastic!("bf16x2.f32", ".rs.relu", BFLOAT, 16, rectified, false),
        stochastic!("bf16x2.f32", ".rs.satfinite", BFLOAT, 16, f64::from, true),
        stochastic!(
            "bf16x2.f32",
            ".rs.relu.satfinite",
            BFLOAT,
            16,
            rectified,
            true
        ),
        // Numbers of at most 8 bits.
        narrow!("e4m3x2.f32", ".rn.satfinite", E4M3, 8, f64::from),
        narrow!("e4m3x2.f32", ".rn.relu.satfinite", E4M3, 8, rectified),
        narrow!("e5m2x2.f32", ".rn.satfinite", E5M2, 8, f64::from),
        narrow!("e5m2x2.f32", ".rn.relu.satfinite", E5M2, 8, rectified),
        narrow!("e2m3x2.f32", ".rn.satfinite", E2M3, 8, f64::from),
        narrow!("e2m3x2.f32", ".rn.relu.satfinite", E2M3, 8, rectified),
        narrow!("e3m2x2.f32", ".rn.satfinite", E3M2, 8, f64::from),
        narrow!("e3m2x2.f32", ".rn.relu.satfinite", E3M2, 8, rectified),
        narrow!("e2m1x2.f32", ".rn.satfinite", E2M1, 4, f64::from),
        narrow!("e2m1x2.f32", ".rn.relu.satfinite", E2M1, 4, rectified),
        narrow_halves!("e4m3x2.f16x2", ".rn.satfinite", E4M3, 8, f64::from),
        narrow_halves!("e4m3x2.f16x2", ".rn.relu.satfinite", E4M3, 8, rectified),
        narrow_halves!("e5m2x2.f16x2", ".rn.satfinite", E5M2, 8, f64::from),
        narrow_halves!("e5m2x2.f16x2", ".rn.relu.satfinite", E5M2, 8, rectified),
        narrow_halves!("e2m3x2.f16x2", ".rn.satfinite", E2M3, 8, f64::from),
        narrow_halves!("e2m3x2.f16x2", ".rn.relu.satfinite", E2M3, 8, rectified),
        narrow_halves!("e3m2x2.f16x2", ".rn.satfinite", E3M2, 8, f64::from),
        narrow_halves!("e3m2x2.f16x2", ".rn.relu.satfinite", E3M2, 8, rectified),
        narrow_halves!("e2m1x2.f16x2", ".rn.satfinite", E2M1, 4, f64::from),
        narrow_halves!("e2m1x2.f16x2", ".rn.relu.satfinite", E2M1, 4, rectified),
        form("t+ u u", ".rp{.satfinite}", "ue8m0x2.f32", || {
            binary(|high: f32, low: f32| scale_up(high) << 8 | scale_up(low))
        }),
        form("t+ u u", ".rz{.satfinite}", "ue8m0x2.f32", || {
            binary(|high: f32, low: f32| scale_to_zero(high) << 8 | scale_to_zero(low))
        }),
        form("t+ u", ".rp{.satfinite}", "ue8m0x2.bf16x2", || {
            unary(|a: Pair<Bfloat>| scale_up(a.1.to_f32()) << 8 | scale_up(a.0.to_f32()))
        }),
        form("t+ u", ".rz{.satfinite}", "ue8m0x2.bf16x2", || {
            unary(|a: Pair<Bfloat>| scale_to_zero(a.1.to_f32()) << 8 | scale_to_zero(a.0.to_f32()))
        }),
        widen!("f16x2.e4m3x2", ".rn", E4M3, 8, half),
        widen!("f16x2.e4m3x2", ".rn.relu", E4M3, 8, rectified_half),
        widen!("f16x2.e5m2x2", ".rn", E5M2, 8, half),
        widen!("f16x2.e5m2x2", ".rn.relu", E5M2, 8, rectified_half),
        widen!("f16x2.e2m3x2", ".rn", E2M3, 8, half),
        widen!("f16x2.e2m3x2", ".rn.relu", E2M3, 8, rectified_half),
        widen!("f16x2.e3m2x2", ".rn", E3M2, 8, half),
        widen!("f16x2.e3m2x2", ".rn.relu", E3M2, 8, rectified_half),
        widen!("f16x2.e2m1x2", ".rn", E2M1, 4, half),
        widen!("f16x2.e2m1x2", ".rn.relu", E2M1, 4, rectified_half),
        form("t+ u+", ".rn", "bf16x2.ue8m0x2", || {
            unary(|a: u32| scale(a >> 8) << 16 | scale(a))
        }),
        stochastic_quad!(
            "e4m3x4.f32",
            ".rs.satfinite",
            E4M3,
            8,
            f64::from,
            random_halves
        ),
        stochastic_quad!(
            "e4m3x4.f32",
            ".rs.relu.satfinite",
            E4M3,
            8,
            rectified,
            random_halves
        ),
        stochastic_quad!(
            "e5m2x4.f32",
            ".rs.satfinite",
            E5M2,
            8,
            f64::from,
            random_halves
        ),
        stochastic_quad!(
            "e5m2x4.f32",
            ".rs.relu.satfinite",
            E5M2,
            8,
            rectified,
            random_halves
        ),
        stochastic_quad!(
            "e2m3x4.f32",
            ".rs.satfinite",
            E2M3,
            8,
            f64::from,
            random_halves
        ),
        stochastic_quad!(
            "e2m3x4.f32",
            ".rs.relu.satfinite",
            E2M3,
            8,
            rectified,
            random_halves
        ),
        stochastic_quad!(
            "e3m2x4.f32",
            ".rs.satfinite",
            E3M2,
            8,
            f64::from,
            random_halves
        ),
        stochastic_quad!(
            "e3m2x4.f32",
            ".rs.relu.satfinite",
            E3M2,
            8,
            rectified,
            random_halves
        ),
        stochastic_quad!(
            "e2m1x4.f32",
            ".rs.satfinite",
            E2M1,
            4,
            f64::from,
            random_bytes
        ),
        stochastic_quad!(
            "e2m1x4.f32",
            ".rs.relu.satfinite",
            E2M1,
            4,
            rectified,
            random_bytes
        ),
        // Packed integers.
        form("x x x", ".pack.sat", "u16.s32", || {
            binary(|a: i32, b: i32| packed_integers(a.clamp(0, 0xffff), b.clamp(0, 0xffff), 16))
        }),
        form("x x x", ".pack.sat", "s16.s32", || {
            binary(|a: i32, b: i32| {
                packed_integers(a.clamp(-0x8000, 0x7fff), b.clamp(-0x8000, 0x7fff), 16)
            })
        }),
        pack!("u8.s32.b32", 0, 0xff, 8),
        pack!("s8.s32.b32", -0x80, 0x7f, 8),
        pack!("u4.s32.b32", 0, 0xf, 4),
        pack!("s4.s32.b32", -8, 7, 4),
        pack!("u2.s32.b32", 0, 3, 2),
        pack!("s2.s32.b32", -2, 1, 2),
    ],
}];

/// Creates a form with a handler for each pair of types.
const fn between(
    operands: &'static str,
    suffixes: &'static str,
    types: &'static str,
    handler: fn(ScalarType, ScalarType) -> Option<Handler>,
) -> Form {
    with_run(operands, suffixes, types, Run::Converting(handler))
}

/// Creates a form whose handler computes any conversion, which its last source describes.
const fn general(operands: &'static str, suffixes: &'static str, types: &'static str) -> Form {
    between(operands, suffixes, types, described_conversion)
}

fn integer_to_integer(to: ScalarType, from: ScalarType) -> Option<Handler> {
    macro_rules! pair {
        ($from:ty) => {
            match (to.bits(), to.class() == ScalarClass::Signed) {
                (8, false) => unary(|a: $from| a as u8),
                (8, true) => unary(|a: $from| a as i8),
                (16, false) => unary(|a: $from| a as u16),
                (16, true) => unary(|a: $from| a as i16),
                (32, _) => unary(|a: $from| a as u32),
                (64, _) => unary(|a: $from| a as u64),
                _ => return None,
            }
        };
    }
    Some(match from {
        ScalarType::U8 => pair!(u8),
        ScalarType::S8 => pair!(i8),
        ScalarType::U16 => pair!(u16),
        ScalarType::S16 => pair!(i16),
        ScalarType::U32 => pair!(u32),
        ScalarType::S32 => pair!(i32),
        ScalarType::U64 => pair!(u64),
        ScalarType::S64 => pair!(i64),
        _ => return None,
    })
}

/// Returns the handler of a conversion that its second operand describes.
fn described_conversion(to: ScalarType, from: ScalarType) -> Option<Handler> {
    let wide = to.bits() == 64;
    Some(match from {
        ScalarType::F16 => convert::<Floating<Half>>(wide),
        ScalarType::Bf16 => convert::<Floating<Bfloat>>(wide),
        ScalarType::F32 => convert::<Floating<f32>>(wide),
        ScalarType::F64 => convert::<Floating<f64>>(wide),
        ScalarType::U8 => convert::<u8>(wide),
        ScalarType::S8 => convert::<i8>(wide),
        ScalarType::U16 => convert::<u16>(wide),
        ScalarType::S16 => convert::<i16>(wide),
        ScalarType::U32 => convert::<u32>(wide),
        ScalarType::S32 => convert::<i32>(wide),
        ScalarType::U64 => convert::<u64>(wide),
        ScalarType::S64 => convert::<i64>(wide),
        _ => return None,
    })
}

fn convert<S: Source + Lane<Raw: InFile>>(wide: bool) -> Handler {
    if wide {
        binary(|a: S, conversion: Conversion| conversion.apply(a.number()))
    } else {
        binary(|a: S, conversion: Conversion| conversion.apply(a.number()) as u32)
    }
}

/// Returns the low bits of two integers, the first above the second.
#[inline(always)]
fn packed_integers(a: i32, b: i32, width: u32) -> u32 {
    let mask = u32::MAX >> (32 - width);
    (a.cast_unsigned() & mask) << width | b.cast_unsigned() & mask
}

/// Rounds to the nearest tf32, ties to even.
#[inline(always)]
fn to_even(value: f32) -> f32 {
    round_to_tf32(value, 0xfff + (value.to_bits() >> 13 & 1))
}

/// Rounds to tf32 towards zero.
#[inline(always)]
fn to_zero(value: f32) -> f32 {
    round_to_tf32(value, 0)
}

/// Rounds to the nearest tf32, ties away from zero.
#[inline(always)]
fn away_from_zero(value: f32) -> f32 {
    if value.is_nan() {
        f32::from_bits(value.to_bits() & !0x1fff)
    } else {
        round_to_tf32(value, 0x1000)
    }
}

/// Adds to the last bits of a number and clears them. A carry out of the fraction increments the
/// exponent, and may give infinity.
#[inline(always)]
fn round_to_tf32(value: f32, addend: u32) -> f32 {
    if value.is_nan() {
        f32::from_bits(0x7fff_ffff)
    } else if value.is_infinite() {
        value
    } else {
        f32::from_bits(value.to_bits().wrapping_add(addend) & !0x1fff)
    }
}

/// Replaces an infinity by the largest finite tf32.
#[inline(always)]
fn finite(value: f32) -> f32 {
    if value.is_infinite() {
        f32::from_bits(value.to_bits() - 0x2000)
    } else {
        value
    }
}

/// Replaces negative numbers by zero. NaN remains NaN.
#[inline(always)]
fn rectified_single(value: f32) -> f32 {
    if value.is_nan() || value > 0.0 {
        value
    } else {
        0.0
    }
}

/// Returns the number that `.relu` rounds: zero instead of a negative one. NaN remains NaN.
#[inline(always)]
fn rectified(value: f32) -> f64 {
    f64::from(rectified_single(value))
}

/// Returns the f16 of a small number.
#[inline(always)]
fn half(value: f64) -> u32 {
    if value.is_nan() {
        u32::from(Half::nan(&[]).0)
    } else {
        exact::narrow(value, F16, Rounding::Nearest) as u32
    }
}

/// Returns the f16 of a small number, or zero if it is negative.
#[inline(always)]
fn rectified_half(value: f64) -> u32 {
    half(if value <= 0.0 { 0.0 } else { value })
}

/// Returns the bf16 of a scale.
#[inline(always)]
fn scale(bits: u32) -> u32 {
    let value = widen_scale(bits);
    if value.is_nan() {
        u32::from(Bfloat::nan(&[]).0)
    } else {
        exact::narrow(value, BF16, Rounding::Nearest) as u32
    }
}

#[inline(always)]
fn scale_up(value: f32) -> u32 {
    narrow_scale(f64::from(value), ScaleRounding::Up)
}

#[inline(always)]
fn scale_to_zero(value: f32) -> u32 {
    narrow_scale(f64::from(value), ScaleRounding::Zero)
}

/// Returns the random bits of the first two and of the last two of four numbers. The first of the
/// two uses them in reverse.
#[inline(always)]
fn random_halves(random: u32) -> [u32; 2] {
    [random >> 16, random & 0xffff]
}

/// Returns the random bits of the first two and of the last two of four numbers of 4 bits.
#[inline(always)]
fn random_bytes(random: u32) -> [u32; 2] {
    [
        random >> 16 & 0xff00 | random >> 8 & 0xff,
        random >> 8 & 0xff00 | random & 0xff,
    ]
}

/// Returns 16 bits in reverse.
#[inline(always)]
fn reversed(bits: u32) -> u32 {
    bits.reverse_bits() >> 16
}
