//! Selections and tests of values.

use super::{Definition, Form, Run, typed, with_run};
use crate::exec::check::undefined::Propagation;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::{compare, select, ternary};
use crate::exec::values::float::flush;

/// Selects a handler by the size of a register. `T` stands for its bits in the body.
macro_rules! by_size {
    ($t:ident => $body:expr) => {
        |scalar| {
            Some(if scalar.bits() == 64 {
                type $t = u64;
                $body
            } else {
                type $t = u32;
                $body
            })
        }
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "selp",
        requires: &[],
        forms: &[typed("t t t p", "", VALUES, by_size!(T => select::<T>()))
            .undefined(Propagation::Select)],
    },
    Definition {
        name: "slct",
        requires: &[],
        forms: &[
            typed(
                "t t t u",
                "",
                BY_INTEGER,
                by_size!(T => ternary(|a: T, b: T, c: i32| if c >= 0 { a } else { b })),
            ),
            typed(
                "t t t u",
                "",
                BY_FLOAT,
                by_size!(T => ternary(|a: T, b: T, c: f32| if c >= 0.0 { a } else { b })),
            ),
            typed(
                "t t t u",
                ".ftz",
                BY_FLOAT,
                by_size!(T => ternary(|a: T, b: T, c: f32| if flush(c) >= 0.0 { a } else { b })),
            ),
        ],
    },
    Definition {
        name: "testp",
        requires: &[],
        forms: &[
            test(".finite", "f32", || compare(|a: f32, _| a.is_finite())),
            test(".finite", "f64", || compare(|a: f64, _| a.is_finite())),
            test(".infinite", "f32", || compare(|a: f32, _| a.is_infinite())),
            test(".infinite", "f64", || compare(|a: f64, _| a.is_infinite())),
            // Hardware counts zeros as normal.
            test(".normal", "f32", || {
                compare(|a: f32, _| a.is_normal() || a == 0.0)
            }),
            test(".normal", "f64", || {
                compare(|a: f64, _| a.is_normal() || a == 0.0)
            }),
            test(".notanumber", "f32", || compare(|a: f32, _| a.is_nan())),
            test(".notanumber", "f64", || compare(|a: f64, _| a.is_nan())),
            test(".number", "f32", || compare(|a: f32, _| !a.is_nan())),
            test(".number", "f64", || compare(|a: f64, _| !a.is_nan())),
            test(".subnormal", "f32", || {
                compare(|a: f32, _| a.is_subnormal())
            }),
            test(".subnormal", "f64", || {
                compare(|a: f64, _| a.is_subnormal())
            }),
        ],
    },
];

/// The types of `selp`.
const VALUES: &str = "b16 u16 s16 b32 u32 s32 b64 u64 s64 f32 f64";
/// The types of `slct` by the sign of an integer.
const BY_INTEGER: &str = "b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64.s32";
/// The types of `slct` by the sign of a floating-point number.
const BY_FLOAT: &str = "b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64.f32";

/// Creates a form of `testp`.
const fn test(suffixes: &'static str, types: &'static str, handler: fn() -> Handler) -> Form {
    with_run("p t", suffixes, types, Run::Test(handler))
}
