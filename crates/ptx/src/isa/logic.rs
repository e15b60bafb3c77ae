//! Logic and shifts.

use super::{Definition, PredicateLogic, Run, by_type, by_width, typed, with_run};
use crate::exec::check::undefined::{Propagation, Shift};
use crate::exec::ops::handler::{binary, unary};
use crate::exec::values::integer::Integer as _;
use crate::syntax::ScalarType;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "and",
        requires: &[],
        forms: &[
            typed(
                "t t t",
                "",
                BITS,
                by_width!(T => binary(|a: T, b: T| a & b)),
            )
            .undefined(Propagation::Dominant(0)),
            with_run("t t t", "", "pred", Run::Predicates(PredicateLogic::And))
                .undefined(Propagation::Dominant(0)),
        ],
    },
    Definition {
        name: "cnot",
        requires: &[],
        forms: &[typed(
            "t t",
            "",
            BITS,
            by_width!(T => unary(|a: T| T::from(a == 0))),
        )],
    },
    Definition {
        name: "not",
        requires: &[],
        forms: &[
            typed("t t", "", BITS, by_width!(T => unary(|a: T| !a)))
                .undefined(Propagation::Bytewise),
            with_run("t t", "", "pred", Run::Predicates(PredicateLogic::Not))
                .undefined(Propagation::Bytewise),
        ],
    },
    Definition {
        name: "or",
        requires: &[],
        forms: &[
            typed(
                "t t t",
                "",
                BITS,
                by_width!(T => binary(|a: T, b: T| a | b)),
            )
            .undefined(Propagation::Dominant(0xff)),
            with_run("t t t", "", "pred", Run::Predicates(PredicateLogic::Or))
                .undefined(Propagation::Dominant(1)),
        ],
    },
    Definition {
        name: "shl",
        requires: &[],
        forms: &[typed(
            "t t r",
            "",
            BITS,
            by_width!(T => binary(|a: T, n: u32| a.shift_left(n))),
        )
        .undefined(Propagation::Shift(Shift::Left))],
    },
    Definition {
        name: "shr",
        requires: &[],
        forms: &[
            typed(
                "t t r",
                "",
                "b16 b32 b64 u16 u32 u64",
                by_width!(T => binary(|a: T, n: u32| a.shift_right(n))),
            )
            .undefined(Propagation::Shift(Shift::LogicalRight)),
            typed(
                "t t r",
                "",
                "s16 s32 s64",
                by_type!(T => binary(|a: T, n: u32| a.shift_right(n))),
            )
            .undefined(Propagation::Shift(Shift::ArithmeticRight)),
        ],
    },
    Definition {
        name: "xor",
        requires: &[],
        forms: &[
            typed(
                "t t t",
                "",
                BITS,
                by_width!(T => binary(|a: T, b: T| a ^ b)),
            )
            .undefined(Propagation::Bytewise)
            .cancels(),
            with_run("t t t", "", "pred", Run::Predicates(PredicateLogic::Xor))
                .undefined(Propagation::Bytewise)
                .cancels(),
        ],
    },
];

const BITS: &str = "b16 b32 b64";
