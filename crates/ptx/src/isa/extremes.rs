//! Minima and maxima.

use super::{Definition, INTEGERS, by_pair, by_real, by_type, form, typed};
use crate::exec::ops::handler::{binary, ternary};
use crate::exec::values::float::{self, flush, flush_any, with_multiplied_signs};
use crate::exec::values::integer::{halves, signed_halves};
use crate::exec::values::narrow::{Bfloat, Half, Pair};
use crate::syntax::ScalarType;

/// The forms of an extreme: of integers, of one or two floating-point numbers, and of three. The
/// second function returns NaN if an operand is.
macro_rules! forms {
    ($extreme:ident, $extreme_or_nan:ident) => {
        [
            typed(
                "t t t",
                "",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.$extreme(b))),
            ),
            form("t t t", ".relu", "s32", || {
                binary(|a: i32, b: i32| a.$extreme(b).max(0))
            }),
            form("t t t", "", "u16x2", || {
                binary(|a: u32, b: u32| halves(a, b, Ord::$extreme))
            }),
            form("t t t", "", "s16x2", || {
                binary(|a: u32, b: u32| signed_halves(a, b, Ord::$extreme))
            }),
            form("t t t", ".relu", "s16x2", || {
                binary(|a: u32, b: u32| signed_halves(a, b, |a, b| a.$extreme(b).max(0)))
            }),
            typed(
                "t t t",
                "",
                "f16 bf16 f32 f64",
                by_real!(T => binary(|a: T, b: T| float::$extreme(a, b))),
            ),
            typed(
                "t t t",
                ".ftz",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| float::$extreme(flush_any(a), flush_any(b)))),
            ),
            typed(
                "t t t",
                ".xorsign.abs",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(a, b, float::$extreme))),
            ),
            typed(
                "t t t",
                ".ftz.xorsign.abs",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(flush_any(a), flush_any(b), float::$extreme))),
            ),
            typed(
                "t t t",
                "",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, float::$extreme))),
            ),
            form("t t t", ".ftz", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| a.flushed().zip(b.flushed(), float::$extreme))
            }),
            typed(
                "t t t",
                ".xorsign.abs",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, |a, b| with_multiplied_signs(a, b, float::$extreme)))),
            ),
            form("t t t", ".ftz.xorsign.abs", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| {
                    a.flushed()
                        .zip(b.flushed(), |a, b| with_multiplied_signs(a, b, float::$extreme))
                })
            }),
            form("t t t t", "", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::$extreme(float::$extreme(a, b), c))
            }),
            form("t t t t", ".ftz", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::$extreme(float::$extreme(flush(a), flush(b)), flush(c))
                })
            }),
            form("t t t t", ".abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::$extreme(float::$extreme(a.abs(), b.abs()), c.abs()))
            }),
            form("t t t t", ".ftz.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::$extreme(float::$extreme(flush(a.abs()), flush(b.abs())), flush(c.abs()))
                })
            }),
            typed(
                "t t t",
                ".NaN",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| float::$extreme_or_nan(a, b))),
            ),
            typed(
                "t t t",
                ".ftz.NaN",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| float::$extreme_or_nan(flush_any(a), flush_any(b)))),
            ),
            typed(
                "t t t",
                ".NaN.xorsign.abs",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(a, b, float::$extreme_or_nan))),
            ),
            typed(
                "t t t",
                ".ftz.NaN.xorsign.abs",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(flush_any(a), flush_any(b), float::$extreme_or_nan))),
            ),
            typed(
                "t t t",
                ".NaN",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, float::$extreme_or_nan))),
            ),
            form("t t t", ".ftz.NaN", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| a.flushed().zip(b.flushed(), float::$extreme_or_nan))
            }),
            typed(
                "t t t",
                ".NaN.xorsign.abs",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, |a, b| with_multiplied_signs(a, b, float::$extreme_or_nan)))),
            ),
            form("t t t", ".ftz.NaN.xorsign.abs", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| {
                    a.flushed().zip(b.flushed(), |a, b| {
                        with_multiplied_signs(a, b, float::$extreme_or_nan)
                    })
                })
            }),
            form("t t t t", ".NaN", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::$extreme_or_nan(float::$extreme_or_nan(a, b), c))
            }),
            form("t t t t", ".ftz.NaN", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::$extreme_or_nan(float::$extreme_or_nan(flush(a), flush(b)), flush(c))
                })
            }),
            form("t t t t", ".NaN.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::$extreme_or_nan(float::$extreme_or_nan(a.abs(), b.abs()), c.abs())
                })
            }),
            form("t t t t", ".ftz.NaN.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::$extreme_or_nan(
                        float::$extreme_or_nan(flush(a.abs()), flush(b.abs())),
                        flush(c.abs()),
                    )
                })
            }),
        ]
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "max",
        requires: &[
            "7.0 sm_80: .f16 .f16x2",
            "8.0 sm_90: .relu.s16x2 .relu.s32 .s16x2 .u16x2",
        ],
        forms: &forms!(max, max_nan),
    },
    Definition {
        name: "min",
        requires: &[
            "7.0 sm_80: .f16 .f16x2",
            "8.0 sm_90: .relu.s16x2 .relu.s32 .s16x2 .u16x2",
        ],
        forms: &forms!(min, min_nan),
    },
];
