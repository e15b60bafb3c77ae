//! Instructions that count, find, reverse, select and move bits.

use super::{Definition, Run, form, with_run};
use crate::exec::check::undefined::Propagation;
use crate::exec::ops::handler::{binary, quaternary, ternary, unary};
use crate::exec::values::integer::{
    Permutation, extend_from, extract_bits, find_nth_set, insert_bits, permute_bytes, table_logic,
};

/// A form of `prmt` whose third source selects among the permutations of a kind.
macro_rules! permutation {
    ($suffix:literal, $permutation:ident) => {
        form("t t t t", $suffix, "b32", || {
            ternary(|a: u32, b: u32, index: u32| {
                permute_bytes(a, b, Permutation::$permutation.selector(index))
            })
        })
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[
    // The 32-bit forms of `bfe` and `bfi` use the low byte of position and length.
    Definition {
        name: "bfe",
        requires: &[],
        forms: &[
            form("t t b b", "", "u32", || {
                ternary(|a: u32, p: u32, n: u32| {
                    extract_bits(u64::from(a), p & 0xff, n & 0xff, 32, false) as u32
                })
            })
            .undefined(Propagation::Extract),
            form("t t b b", "", "s32", || {
                ternary(|a: u32, p: u32, n: u32| {
                    extract_bits(u64::from(a), p & 0xff, n & 0xff, 32, true) as u32
                })
            })
            .undefined(Propagation::Extract),
            form("t t b b", "", "u64", || {
                ternary(|a: u64, p: u32, n: u32| extract_bits(a, p, n, 64, false))
            })
            .undefined(Propagation::Extract),
            form("t t b b", "", "s64", || {
                ternary(|a: u64, p: u32, n: u32| extract_bits(a, p, n, 64, true))
            })
            .undefined(Propagation::Extract),
        ],
    },
    Definition {
        name: "bfi",
        requires: &[],
        forms: &[
            form("t t t b b", "", "b32", || {
                quaternary(|a: u32, b: u32, p: u32, n: u32| {
                    insert_bits(u64::from(a), u64::from(b), p & 0xff, n & 0xff, 32) as u32
                })
            }),
            form("t t t b b", "", "b64", || {
                quaternary(|a: u64, b: u64, p: u32, n: u32| insert_bits(a, b, p, n, 64))
            }),
        ],
    },
    Definition {
        name: "bfind",
        requires: &[],
        forms: &[
            form("r t", "", "u32", || {
                unary(|a: u32| highest_bit(a.leading_zeros(), 32))
            }),
            form("r t", "", "s32", || {
                unary(|a: i32| highest_bit((a ^ a >> 31).leading_zeros(), 32))
            }),
            form("r t", "", "u64", || {
                unary(|a: u64| highest_bit(a.leading_zeros(), 64))
            }),
            form("r t", "", "s64", || {
                unary(|a: i64| highest_bit((a ^ a >> 63).leading_zeros(), 64))
            }),
            form("r t", ".shiftamt", "u32", || {
                unary(|a: u32| shift_amount(a.leading_zeros(), 32))
            }),
            form("r t", ".shiftamt", "s32", || {
                unary(|a: i32| shift_amount((a ^ a >> 31).leading_zeros(), 32))
            }),
            form("r t", ".shiftamt", "u64", || {
                unary(|a: u64| shift_amount(a.leading_zeros(), 64))
            }),
            form("r t", ".shiftamt", "s64", || {
                unary(|a: i64| shift_amount((a ^ a >> 63).leading_zeros(), 64))
            }),
        ],
    },
    Definition {
        name: "bmsk",
        requires: &["7.6 sm_70"],
        forms: &[
            form("r r r", ".clamp", "b32", || binary(clamped_mask)),
            form("r r r", ".wrap", "b32", || binary(wrapped_mask)),
        ],
    },
    Definition {
        name: "brev",
        requires: &[],
        forms: &[
            form("t t", "", "b32", || unary(|a: u32| a.reverse_bits())),
            form("t t", "", "b64", || unary(|a: u64| a.reverse_bits())),
        ],
    },
    Definition {
        name: "clz",
        requires: &[],
        forms: &[
            form("r t", "", "b32", || unary(|a: u32| a.leading_zeros())),
            form("r t", "", "b64", || unary(|a: u64| a.leading_zeros())),
        ],
    },
    Definition {
        name: "fns",
        requires: &["6.0 sm_30"],
        forms: &[form("t t t t", "", "b32", || {
            ternary(|mask: u32, base: u32, offset: i32| find_nth_set(mask, base, offset))
        })],
    },
    Definition {
        name: "lop3",
        requires: &["8.2 sm_70: .and .or"],
        forms: &[
            form("_t t t t i", "", "b32", || quaternary(table_logic)),
            with_run("_t|p t t t i p", ".and .or", "b32", Run::TestedTable),
        ],
    },
    Definition {
        name: "popc",
        requires: &[],
        forms: &[
            form("r t", "", "b32", || unary(|a: u32| a.count_ones())),
            form("r t", "", "b64", || unary(|a: u64| a.count_ones())),
        ],
    },
    Definition {
        name: "prmt",
        requires: &[],
        forms: &[
            form("t t t t", "", "b32", || ternary(permute_bytes)).undefined(Propagation::Permute),
            permutation!(".f4e", Forward),
            permutation!(".b4e", Backward),
            permutation!(".rc8", Byte),
            permutation!(".ecl", ClampLeft),
            permutation!(".ecr", ClampRight),
            permutation!(".rc16", Half),
        ],
    },
    Definition {
        name: "shf",
        requires: &[],
        forms: &[
            form("t t t r", ".l.clamp", "b32", || {
                ternary(|a: u32, b: u32, n: u32| (pair(a, b) << n.min(32) >> 32) as u32)
            }),
            form("t t t r", ".l.wrap", "b32", || {
                ternary(|a: u32, b: u32, n: u32| (pair(a, b) << (n & 31) >> 32) as u32)
            }),
            form("t t t r", ".r.clamp", "b32", || {
                ternary(|a: u32, b: u32, n: u32| (pair(a, b) >> n.min(32)) as u32)
            }),
            form("t t t r", ".r.wrap", "b32", || {
                ternary(|a: u32, b: u32, n: u32| (pair(a, b) >> (n & 31)) as u32)
            }),
        ],
    },
    Definition {
        name: "szext",
        requires: &["7.6 sm_70"],
        forms: &[
            form("t t r", ".clamp", "u32", || {
                binary(|a: u32, n: u32| extend_from(a, n, true, false))
            }),
            form("t t r", ".clamp", "s32", || {
                binary(|a: u32, n: u32| extend_from(a, n, true, true))
            }),
            form("t t r", ".wrap", "u32", || {
                binary(|a: u32, n: u32| extend_from(a, n, false, false))
            }),
            form("t t r", ".wrap", "s32", || {
                binary(|a: u32, n: u32| extend_from(a, n, false, true))
            }),
        ],
    },
];

/// Returns the 64 bits `b:a`, which `shf` shifts.
#[inline(always)]
fn pair(a: u32, b: u32) -> u64 {
    u64::from(b) << 32 | u64::from(a)
}

/// Returns the position of the highest bit that is not a sign, or all ones if there is none.
#[inline(always)]
fn highest_bit(leading_zeros: u32, width: u32) -> u32 {
    (width - 1).wrapping_sub(leading_zeros)
}

/// Returns the shift that moves the highest bit to the top, or all ones if there is none.
#[inline(always)]
fn shift_amount(leading_zeros: u32, width: u32) -> u32 {
    if leading_zeros == width {
        u32::MAX
    } else {
        leading_zeros
    }
}

#[inline(always)]
fn clamped_mask(position: u32, length: u32) -> u32 {
    let mask = if length >= 32 {
        u64::from(u32::MAX)
    } else {
        (1u64 << length) - 1
    };
    if position >= 32 {
        0
    } else {
        (mask << position) as u32
    }
}

#[inline(always)]
fn wrapped_mask(position: u32, length: u32) -> u32 {
    (((1u64 << (length & 31)) - 1) << (position & 31)) as u32
}
