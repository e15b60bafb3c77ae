//! Functions of floating-point numbers.

use super::{Definition, form};
use crate::exec::ops::handler::{binary, unary};
use crate::exec::values::approximate::{approximate, coarse};
use crate::exec::values::float::{self, Mode, canonical, flush, flush_any, inherit};
use crate::exec::values::narrow::{Bfloat, Half, Pair, approximate_narrow};

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "cos",
        requires: &[],
        forms: &[
            form("t t", ".approx", "f32", || {
                unary(|a: f32| approximate(a, f64::cos))
            }),
            form("t t", ".approx.ftz", "f32", || {
                unary(|a: f32| flush(approximate(flush(a), f64::cos)))
            }),
        ],
    },
    Definition {
        name: "lg2",
        requires: &[],
        forms: &[
            form("t t", ".approx", "f32", || {
                unary(|a: f32| approximate(a, f64::log2))
            }),
            form("t t", ".approx.ftz", "f32", || {
                unary(|a: f32| flush(approximate(flush(a), f64::log2)))
            }),
        ],
    },
    Definition {
        name: "sin",
        requires: &[],
        forms: &[
            form("t t", ".approx", "f32", || {
                unary(|a: f32| approximate(a, f64::sin))
            }),
            form("t t", ".approx.ftz", "f32", || {
                unary(|a: f32| flush(approximate(flush(a), f64::sin)))
            }),
        ],
    },
    Definition {
        name: "copysign",
        requires: &[],
        forms: &[
            form("t t t", "", "f32", || {
                binary(|a: f32, b: f32| b.copysign(a))
            }),
            form("t t t", "", "f64", || {
                binary(|a: f64, b: f64| b.copysign(a))
            }),
        ],
    },
    Definition {
        name: "ex2",
        requires: &["7.0 sm_75: .f16 .f16x2", "7.8 sm_90: .bf16 .bf16x2"],
        forms: &[
            form("t t", ".approx", "f32", || {
                unary(|a: f32| approximate(a, f64::exp2))
            }),
            form("t t", ".approx.ftz", "f32", || {
                unary(|a: f32| flush(approximate(flush(a), f64::exp2)))
            }),
            form("t t", ".approx", "f16", || {
                unary(|a: Half| approximate_narrow(a, f64::exp2))
            }),
            form("t t", ".approx", "f16x2", || {
                unary(|a: Pair<Half>| a.map(|a| approximate_narrow(a, f64::exp2)))
            }),
            // bf16 flushes the subnormals of f32.
            form("t t", ".approx.ftz", "bf16", || {
                unary(|a: Bfloat| flush_any(approximate_narrow(flush_any(a), f64::exp2)))
            }),
            form("t t", ".approx.ftz", "bf16x2", || {
                unary(|a: Pair<Bfloat>| {
                    a.map(|a| flush_any(approximate_narrow(flush_any(a), f64::exp2)))
                })
            }),
        ],
    },
    Definition {
        name: "rcp",
        requires: &[],
        forms: &[
            form("t t", ".approx .rn", "f32", || {
                unary(|a: f32| canonical(1.0 / a))
            }),
            form("t t", ".approx.ftz .rn.ftz", "f32", || {
                unary(|a: f32| flush(canonical(1.0 / flush(a))))
            }),
            form("t t m", ".rnd{.ftz}", "f32", || {
                binary(|a: f32, mode: Mode| float::rcp(a, mode))
            }),
            form("t t", ".approx.ftz", "f64", || {
                unary(|a: f64| coarse(a, |a| 1.0 / a))
            }),
            form("t t", ".rn{.ftz}", "f64", || {
                unary(|a: f64| inherit(1.0 / a, [a]))
            }),
            form("t t m", ".rnd{.ftz}", "f64", || {
                binary(|a: f64, mode: Mode| float::rcp(a, mode))
            }),
        ],
    },
    Definition {
        name: "rsqrt",
        requires: &[],
        forms: &[
            form("t t", ".approx", "f32", || {
                unary(|a: f32| approximate(a, inverse_root))
            }),
            form("t t", ".approx.ftz", "f32", || {
                unary(|a: f32| flush(approximate(flush(a), inverse_root)))
            }),
            form("t t", ".approx", "f64", || {
                unary(|a: f64| inherit(inverse_root(a), [a]))
            }),
            form("t t", ".approx.ftz", "f64", || {
                unary(|a: f64| coarse(a, inverse_root))
            }),
        ],
    },
    Definition {
        name: "sqrt",
        requires: &[],
        forms: &[
            form("t t", ".approx .rn", "f32", || {
                unary(|a: f32| canonical(a.sqrt()))
            }),
            form("t t", ".approx.ftz .rn.ftz", "f32", || {
                unary(|a: f32| flush(canonical(flush(a).sqrt())))
            }),
            form("t t m", ".rnd{.ftz}", "f32", || {
                binary(|a: f32, mode: Mode| float::sqrt(a, mode))
            }),
            form("t t", ".rn", "f64", || {
                unary(|a: f64| inherit(a.sqrt(), [a]))
            }),
            form("t t m", ".rnd", "f64", || {
                binary(|a: f64, mode: Mode| float::sqrt(a, mode))
            }),
        ],
    },
    Definition {
        name: "tanh",
        requires: &["7.0 sm_75", "7.8 sm_90: .bf16 .bf16x2"],
        forms: &[
            form("t t", ".approx", "f32", || {
                unary(|a: f32| approximate(a, f64::tanh))
            }),
            form("t t", ".approx", "f16", || {
                unary(|a: Half| approximate_narrow(a, f64::tanh))
            }),
            form("t t", ".approx", "bf16", || {
                unary(|a: Bfloat| approximate_narrow(a, f64::tanh))
            }),
            form("t t", ".approx", "f16x2", || {
                unary(|a: Pair<Half>| a.map(|a| approximate_narrow(a, f64::tanh)))
            }),
            form("t t", ".approx", "bf16x2", || {
                unary(|a: Pair<Bfloat>| a.map(|a| approximate_narrow(a, f64::tanh)))
            }),
        ],
    },
];

fn inverse_root(value: f64) -> f64 {
    1.0 / value.sqrt()
}
