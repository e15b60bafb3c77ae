//! Integer arithmetic.

use super::{Definition, INTEGERS, by_type, form, typed};
use crate::exec::ops::handler::{binary, ternary};
use crate::exec::values::integer::Integer as _;
use crate::syntax::ScalarType;

pub(super) const DEFINITIONS: &[Definition] = &[
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
];

/// The elements of `dp4a`.
const BYTES: u8 = 0;
/// The elements of `dp2a.lo`: halves, and the lower two bytes.
const LOW: u8 = 1;
/// The elements of `dp2a.hi`: halves, and the upper two bytes.
const HIGH: u8 = 2;

/// Returns the sum of `c` and the products of elements, of which those of `a` and `b` may be signed.
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
