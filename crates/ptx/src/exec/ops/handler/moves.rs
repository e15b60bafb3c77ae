//! Handlers of moves between rows, of packing and unpacking, and of address arithmetic.

use super::{binary, compare, quaternary, ternary, unary};
use crate::exec::frame::InFile;
use crate::exec::machine::op::Handler;
use crate::exec::values::float::Real;
use crate::exec::values::lane::Lane;
use crate::exec::values::narrow::{Bfloat, Half};
use crate::syntax::ScalarType;

/// Returns a copy between rows of one width.
pub(crate) fn copy<R: InFile + Lane<Raw = R>>() -> Handler {
    unary(|a: R| a)
}

/// Returns a copy between rows of 64 bits if `is_double`, and of 32 bits otherwise.
pub(crate) fn copy_handler(is_double: bool) -> Handler {
    if is_double {
        copy::<u64>()
    } else {
        copy::<u32>()
    }
}

/// Returns the extension of 32 bits to 64 by zeros.
pub(crate) fn zero_extend() -> Handler {
    unary(|a: u32| u64::from(a))
}

/// Returns the extension of 32 bits to 64 by the sign.
pub(crate) fn sign_extend() -> Handler {
    unary(|a: i32| i64::from(a))
}

/// Returns the truncation of 64 bits to the lower 32.
pub(crate) fn lower_word() -> Handler {
    unary(|a: u64| a as u32)
}

/// Returns the upper 32 of 64 bits.
pub(crate) fn upper_word() -> Handler {
    unary(|a: u64| (a >> 32) as u32)
}

/// Returns the lower 16 of 32 bits.
pub(crate) fn lower_half() -> Handler {
    unary(|a: u32| a & 0xffff)
}

/// Returns the upper 16 of 32 bits.
pub(crate) fn upper_half() -> Handler {
    unary(|a: u32| a >> 16)
}

/// Returns the sum of two 32-bit numbers, which wraps.
pub(crate) fn add_words() -> Handler {
    binary(|a: u32, b: u32| a.wrapping_add(b))
}

/// Returns the sum of two 64-bit numbers, which wraps.
pub(crate) fn add_doubles() -> Handler {
    binary(|a: u64, b: u64| a.wrapping_add(b))
}

/// Returns the handler that inserts a byte into 64 bits that are zero there:
/// `whole | byte << shift`.
pub(crate) fn insert_byte() -> Handler {
    ternary(|whole: u64, byte: u64, shift: u64| whole | byte << shift)
}

/// Returns the comparison of two words for inequality.
pub(crate) fn words_differ() -> Handler {
    compare(|a: u32, b: u32| a != b)
}

/// Returns the handler that packs two words into 64 bits, the lower first.
pub(crate) fn pack_words() -> Handler {
    binary(|low: u32, high: u32| u64::from(high) << 32 | u64::from(low))
}

/// Returns the handler that packs two halves into 32 bits, the lower first.
pub(crate) fn pack_halves() -> Handler {
    binary(|low: u16, high: u16| u32::from(high) << 16 | u32::from(low))
}

/// Returns the handler that packs two bytes into 16 bits, the lower first.
pub(crate) fn pack_two_bytes() -> Handler {
    binary(|a: u8, b: u8| u16::from_le_bytes([a, b]))
}

/// Returns the handler that packs four bytes into 32 bits, the lowest first.
pub(crate) fn pack_four_bytes() -> Handler {
    quaternary(|a: u8, b: u8, c: u8, e: u8| u32::from_le_bytes([a, b, c, e]))
}

/// Returns the handler that extracts `bits` bits from the position that its second operand holds.
pub(crate) fn unpack(is_double: bool, bits: u32) -> Option<Handler> {
    Some(match (is_double, bits) {
        (true, 32) => binary(|a: u64, shift: u32| (a >> shift) as u32),
        (true, 16) => binary(|a: u64, shift: u32| (a >> shift) as u16),
        (false, 16) => binary(|a: u32, shift: u32| (a >> shift) as u16),
        (false, 8) => binary(|a: u32, shift: u32| (a >> shift) as u8),
        _ => return None,
    })
}

/// Returns the handler that extracts a signed integer of `bits` bits from the position that its
/// second operand holds.
pub(crate) fn unpack_signed(is_double: bool, bits: u32) -> Option<Handler> {
    Some(match (is_double, bits) {
        (true, 16) => binary(|a: u64, shift: u32| (a >> shift) as i16),
        (false, 16) => binary(|a: u32, shift: u32| (a >> shift) as i16),
        (false, 8) => binary(|a: u32, shift: u32| (a >> shift) as i8),
        _ => return None,
    })
}

/// Returns the conversion of a 16-bit floating-point number to f32.
pub(crate) fn widen_half(scalar: ScalarType) -> Option<Handler> {
    Some(match scalar {
        ScalarType::F16 | ScalarType::F16x2 => unary(|a: Half| a.to_f64() as f32),
        ScalarType::Bf16 | ScalarType::Bf16x2 => unary(|a: Bfloat| a.to_f64() as f32),
        _ => return None,
    })
}
