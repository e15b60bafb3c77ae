//! Sums, differences, products and quotients.

use super::{CARRIED, Definition, INTEGERS, by_type, extended, form, saturating, typed};
use crate::exec::machine::op::Operation as Step;
use crate::exec::ops::extended::{DIFFERENCE, HIGH_PRODUCT, LOW_PRODUCT, READS, SUM, WRITES};
use crate::exec::ops::handler::{
    binary, f64_binary, f64_ternary, narrow_rows, quaternary, ternary, unary,
};
use crate::exec::values::float::{
    self, Mode, abs32, abs64, canonical, flush, flush_any, inherit, neg32, neg64,
};
use crate::exec::values::fused::Fused as _;
use crate::exec::values::integer::{Integer as _, halves};
use crate::exec::values::narrow::{Bfloat, Half, Pair, abs_narrow, neg_narrow};
use crate::syntax::ScalarType;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "abs",
        requires: &["6.5 sm_53: .f16 .f16x2"],
        forms: &[
            form("t t", "", "s16", || unary(|a: i16| a.wrapping_abs())),
            form("t t", "", "s32", || unary(|a: i32| a.wrapping_abs())),
            form("t t", "", "s64", || unary(|a: i64| a.wrapping_abs())),
            form("t t", "", "f32", || unary(abs32)),
            form("t t", ".ftz", "f32", || unary(|a: f32| flush(abs32(a)))),
            form("t t", "", "f64", || unary(abs64)),
            form("t t", "", "f16", || unary(abs_narrow::<Half>)),
            form("t t", ".ftz", "f16", || {
                unary(|a: Half| flush_any(abs_narrow(a)))
            }),
            form("t t", "", "bf16", || unary(abs_narrow::<Bfloat>)),
            form("t t", "", "f16x2", || {
                unary(|a: Pair<Half>| a.map(abs_narrow))
            }),
            form("t t", ".ftz", "f16x2", || {
                unary(|a: Pair<Half>| a.map(|a| flush_any(abs_narrow(a))))
            }),
            form("t t", "", "bf16x2", || {
                unary(|a: Pair<Bfloat>| a.map(abs_narrow))
            }),
        ],
    },
    Definition {
        name: "add",
        requires: &[
            "7.8 sm_90: .bf16 .bf16x2",
            "8.0 sm_90: .s16x2 .u16x2",
            "8.6 sm_100: .f32x2",
        ],
        forms: &[
            typed(
                "t t t",
                "",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.wrapping_add(b))),
            ),
            form("t t t", ".sat", "s32", || {
                binary(|a: i32, b: i32| a.saturating_add(b))
            }),
            form("t t t", "", "u16x2 s16x2", || {
                binary(|a: u32, b: u32| halves(a, b, u16::wrapping_add))
            }),
            extended("t t t", ".cc", CARRIED, SUM, WRITES),
            form("t t t", "{.rn}", "f32", || {
                binary(|a: f32, b: f32| canonical(a + b))
            })
            .step(Step::Add),
            form("t t t", "{.rn}.ftz", "f32", || {
                binary(|a: f32, b: f32| flush(canonical(flush(a) + flush(b))))
            }),
            form("t t t m", "{.rnd}{.ftz}{.sat}", "f32", || {
                ternary(|a: f32, b: f32, mode: Mode| float::add(a, b, mode))
            }),
            form("t n t", "{.rn}", "f32.f16 f32.bf16", || {
                binary(|a: f32, b: f32| canonical(a + b))
            })
            .step(Step::Add),
            form("t n t m", "{.rnd}{.sat}", "f32.f16 f32.bf16", || {
                ternary(|a: f32, b: f32, mode: Mode| float::add(a, b, mode))
            }),
            form("t t t", "{.rn}", "f64", || f64_binary(|a, b| a + b)),
            form("t t t m", "{.rnd}", "f64", || {
                ternary(|a: f64, b: f64, mode: Mode| float::add(a, b, mode))
            }),
            form("t t t", "{.rn}", "f16", || {
                narrow_rows::binary::<Half, _>(|a, b| a + b)
            }),
            form("t t t m", "{.rn}{.ftz}{.sat}", "f16", || {
                ternary(|a: Half, b: Half, mode: Mode| float::add(a, b, mode))
            }),
            form("t t t", "{.rn}", "bf16", || {
                narrow_rows::binary::<Bfloat, _>(|a, b| a + b)
            }),
            form("t t t", "{.rn}", "f16x2", || {
                narrow_rows::packed_binary::<Half, _>(|a, b| a + b)
            }),
            form("t t t m", "{.rn}{.ftz}{.sat}", "f16x2", || {
                ternary(|a: Pair<Half>, b: Pair<Half>, mode: Mode| {
                    a.zip(b, |a, b| float::add(a, b, mode))
                })
            }),
            form("t t t", "{.rn}", "bf16x2", || {
                narrow_rows::packed_binary::<Bfloat, _>(|a, b| a + b)
            }),
            form("t t t m", "{.rnd}{.ftz}", "f32x2", || {
                ternary(|a: Pair<f32>, b: Pair<f32>, mode: Mode| {
                    a.zip(b, |a, b| float::add(a, b, mode))
                })
            }),
        ],
    },
    Definition {
        name: "addc",
        requires: &[],
        forms: &[
            extended("t t t", "", INTEGERS, SUM, READS),
            extended("t t t", ".cc", CARRIED, SUM, READS | WRITES),
            saturating("t t t", ".sat", "s32", SUM, READS),
        ],
    },
    Definition {
        name: "div",
        requires: &[],
        forms: &[
            typed(
                "t t t",
                "",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.quotient(b))),
            ),
            form("t t t", ".approx .full .rn", "f32", || {
                binary(|a: f32, b: f32| canonical(a / b))
            }),
            form("t t t", ".approx.ftz .full.ftz .rn.ftz", "f32", || {
                binary(|a: f32, b: f32| flush(canonical(flush(a) / flush(b))))
            }),
            form("t t t m", ".rnd{.ftz}", "f32", || {
                ternary(|a: f32, b: f32, mode: Mode| float::div(a, b, mode))
            }),
            form("t t t", ".rn", "f64", || {
                binary(|a: f64, b: f64| inherit(a / b, [b, a]))
            }),
            form("t t t m", ".rnd", "f64", || {
                ternary(|a: f64, b: f64, mode: Mode| float::div(a, b, mode))
            }),
        ],
    },
    Definition {
        name: "dp2a",
        requires: &["5.0 sm_61"],
        forms: &[
            form("r r r r", ".lo", "u32.u32", || {
                ternary(dot::<false, false, LOW>)
            }),
            form("r r r r", ".lo", "u32.s32", || {
                ternary(dot::<false, true, LOW>)
            }),
            form("r r r r", ".lo", "s32.u32", || {
                ternary(dot::<true, false, LOW>)
            }),
            form("r r r r", ".lo", "s32.s32", || {
                ternary(dot::<true, true, LOW>)
            }),
            form("r r r r", ".hi", "u32.u32", || {
                ternary(dot::<false, false, HIGH>)
            }),
            form("r r r r", ".hi", "u32.s32", || {
                ternary(dot::<false, true, HIGH>)
            }),
            form("r r r r", ".hi", "s32.u32", || {
                ternary(dot::<true, false, HIGH>)
            }),
            form("r r r r", ".hi", "s32.s32", || {
                ternary(dot::<true, true, HIGH>)
            }),
        ],
    },
    Definition {
        name: "dp4a",
        requires: &["5.0 sm_61"],
        forms: &[
            form("r r r r", "", "u32.u32", || {
                ternary(dot::<false, false, BYTES>)
            }),
            form("r r r r", "", "u32.s32", || {
                ternary(dot::<false, true, BYTES>)
            }),
            form("r r r r", "", "s32.u32", || {
                ternary(dot::<true, false, BYTES>)
            }),
            form("r r r r", "", "s32.s32", || {
                ternary(dot::<true, true, BYTES>)
            }),
        ],
    },
    Definition {
        name: "fma",
        requires: &["8.6 sm_100: .f32x2"],
        forms: &[
            form("t t t t", ".rn", "f32", || {
                ternary(|a: f32, b: f32, c: f32| canonical(a.fused(b, c)))
            })
            .step(Step::MultiplyAdd),
            form("t t t t", ".rn.ftz", "f32", || ternary(float::fma_flushing)),
            form("t t t t m", ".rnd{.ftz}{.sat}", "f32", || {
                quaternary(|a: f32, b: f32, c: f32, mode: Mode| float::fma(a, b, c, mode))
            }),
            form("t n n t", ".rn", "f32.f16 f32.bf16", || {
                ternary(|a: f32, b: f32, c: f32| canonical(a.fused(b, c)))
            })
            .step(Step::MultiplyAdd),
            form("t n n t m", ".rnd{.sat}", "f32.f16 f32.bf16", || {
                quaternary(|a: f32, b: f32, c: f32, mode: Mode| float::fma(a, b, c, mode))
            }),
            form("t t t t", ".rn", "f64", || {
                f64_ternary(|a: f64, b, c| a.fused(b, c))
            }),
            form("t t t t m", ".rnd", "f64", || {
                quaternary(|a: f64, b: f64, c: f64, mode: Mode| float::fma(a, b, c, mode))
            }),
            form("t t t t", ".rn", "f16", || narrow_rows::fused::<Half>()),
            form(
                "t t t t m",
                ".rn{.ftz}{.sat} .rn{.ftz}.relu .rn.oob{.relu}",
                "f16",
                || quaternary(|a: Half, b: Half, c: Half, mode: Mode| float::fma(a, b, c, mode)),
            ),
            form("t t t t", ".rn", "bf16", || narrow_rows::fused::<Bfloat>()),
            form("t t t t m", ".rnd{.oob}{.relu}", "bf16", || {
                quaternary(|a: Bfloat, b: Bfloat, c: Bfloat, mode: Mode| float::fma(a, b, c, mode))
            }),
            form("t t t t", ".rn", "f16x2", || {
                narrow_rows::packed_fused::<Half>()
            }),
            form(
                "t t t t m",
                ".rn{.ftz}{.sat} .rn{.ftz}.relu .rn.oob{.relu}",
                "f16x2",
                || {
                    quaternary(|a: Pair<Half>, b: Pair<Half>, c: Pair<Half>, mode: Mode| {
                        a.zip3(b, c, |a, b, c| float::fma(a, b, c, mode))
                    })
                },
            ),
            form("t t t t", ".rn", "bf16x2", || {
                narrow_rows::packed_fused::<Bfloat>()
            }),
            form("t t t t m", ".rnd{.oob}{.relu}", "bf16x2", || {
                quaternary(
                    |a: Pair<Bfloat>, b: Pair<Bfloat>, c: Pair<Bfloat>, mode: Mode| {
                        a.zip3(b, c, |a, b, c| float::fma(a, b, c, mode))
                    },
                )
            }),
            form("t t t t m", ".rnd{.ftz}", "f32x2", || {
                quaternary(|a: Pair<f32>, b: Pair<f32>, c: Pair<f32>, mode: Mode| {
                    a.zip3(b, c, |a, b, c| float::fma(a, b, c, mode))
                })
            }),
        ],
    },
    Definition {
        name: "mad",
        requires: &[],
        forms: &[
            typed(
                "t t t t",
                ".lo",
                INTEGERS,
                by_type!(T => ternary(|a: T, b: T, c: T| a.multiply_add(b, c))),
            ),
            typed(
                "t t t t",
                ".hi",
                INTEGERS,
                by_type!(T => ternary(|a: T, b: T, c: T| a.high_multiply_add(b, c))),
            ),
            form("t t t t", ".hi.sat", "s32", || {
                ternary(|a: i32, b: i32, c: i32| a.high_product(b).saturating_add(c))
            }),
            form("w t t w", ".wide", "u16", || {
                ternary(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))
            }),
            form("w t t w", ".wide", "s16", || {
                ternary(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c))
            }),
            form("w t t w", ".wide", "u32", || {
                ternary(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
            }),
            form("w t t w", ".wide", "s32", || {
                ternary(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c))
            }),
            extended("t t t t", ".lo.cc", CARRIED, LOW_PRODUCT, WRITES),
            extended("t t t t", ".hi.cc", CARRIED, HIGH_PRODUCT, WRITES),
            form("t t t t", ".rn", "f32", || {
                ternary(|a: f32, b: f32, c: f32| canonical(a.fused(b, c)))
            })
            .step(Step::MultiplyAdd),
            form("t t t t", ".rn.ftz", "f32", || ternary(float::fma_flushing)),
            form("t t t t m", ".rnd{.ftz}{.sat}", "f32", || {
                quaternary(|a: f32, b: f32, c: f32, mode: Mode| float::fma(a, b, c, mode))
            }),
            form("t t t t", ".rn", "f64", || {
                f64_ternary(|a: f64, b, c| a.fused(b, c))
            }),
            form("t t t t m", ".rnd", "f64", || {
                quaternary(|a: f64, b: f64, c: f64, mode: Mode| float::fma(a, b, c, mode))
            }),
        ],
    },
    Definition {
        name: "mad24",
        requires: &[],
        forms: &[
            form("t t t t", ".lo", "u32", || {
                ternary(|a: u32, b: u32, c: u32| (product24(a, b) as u32).wrapping_add(c))
            }),
            form("t t t t", ".lo", "s32", || {
                ternary(|a: i32, b: i32, c: i32| (signed_product24(a, b) as i32).wrapping_add(c))
            }),
            form("t t t t", ".hi", "u32", || {
                ternary(|a: u32, b: u32, c: u32| ((product24(a, b) >> 16) as u32).wrapping_add(c))
            }),
            form("t t t t", ".hi", "s32", || {
                ternary(|a: i32, b: i32, c: i32| {
                    ((signed_product24(a, b) >> 16) as i32).wrapping_add(c)
                })
            }),
            form("t t t t", ".hi.sat", "s32", || {
                ternary(|a: i32, b: i32, c: i32| {
                    ((signed_product24(a, b) >> 16) as i32).saturating_add(c)
                })
            }),
        ],
    },
    Definition {
        name: "madc",
        requires: &[],
        forms: &[
            extended("t t t t", ".lo", INTEGERS, LOW_PRODUCT, READS),
            extended("t t t t", ".hi", INTEGERS, HIGH_PRODUCT, READS),
            extended("t t t t", ".lo.cc", CARRIED, LOW_PRODUCT, READS | WRITES),
            extended("t t t t", ".hi.cc", CARRIED, HIGH_PRODUCT, READS | WRITES),
            saturating("t t t t", ".hi.sat", "s32", HIGH_PRODUCT, READS),
        ],
    },
    Definition {
        name: "mul",
        requires: &["7.8 sm_90: .bf16 .bf16x2", "8.6 sm_100: .f32x2"],
        forms: &[
            typed(
                "t t t",
                ".lo",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.wrapping_mul(b))),
            ),
            typed(
                "t t t",
                ".hi",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.high_product(b))),
            ),
            form("w t t", ".wide", "u16", || {
                binary(|a: u16, b: u16| u32::from(a) * u32::from(b))
            }),
            form("w t t", ".wide", "s16", || {
                binary(|a: i16, b: i16| i32::from(a) * i32::from(b))
            }),
            form("w t t", ".wide", "u32", || {
                binary(|a: u32, b: u32| u64::from(a) * u64::from(b))
            }),
            form("w t t", ".wide", "s32", || {
                binary(|a: i32, b: i32| i64::from(a) * i64::from(b))
            }),
            form("t t t", "{.rn}", "f32", || {
                binary(|a: f32, b: f32| canonical(a * b))
            })
            .step(Step::Multiply),
            form("t t t", "{.rn}.ftz", "f32", || binary(float::mul_flushing)),
            form("t t t m", "{.rnd}{.ftz}{.sat}", "f32", || {
                ternary(|a: f32, b: f32, mode: Mode| float::mul(a, b, mode))
            }),
            form("t t t", "{.rn}", "f64", || f64_binary(|a, b| a * b)),
            form("t t t m", "{.rnd}", "f64", || {
                ternary(|a: f64, b: f64, mode: Mode| float::mul(a, b, mode))
            }),
            form("t t t", "{.rn}", "f16", || {
                narrow_rows::binary::<Half, _>(|a, b| a * b)
            }),
            form("t t t m", "{.rn}{.ftz}{.sat}", "f16", || {
                ternary(|a: Half, b: Half, mode: Mode| float::mul(a, b, mode))
            }),
            form("t t t", "{.rn}", "bf16", || {
                narrow_rows::binary::<Bfloat, _>(|a, b| a * b)
            }),
            form("t t t", "{.rn}", "f16x2", || {
                narrow_rows::packed_binary::<Half, _>(|a, b| a * b)
            }),
            form("t t t m", "{.rn}{.ftz}{.sat}", "f16x2", || {
                ternary(|a: Pair<Half>, b: Pair<Half>, mode: Mode| {
                    a.zip(b, |a, b| float::mul(a, b, mode))
                })
            }),
            form("t t t", "{.rn}", "bf16x2", || {
                narrow_rows::packed_binary::<Bfloat, _>(|a, b| a * b)
            }),
            form("t t t m", "{.rnd}{.ftz}", "f32x2", || {
                ternary(|a: Pair<f32>, b: Pair<f32>, mode: Mode| {
                    a.zip(b, |a, b| float::mul(a, b, mode))
                })
            }),
        ],
    },
    Definition {
        name: "mul24",
        requires: &[],
        forms: &[
            form("t t t", ".lo", "u32", || {
                binary(|a: u32, b: u32| product24(a, b) as u32)
            }),
            form("t t t", ".lo", "s32", || {
                binary(|a: i32, b: i32| signed_product24(a, b) as i32)
            }),
            form("t t t", ".hi", "u32", || {
                binary(|a: u32, b: u32| (product24(a, b) >> 16) as u32)
            }),
            form("t t t", ".hi", "s32", || {
                binary(|a: i32, b: i32| (signed_product24(a, b) >> 16) as i32)
            }),
        ],
    },
    Definition {
        name: "neg",
        requires: &["6.0 sm_53: .f16 .f16x2"],
        forms: &[
            form("t t", "", "s16", || unary(|a: i16| a.wrapping_neg())),
            form("t t", "", "s32", || unary(|a: i32| a.wrapping_neg())),
            form("t t", "", "s64", || unary(|a: i64| a.wrapping_neg())),
            form("t t", "", "f32", || unary(neg32)),
            form("t t", ".ftz", "f32", || unary(|a: f32| flush(neg32(a)))),
            form("t t", "", "f64", || unary(neg64)),
            form("t t", "", "f16", || unary(neg_narrow::<Half>)),
            form("t t", ".ftz", "f16", || {
                unary(|a: Half| flush_any(neg_narrow(a)))
            }),
            form("t t", "", "bf16", || unary(neg_narrow::<Bfloat>)),
            form("t t", "", "f16x2", || {
                unary(|a: Pair<Half>| a.map(neg_narrow))
            }),
            form("t t", ".ftz", "f16x2", || {
                unary(|a: Pair<Half>| a.map(|a| flush_any(neg_narrow(a))))
            }),
            form("t t", "", "bf16x2", || {
                unary(|a: Pair<Bfloat>| a.map(neg_narrow))
            }),
        ],
    },
    Definition {
        name: "rem",
        requires: &[],
        forms: &[typed(
            "t t t",
            "",
            INTEGERS,
            by_type!(T => binary(|a: T, b: T| a.remainder(b))),
        )],
    },
    Definition {
        name: "sad",
        requires: &[],
        forms: &[typed(
            "t t t t",
            "",
            INTEGERS,
            by_type!(T => ternary(|a: T, b: T, c: T| a.add_difference(b, c))),
        )],
    },
    Definition {
        name: "sub",
        requires: &["7.8 sm_90: .bf16 .bf16x2", "8.6 sm_100: .f32x2"],
        forms: &[
            typed(
                "t t t",
                "",
                INTEGERS,
                by_type!(T => binary(|a: T, b: T| a.wrapping_sub(b))),
            )
            .cancels(),
            form("t t t", ".sat", "s32", || {
                binary(|a: i32, b: i32| a.saturating_sub(b))
            })
            .cancels(),
            extended("t t t", ".cc", CARRIED, DIFFERENCE, WRITES),
            form("t t t", "{.rn}", "f32", || {
                binary(|a: f32, b: f32| canonical(a - b))
            })
            .step(Step::Subtract),
            form("t t t", "{.rn}.ftz", "f32", || {
                binary(|a: f32, b: f32| flush(canonical(flush(a) - flush(b))))
            }),
            form("t t t m", "{.rnd}{.ftz}{.sat}", "f32", || {
                ternary(|a: f32, b: f32, mode: Mode| float::sub(a, b, mode))
            }),
            form("t n t", "{.rn}", "f32.f16 f32.bf16", || {
                binary(|a: f32, b: f32| canonical(a - b))
            })
            .step(Step::Subtract),
            form("t n t m", "{.rnd}{.sat}", "f32.f16 f32.bf16", || {
                ternary(|a: f32, b: f32, mode: Mode| float::sub(a, b, mode))
            }),
            form("t t t", "{.rn}", "f64", || f64_binary(|a, b| a - b)),
            form("t t t m", "{.rnd}", "f64", || {
                ternary(|a: f64, b: f64, mode: Mode| float::sub(a, b, mode))
            }),
            form("t t t", "{.rn}", "f16", || {
                narrow_rows::binary::<Half, _>(|a, b| a - b)
            }),
            form("t t t m", "{.rn}{.ftz}{.sat}", "f16", || {
                ternary(|a: Half, b: Half, mode: Mode| float::sub(a, b, mode))
            }),
            form("t t t", "{.rn}", "bf16", || {
                narrow_rows::binary::<Bfloat, _>(|a, b| a - b)
            }),
            form("t t t", "{.rn}", "f16x2", || {
                narrow_rows::packed_binary::<Half, _>(|a, b| a - b)
            }),
            form("t t t m", "{.rn}{.ftz}{.sat}", "f16x2", || {
                ternary(|a: Pair<Half>, b: Pair<Half>, mode: Mode| {
                    a.zip(b, |a, b| float::sub(a, b, mode))
                })
            }),
            form("t t t", "{.rn}", "bf16x2", || {
                narrow_rows::packed_binary::<Bfloat, _>(|a, b| a - b)
            }),
            form("t t t m", "{.rnd}{.ftz}", "f32x2", || {
                ternary(|a: Pair<f32>, b: Pair<f32>, mode: Mode| {
                    a.zip(b, |a, b| float::sub(a, b, mode))
                })
            }),
        ],
    },
    Definition {
        name: "subc",
        requires: &[],
        forms: &[
            extended("t t t", "", INTEGERS, DIFFERENCE, READS),
            extended("t t t", ".cc", CARRIED, DIFFERENCE, READS | WRITES),
            saturating("t t t", ".sat", "s32", DIFFERENCE, READS),
        ],
    },
];

/// The elements of `dp4a`.
const BYTES: u8 = 0;
/// The elements of `dp2a.lo`: halves, and the lower two bytes.
const LOW: u8 = 1;
/// The elements of `dp2a.hi`: halves, and the upper two bytes.
const HIGH: u8 = 2;

/// Returns the sum of `c` and the products of elements, of which those of `a` and `b` may be
/// signed.
#[inline(always)]
fn dot<const A_SIGNED: bool, const B_SIGNED: bool, const ELEMENTS: u8>(
    a: u32,
    b: u32,
    c: u32,
) -> u32 {
    let (count, width) = if ELEMENTS == BYTES { (4, 8) } else { (2, 16) };
    let first = if ELEMENTS == HIGH { 2 } else { 0 };
    (0..count).fold(c, |sum, index| {
        let a = element(a, width, index, A_SIGNED);
        let b = element(b, 8, index + first, B_SIGNED);
        sum.wrapping_add(a.wrapping_mul(b))
    })
}

#[inline(always)]
fn element(bits: u32, width: u32, index: u32, signed: bool) -> u32 {
    let field = bits << (32 - width * (index + 1));
    if signed {
        (field.cast_signed() >> (32 - width)).cast_unsigned()
    } else {
        field >> (32 - width)
    }
}

/// Returns the product of the low 24 bits.
#[inline(always)]
fn product24(a: u32, b: u32) -> u64 {
    u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)
}

#[inline(always)]
fn signed_product24(a: i32, b: i32) -> i64 {
    i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)
}
