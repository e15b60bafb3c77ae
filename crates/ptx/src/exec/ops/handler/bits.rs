//! Handlers that count, find, reverse, select and move bits.

use super::{binary, quaternary, ternary, unary};
use crate::exec::machine::op::Handler;
use crate::exec::values::integer::{
    self, Permutation, extend_from, extract_bits, find_nth_set, insert_bits, permute_bytes,
};
use crate::syntax::{Instruction, Keyword, Modifier, Opcode, ScalarType};

/// Returns the handler of an instruction on the bits of an integer.
pub(super) fn bits(instruction: &Instruction, scalar: ScalarType) -> Option<Handler> {
    use Opcode as O;
    let wide = scalar.bits() == 64;
    Some(match instruction.opcode {
        O::Brev if wide => unary(|a: u64| a.reverse_bits()),
        O::Brev => unary(|a: u32| a.reverse_bits()),
        O::Popc if wide => unary(|a: u64| a.count_ones()),
        O::Popc => unary(|a: u32| a.count_ones()),
        O::Clz if wide => unary(|a: u64| a.leading_zeros()),
        O::Clz => unary(|a: u32| a.leading_zeros()),
        O::Bfind => return find_bit(scalar, instruction.has_keyword(Keyword::Shiftamt)),
        // The 32-bit forms use the low byte of position and length.
        O::Bfe => match scalar {
            ScalarType::U32 => ternary(|a: u32, p: u32, n: u32| {
                extract_bits(u64::from(a), p & 0xff, n & 0xff, 32, false) as u32
            }),
            ScalarType::S32 => ternary(|a: u32, p: u32, n: u32| {
                extract_bits(u64::from(a), p & 0xff, n & 0xff, 32, true) as u32
            }),
            ScalarType::U64 => ternary(|a: u64, p: u32, n: u32| extract_bits(a, p, n, 64, false)),
            ScalarType::S64 => ternary(|a: u64, p: u32, n: u32| extract_bits(a, p, n, 64, true)),
            _ => return None,
        },
        O::Bfi if wide => quaternary(|a: u64, b: u64, p: u32, n: u32| insert_bits(a, b, p, n, 64)),
        O::Bfi => quaternary(|a: u32, b: u32, p: u32, n: u32| {
            insert_bits(u64::from(a), u64::from(b), p & 0xff, n & 0xff, 32) as u32
        }),
        O::Lop3 if !wide => table_logic(),
        O::Prmt => return permutation(instruction),
        O::Fns => ternary(|mask: u32, base: u32, offset: i32| find_nth_set(mask, base, offset)),
        O::Szext => match (instruction.has_keyword(Keyword::Clamp), scalar) {
            (true, ScalarType::U32) => binary(|a: u32, n: u32| extend_from(a, n, true, false)),
            (true, ScalarType::S32) => binary(|a: u32, n: u32| extend_from(a, n, true, true)),
            (false, ScalarType::U32) => binary(|a: u32, n: u32| extend_from(a, n, false, false)),
            (false, ScalarType::S32) => binary(|a: u32, n: u32| extend_from(a, n, false, true)),
            _ => return None,
        },
        O::Shf => funnel(
            instruction,
            instruction.has_keyword(Keyword::Wrap),
            instruction.has_keyword(Keyword::L),
        )?,
        O::Bmsk if instruction.has_keyword(Keyword::Clamp) => binary(|p: u32, n: u32| {
            let mask = if n >= 32 {
                u64::from(u32::MAX)
            } else {
                (1u64 << n) - 1
            };
            if p >= 32 { 0 } else { (mask << p) as u32 }
        }),
        O::Bmsk if instruction.has_keyword(Keyword::Wrap) => {
            binary(|p: u32, n: u32| (((1u64 << (n & 31)) - 1) << (p & 31)) as u32)
        }
        _ => return None,
    })
}

/// Returns the handler of `lop3`.
pub(crate) fn table_logic() -> Handler {
    quaternary(integer::table_logic)
}

fn permutation(instruction: &Instruction) -> Option<Handler> {
    macro_rules! fixed {
        ($permutation:ident) => {
            ternary(|a: u32, b: u32, index: u32| {
                permute_bytes(a, b, Permutation::$permutation.selector(index))
            })
        };
    }
    let form = instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Keyword(keyword) => Some(*keyword),
            _ => None,
        });
    Some(match form {
        None => ternary(permute_bytes),
        Some(Keyword::F4e) => fixed!(Forward),
        Some(Keyword::B4e) => fixed!(Backward),
        Some(Keyword::Rc8) => fixed!(Byte),
        Some(Keyword::Ecl) => fixed!(ClampLeft),
        Some(Keyword::Ecr) => fixed!(ClampRight),
        Some(Keyword::Rc16) => fixed!(Half),
        Some(_) => return None,
    })
}

fn find_bit(scalar: ScalarType, shift: bool) -> Option<Handler> {
    macro_rules! find {
        ($t:ty, $magnitude:expr) => {
            if shift {
                unary(|a: $t| {
                    let zeros = $magnitude(a).leading_zeros();
                    if zeros == <$t>::BITS { u32::MAX } else { zeros }
                })
            } else {
                unary(|a: $t| {
                    let zeros = $magnitude(a).leading_zeros();
                    (<$t>::BITS - 1).wrapping_sub(zeros)
                })
            }
        };
    }
    Some(match scalar {
        ScalarType::U32 => find!(u32, |a: u32| a),
        ScalarType::U64 => find!(u64, |a: u64| a),
        ScalarType::S32 => find!(i32, |a: i32| (a ^ (a >> 31)).cast_unsigned()),
        ScalarType::S64 => find!(i64, |a: i64| (a ^ (a >> 63)).cast_unsigned()),
        _ => return None,
    })
}

/// Returns the handler of `shf`, a shift of the 64 bits `b:a`.
fn funnel(instruction: &Instruction, wrap: bool, left: bool) -> Option<Handler> {
    #[inline(always)]
    fn pair(a: u32, b: u32) -> u64 {
        u64::from(b) << 32 | u64::from(a)
    }
    if instruction.types().next() != Some(ScalarType::B32) {
        return None;
    }
    Some(match (left, wrap) {
        (true, true) => ternary(|a: u32, b: u32, n: u32| (pair(a, b) << (n & 31) >> 32) as u32),
        (true, false) => ternary(|a: u32, b: u32, n: u32| (pair(a, b) << n.min(32) >> 32) as u32),
        (false, true) => ternary(|a: u32, b: u32, n: u32| (pair(a, b) >> (n & 31)) as u32),
        (false, false) => ternary(|a: u32, b: u32, n: u32| (pair(a, b) >> n.min(32)) as u32),
    })
}
