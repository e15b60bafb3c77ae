//! Minima and maxima.

use super::{Definition, INTEGERS, by_pair, by_real, by_type, form, typed};
use crate::exec::ops::handler::{binary, ternary};
use crate::exec::values::float::{self, flush, flush_any, with_multiplied_signs};
use crate::exec::values::integer::{halves, signed_halves};
use crate::exec::values::narrow::{Bfloat, Half, Pair};
use crate::syntax::ScalarType;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "max",
        requires: &[
            "7.0 sm_80: .f16 .f16x2",
            "8.0 sm_90: .relu.s16x2 .relu.s32 .s16x2 .u16x2",
        ],
        forms: &[
            typed(
                "t t t",
                "",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.max(b))),
            ),
            form("t t t", ".relu", "s32", || {
                binary(|a: i32, b: i32| a.max(b).max(0))
            }),
            form("t t t", "", "u16x2", || {
                binary(|a: u32, b: u32| halves(a, b, Ord::max))
            }),
            form("t t t", "", "s16x2", || {
                binary(|a: u32, b: u32| signed_halves(a, b, Ord::max))
            }),
            form("t t t", ".relu", "s16x2", || {
                binary(|a: u32, b: u32| signed_halves(a, b, |a, b| a.max(b).max(0)))
            }),
            typed(
                "t t t",
                "",
                "f16 bf16 f32 f64",
                by_real!(T => binary(|a: T, b: T| float::max(a, b))),
            ),
            typed(
                "t t t",
                ".ftz",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| float::max(flush_any(a), flush_any(b)))),
            ),
            typed(
                "t t t",
                ".xorsign.abs",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(a, b, float::max))),
            ),
            typed(
                "t t t",
                ".ftz.xorsign.abs",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(flush_any(a), flush_any(b), float::max))),
            ),
            typed(
                "t t t",
                "",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, float::max))),
            ),
            form("t t t", ".ftz", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| a.flushed().zip(b.flushed(), float::max))
            }),
            typed(
                "t t t",
                ".xorsign.abs",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, |a, b| with_multiplied_signs(a, b, float::max)))),
            ),
            form("t t t", ".ftz.xorsign.abs", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| {
                    a.flushed()
                        .zip(b.flushed(), |a, b| with_multiplied_signs(a, b, float::max))
                })
            }),
            form("t t t t", "", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::max(float::max(a, b), c))
            }),
            form("t t t t", ".ftz", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::max(float::max(flush(a), flush(b)), flush(c))
                })
            }),
            form("t t t t", ".abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::max(float::max(a.abs(), b.abs()), c.abs()))
            }),
            form("t t t t", ".ftz.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::max(float::max(flush(a.abs()), flush(b.abs())), flush(c.abs()))
                })
            }),
            typed(
                "t t t",
                ".NaN",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| float::max_nan(a, b))),
            ),
            typed(
                "t t t",
                ".ftz.NaN",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| float::max_nan(flush_any(a), flush_any(b)))),
            ),
            typed(
                "t t t",
                ".NaN.xorsign.abs",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(a, b, float::max_nan))),
            ),
            typed(
                "t t t",
                ".ftz.NaN.xorsign.abs",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(flush_any(a), flush_any(b), float::max_nan))),
            ),
            typed(
                "t t t",
                ".NaN",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, float::max_nan))),
            ),
            form("t t t", ".ftz.NaN", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| a.flushed().zip(b.flushed(), float::max_nan))
            }),
            typed(
                "t t t",
                ".NaN.xorsign.abs",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, |a, b| with_multiplied_signs(a, b, float::max_nan)))),
            ),
            form("t t t", ".ftz.NaN.xorsign.abs", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| {
                    a.flushed().zip(b.flushed(), |a, b| {
                        with_multiplied_signs(a, b, float::max_nan)
                    })
                })
            }),
            form("t t t t", ".NaN", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::max_nan(float::max_nan(a, b), c))
            }),
            form("t t t t", ".ftz.NaN", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::max_nan(float::max_nan(flush(a), flush(b)), flush(c))
                })
            }),
            form("t t t t", ".NaN.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::max_nan(float::max_nan(a.abs(), b.abs()), c.abs())
                })
            }),
            form("t t t t", ".ftz.NaN.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::max_nan(
                        float::max_nan(flush(a.abs()), flush(b.abs())),
                        flush(c.abs()),
                    )
                })
            }),
        ],
    },
    Definition {
        name: "min",
        requires: &[
            "7.0 sm_80: .f16 .f16x2",
            "8.0 sm_90: .relu.s16x2 .relu.s32 .s16x2 .u16x2",
        ],
        forms: &[
            typed(
                "t t t",
                "",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.min(b))),
            ),
            form("t t t", ".relu", "s32", || {
                binary(|a: i32, b: i32| a.min(b).max(0))
            }),
            form("t t t", "", "u16x2", || {
                binary(|a: u32, b: u32| halves(a, b, Ord::min))
            }),
            form("t t t", "", "s16x2", || {
                binary(|a: u32, b: u32| signed_halves(a, b, Ord::min))
            }),
            form("t t t", ".relu", "s16x2", || {
                binary(|a: u32, b: u32| signed_halves(a, b, |a, b| a.min(b).max(0)))
            }),
            typed(
                "t t t",
                "",
                "f16 bf16 f32 f64",
                by_real!(T => binary(|a: T, b: T| float::min(a, b))),
            ),
            typed(
                "t t t",
                ".ftz",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| float::min(flush_any(a), flush_any(b)))),
            ),
            typed(
                "t t t",
                ".xorsign.abs",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(a, b, float::min))),
            ),
            typed(
                "t t t",
                ".ftz.xorsign.abs",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(flush_any(a), flush_any(b), float::min))),
            ),
            typed(
                "t t t",
                "",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, float::min))),
            ),
            form("t t t", ".ftz", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| a.flushed().zip(b.flushed(), float::min))
            }),
            typed(
                "t t t",
                ".xorsign.abs",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, |a, b| with_multiplied_signs(a, b, float::min)))),
            ),
            form("t t t", ".ftz.xorsign.abs", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| {
                    a.flushed()
                        .zip(b.flushed(), |a, b| with_multiplied_signs(a, b, float::min))
                })
            }),
            form("t t t t", "", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::min(float::min(a, b), c))
            }),
            form("t t t t", ".ftz", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::min(float::min(flush(a), flush(b)), flush(c))
                })
            }),
            form("t t t t", ".abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::min(float::min(a.abs(), b.abs()), c.abs()))
            }),
            form("t t t t", ".ftz.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::min(float::min(flush(a.abs()), flush(b.abs())), flush(c.abs()))
                })
            }),
            typed(
                "t t t",
                ".NaN",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| float::min_nan(a, b))),
            ),
            typed(
                "t t t",
                ".ftz.NaN",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| float::min_nan(flush_any(a), flush_any(b)))),
            ),
            typed(
                "t t t",
                ".NaN.xorsign.abs",
                "f16 bf16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(a, b, float::min_nan))),
            ),
            typed(
                "t t t",
                ".ftz.NaN.xorsign.abs",
                "f16 f32",
                by_real!(T => binary(|a: T, b: T| with_multiplied_signs(flush_any(a), flush_any(b), float::min_nan))),
            ),
            typed(
                "t t t",
                ".NaN",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, float::min_nan))),
            ),
            form("t t t", ".ftz.NaN", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| a.flushed().zip(b.flushed(), float::min_nan))
            }),
            typed(
                "t t t",
                ".NaN.xorsign.abs",
                "f16x2 bf16x2",
                by_pair!(T => binary(|a: T, b: T| a.zip(b, |a, b| with_multiplied_signs(a, b, float::min_nan)))),
            ),
            form("t t t", ".ftz.NaN.xorsign.abs", "f16x2", || {
                binary(|a: Pair<Half>, b: Pair<Half>| {
                    a.flushed().zip(b.flushed(), |a, b| {
                        with_multiplied_signs(a, b, float::min_nan)
                    })
                })
            }),
            form("t t t t", ".NaN", "f32", || {
                ternary(|a: f32, b: f32, c: f32| float::min_nan(float::min_nan(a, b), c))
            }),
            form("t t t t", ".ftz.NaN", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::min_nan(float::min_nan(flush(a), flush(b)), flush(c))
                })
            }),
            form("t t t t", ".NaN.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::min_nan(float::min_nan(a.abs(), b.abs()), c.abs())
                })
            }),
            form("t t t t", ".ftz.NaN.abs", "f32", || {
                ternary(|a: f32, b: f32, c: f32| {
                    float::min_nan(
                        float::min_nan(flush(a.abs()), flush(b.abs())),
                        flush(c.abs()),
                    )
                })
            }),
        ],
    },
];
