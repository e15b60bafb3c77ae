//! Comparisons, whose result is a predicate or a number.

use super::{Definition, Form, Run, with_run};
use crate::exec::check::undefined::Propagation;
use crate::exec::frame::InFile;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::compare;
use crate::exec::values::float::{Real, flush, flush_any};
use crate::exec::values::lane::Lane;
use crate::exec::values::narrow::{Bfloat, Half};
use crate::syntax::{Compare, ScalarType};

/// The relations of bits.
macro_rules! equality {
    () => {
        ".eq|ne"
    };
}

/// The relations of signed integers.
macro_rules! order {
    () => {
        ".eq|ne|lt|le|gt|ge"
    };
}

/// The relations of unsigned integers.
macro_rules! unsigned_order {
    () => {
        ".eq|ne|lt|le|gt|ge|lo|ls|hi|hs"
    };
}

/// The relations of floating-point numbers.
macro_rules! partial_order {
    () => {
        ".eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"
    };
}

/// The forms of comparisons: without a predicate, and combined with one.
macro_rules! forms {
    ($($operands:literal [$($suffixes:tt)*] $types:literal;)*) => {
        &[$(
            comparison($operands, concat!($($suffixes)*), $types).undefined(UNDEFINED),
            comparison(concat!($operands, " p"), concat!($($suffixes)*, ".and|or|xor"), $types)
                .undefined(UNDEFINED),
        )*]
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "set",
        requires: &[
            "6.5 sm_53: .s16.f16 .s32.f16 .s32.f16x2 .u16.f16 .u32.f16 .u32.f16x2",
            "7.8 sm_90: .bf16 .bf16x2",
        ],
        forms: {
            const UNDEFINED: Propagation = Propagation::All;
            forms! {
                "t u u" [equality!()] "u32|s32|f16|bf16|f32.b16|b32|b64";
                "t u u" [order!()] "u32|s32|f16|bf16|f32.s16|s32|s64";
                "t u u" [unsigned_order!()] "u32|s32|f16|bf16|f32.u16|u32|u64";
                "t u u" [partial_order!()] "u32|s32|f16|bf16|f32.f64 bf16.f32 bf16.f16 u16|s16|bf16|u32|s32.bf16 u32|s32|bf16x2.bf16x2";
                "t u u" [partial_order!(), "{.ftz}"] "u32|s32|f16|f32.f32 u16|s16|f16|u32|s32.f16 u32|s32|f16x2.f16x2";
            }
        },
    },
    Definition {
        name: "setp",
        requires: &["7.8 sm_90: .bf16 .bf16x2"],
        forms: {
            const UNDEFINED: Propagation = Propagation::Compare(None);
            forms! {
                "p|p t t" [equality!()] "b16 b32 b64";
                "p|p t t" [order!()] "s16 s32 s64";
                "p|p t t" [unsigned_order!()] "u16 u32 u64";
                "p|p t t" [partial_order!()] "f64 bf16x2";
                "p|p t t" [partial_order!(), "{.ftz}"] "f32 f16x2";
                "p t t" [partial_order!()] "bf16";
                "p t t" [partial_order!(), "{.ftz}"] "f16";
            }
        },
    },
];

/// Creates a form of a comparison.
const fn comparison(operands: &'static str, suffixes: &'static str, types: &'static str) -> Form {
    with_run(
        operands,
        suffixes,
        types,
        Run::Comparison(comparison_handler),
    )
}

/// Returns the handler of a comparison.
fn comparison_handler(comparison: Compare, scalar: ScalarType, flush: bool) -> Option<Handler> {
    match scalar {
        ScalarType::F32 if flush => float_comparison::<Flushed>(comparison),
        ScalarType::F32 => float_comparison::<f32>(comparison),
        ScalarType::F64 => float_comparison::<f64>(comparison),
        ScalarType::F16 if flush => float_comparison::<FlushedHalf>(comparison),
        ScalarType::F16 => float_comparison::<Half>(comparison),
        ScalarType::Bf16 => float_comparison::<Bfloat>(comparison),
        ScalarType::U16 | ScalarType::B16 => integer_comparison::<u16>(comparison),
        ScalarType::S16 => integer_comparison::<i16>(comparison),
        ScalarType::U32 | ScalarType::B32 => integer_comparison::<u32>(comparison),
        ScalarType::S32 => integer_comparison::<i32>(comparison),
        ScalarType::U64 | ScalarType::B64 => integer_comparison::<u64>(comparison),
        ScalarType::S64 => integer_comparison::<i64>(comparison),
        _ => None,
    }
}

fn integer_comparison<T>(comparison: Compare) -> Option<Handler>
where
    T: Lane<Raw: InFile> + Ord,
{
    Some(match comparison {
        Compare::Equal => compare(|a: T, b: T| a == b),
        Compare::NotEqual => compare(|a: T, b: T| a != b),
        Compare::Less | Compare::Lower => compare(|a: T, b: T| a < b),
        Compare::LessEqual | Compare::LowerSame => compare(|a: T, b: T| a <= b),
        Compare::Greater | Compare::Higher => compare(|a: T, b: T| a > b),
        Compare::GreaterEqual | Compare::HigherSame => compare(|a: T, b: T| a >= b),
        _ => return None,
    })
}

/// A floating-point operand of a comparison.
trait Comparable: Lane<Raw: InFile> {
    type Value: PartialOrd;
    fn value(self) -> Self::Value;
}

/// An f32 whose subnormals compare as zero.
#[derive(Clone, Copy)]
struct Flushed(f32);

impl Lane for Flushed {
    type Raw = u32;
    #[inline(always)]
    fn from_raw(raw: u32) -> Self {
        Self(flush(f32::from_bits(raw)))
    }
    #[inline(always)]
    fn into_raw(self) -> u32 {
        self.0.to_bits()
    }
}

/// An f16 whose subnormals compare as zero.
#[derive(Clone, Copy)]
struct FlushedHalf(Half);

impl Lane for FlushedHalf {
    type Raw = u32;
    #[inline(always)]
    fn from_raw(raw: u32) -> Self {
        Self(flush_any(Half(raw as u16)))
    }
    #[inline(always)]
    fn into_raw(self) -> u32 {
        u32::from(self.0.0)
    }
}

macro_rules! comparable {
    ($($ty:ty => $value:ty, $it:ident $body:expr);*) => {$(
        impl Comparable for $ty {
            type Value = $value;
            #[inline(always)]
            fn value(self) -> $value {
                let $it = self;
                $body
            }
        }
    )*};
}

comparable!(
    f32 => f32, it it;
    f64 => f64, it it;
    Flushed => f32, it it.0;
    FlushedHalf => f64, it it.0.to_f64();
    Half => f64, it it.to_f64();
    Bfloat => f64, it it.to_f64()
);

#[expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "the negation is true for unordered operands"
)]
fn float_comparison<T: Comparable>(comparison: Compare) -> Option<Handler> {
    Some(match comparison {
        Compare::Equal => compare(|a: T, b: T| a.value() == b.value()),
        Compare::NotEqual => compare(|a: T, b: T| a.value() < b.value() || a.value() > b.value()),
        Compare::Less => compare(|a: T, b: T| a.value() < b.value()),
        Compare::LessEqual => compare(|a: T, b: T| a.value() <= b.value()),
        Compare::Greater => compare(|a: T, b: T| a.value() > b.value()),
        Compare::GreaterEqual => compare(|a: T, b: T| a.value() >= b.value()),
        Compare::EqualUnordered => {
            compare(|a: T, b: T| !(a.value() < b.value() || a.value() > b.value()))
        }
        Compare::NotEqualUnordered => compare(|a: T, b: T| a.value() != b.value()),
        Compare::LessUnordered => compare(|a: T, b: T| !(a.value() >= b.value())),
        Compare::LessEqualUnordered => compare(|a: T, b: T| !(a.value() > b.value())),
        Compare::GreaterUnordered => compare(|a: T, b: T| !(a.value() <= b.value())),
        Compare::GreaterEqualUnordered => compare(|a: T, b: T| !(a.value() < b.value())),
        Compare::Ordered => compare(|a: T, b: T| a.value().partial_cmp(&b.value()).is_some()),
        Compare::Unordered => compare(|a: T, b: T| a.value().partial_cmp(&b.value()).is_none()),
        _ => return None,
    })
}
