//! Integer operations on one lane that differ from the host's operators.

use super::lane::Lane;

/// An integer type of the simulated device.
pub(crate) trait Integer: Lane {
    /// Returns the quotient, or all ones if `other` is zero.
    fn quotient(self, other: Self) -> Self;
    /// Returns the remainder, or all ones if `other` is zero.
    fn remainder(self, other: Self) -> Self;
    /// Returns the upper half of the product.
    fn high_product(self, other: Self) -> Self;
    /// Shifts left. The result is zero if `count` is at least the width.
    fn shift_left(self, count: u32) -> Self;
    /// Shifts right. The result is zero or all sign bits if `count` is at least the width.
    fn shift_right(self, count: u32) -> Self;
    /// Returns the low half of `a * b + c`.
    fn multiply_add(self, b: Self, c: Self) -> Self;
    /// Returns the upper half of `a * b`, plus `c`.
    fn high_multiply_add(self, b: Self, c: Self) -> Self;
    /// Returns the low half of the product.
    fn low_product(self, other: Self) -> Self;
    /// Returns the absolute difference of two numbers, plus `c`.
    fn add_difference(self, other: Self, c: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty, $wide:ty, $beyond:expr);*) => {$(
        impl Integer for $ty {
            #[inline(always)]
            fn quotient(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn high_product(self, other: Self) -> Self {
                ((<$wide>::from(self) * <$wide>::from(other)) >> Self::BITS) as Self
            }
            #[inline(always)]
            fn shift_left(self, count: u32) -> Self {
                if count < Self::BITS { self << count } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, count: u32) -> Self {
                // The sign fills a signed shift, so a shift by the width less one suffices.
                let beyond: fn(Self) -> Self = $beyond;
                if count < Self::BITS { self >> count } else { beyond(self) }
            }
            #[inline(always)]
            fn multiply_add(self, b: Self, c: Self) -> Self {
                self.wrapping_mul(b).wrapping_add(c)
            }
            #[inline(always)]
            fn high_multiply_add(self, b: Self, c: Self) -> Self {
                self.high_product(b).wrapping_add(c)
            }
            #[inline(always)]
            fn low_product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn add_difference(self, other: Self, c: Self) -> Self {
                (self.abs_diff(other) as Self).wrapping_add(c)
            }
        }
    )*};
}

integers!(
    u16, u32, |_| 0;
    u32, u64, |_| 0;
    u64, u128, |_| 0;
    i16, i32, |a| a >> 15;
    i32, i64, |a| a >> 31;
    i64, i128, |a| a >> 63
);

/// Applies an operation to the lower and the upper halves.
#[inline(always)]
pub(crate) fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let low = f(a as u16, b as u16);
    let high = f((a >> 16) as u16, (b >> 16) as u16);
    u32::from(high) << 16 | u32::from(low)
}

/// Applies an operation on signed numbers to the lower and the upper halves.
#[inline(always)]
pub(crate) fn signed_halves(a: u32, b: u32, f: impl Fn(i16, i16) -> i16) -> u32 {
    halves(a, b, |a, b| {
        f(a.cast_signed(), b.cast_signed()).cast_unsigned()
    })
}

/// Inserts the low `length` bits of `a` into `b` at `position`.
#[inline(always)]
pub(crate) fn insert_bits(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    if position >= width {
        return b;
    }
    let mask = if length >= 64 {
        u64::MAX
    } else {
        (1u64 << length) - 1
    };
    let mask = mask << position;
    b & !mask | a << position & mask
}

/// Extracts `length` bits of `a` from `position`, sign-extended if `signed`.
#[inline(always)]
pub(crate) fn extract_bits(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    if length == 0 {
        return 0;
    }
    // The sign is that of the highest bit that exists.
    let top = position.saturating_add(length - 1).min(width - 1);
    let sign = if signed && a >> top & 1 == 1 {
        u64::MAX
    } else {
        0
    };
    let field = if position >= width { 0 } else { a >> position };
    let field_length = length.min(width.saturating_sub(position));
    if field_length >= 64 {
        return field;
    }
    let mask = (1u64 << field_length) - 1;
    field & mask | sign & !mask
}

/// Computes `lop3`: for each bit, the entry of a truth table of three inputs.
#[inline(always)]
pub(crate) fn table_logic(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..8u32)
        .filter(|&row| table >> row & 1 == 1)
        .fold(0, |result, row| {
            let a = if row & 4 == 0 { !a } else { a };
            let b = if row & 2 == 0 { !b } else { b };
            let c = if row & 1 == 0 { !c } else { c };
            result | a & b & c
        })
}

/// Computes `prmt` in its default mode: each selector nibble selects a byte of `b:a`, or its sign.
#[inline(always)]
pub(crate) fn permute_bytes(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |result, index| {
        let choice = selector >> (4 * index) & 0xf;
        let byte = (bytes >> (8 * (choice & 7)) & 0xff) as u32;
        let byte = match (choice & 8 != 0, byte & 0x80 != 0) {
            (false, _) => byte,
            (true, true) => 0xff,
            (true, false) => 0,
        };
        result | byte << (8 * index)
    })
}

/// The modes of `prmt` in which the low two bits of the selector select all bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permutation {
    /// `.f4e`: forward 4 extract.
    Forward,
    /// `.b4e`: backward 4 extract.
    Backward,
    /// `.rc8`: replicate 8.
    Byte,
    /// `.ecl`: edge clamp left.
    ClampLeft,
    /// `.ecr`: edge clamp right.
    ClampRight,
    /// `.rc16`: replicate 16.
    Half,
}

impl Permutation {
    /// Returns the selector of the default mode.
    #[inline(always)]
    pub(crate) fn selector(self, index: u32) -> u32 {
        let table: [u32; 4] = match self {
            Self::Forward => [0x3210, 0x4321, 0x5432, 0x6543],
            Self::Backward => [0x5670, 0x6701, 0x7012, 0x0123],
            Self::Byte => [0x0000, 0x1111, 0x2222, 0x3333],
            Self::ClampLeft => [0x3210, 0x3211, 0x3222, 0x3333],
            Self::ClampRight => [0x0000, 0x1110, 0x2210, 0x3210],
            Self::Half => [0x1010, 0x3232, 0x1010, 0x3232],
        };
        table[(index & 3) as usize]
    }
}

/// Computes `fns`: the position of the `offset`-th set bit from `base`, upward or downward; all
/// ones if none exists.
#[inline(always)]
pub(crate) fn find_nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if offset == i32::MIN {
        // Hardware negates the offset, and i32::MIN is its own negation.
        return 0;
    }
    let step = offset.signum();
    let mut position = i64::from(base);
    let mut remaining = offset.unsigned_abs().saturating_sub(1);
    while (0..32).contains(&position) {
        let is_set = mask >> position & 1 == 1;
        if is_set && remaining == 0 {
            return position as u32;
        }
        if step == 0 {
            break;
        }
        remaining -= u32::from(is_set);
        position += i64::from(step);
    }
    u32::MAX
}

/// Computes `szext`: keeps the bits below `position`, and fills the others with zeros or the sign.
#[inline(always)]
pub(crate) fn extend_from(a: u32, position: u32, clamp: bool, signed: bool) -> u32 {
    let count = position & 31;
    if clamp && position >= 32 {
        return a;
    }
    let mask = u32::MAX << count;
    let negative = signed && count != 0 && a >> (count - 1) & 1 == 1;
    a & !mask | if negative { mask } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_zero_gives_all_ones_and_overflow_wraps() {
        assert_eq!(7u32.quotient(0), u32::MAX);
        assert_eq!(7i64.quotient(0), -1);
        assert_eq!(7u16.remainder(0), u16::MAX);
        assert_eq!(i32::MIN.quotient(-1), i32::MIN);
        assert_eq!(i32::MIN.remainder(-1), 0);
    }

    #[test]
    fn shifts_past_the_width_clamp() {
        assert_eq!(1u32.shift_left(32), 0);
        assert_eq!(1u64.shift_left(u32::MAX), 0);
        assert_eq!((-8i32).shift_right(99), -1);
        assert_eq!(0x8000u16.shift_right(16), 0);
        assert_eq!((-8i16).shift_right(2), -2);
    }

    #[test]
    fn high_products_are_exact_at_the_extremes() {
        assert_eq!(u64::MAX.high_product(u64::MAX), u64::MAX - 1);
        assert_eq!(i64::MIN.high_product(i64::MIN), 1 << 62);
        assert_eq!(i16::MIN.high_product(2), -1);
    }

    #[test]
    fn bit_fields_end_at_the_width() {
        assert_eq!(insert_bits(0xff, 0, 28, 8, 32) as u32, 0xf000_0000);
        assert_eq!(insert_bits(1, 5, 40, 3, 32), 5);
        assert_eq!(extract_bits(0xf000_0000, 28, 8, 32, true), u64::MAX);
        assert_eq!(extract_bits(0xf000_0000, 28, 8, 32, false), 0xf);
        assert_eq!(extract_bits(0x8000_0000, 40, 4, 32, true), u64::MAX);
        assert_eq!(extract_bits(5, 0, 0, 32, true), 0);
    }

    #[test]
    fn tables_and_permutations_follow_their_selectors() {
        assert_eq!(table_logic(0xf0, 0xcc, 0xaa, 0x80), 0x80);
        assert_eq!(
            table_logic(0xf0f0, 0xcccc, 0xaaaa, 0x96),
            0xf0f0 ^ 0xcccc ^ 0xaaaa
        );
        assert_eq!(permute_bytes(0x8081_8283, 0x0405_0607, 0x0123), 0x8382_8180);
        assert_eq!(permute_bytes(0x0000_0080, 0, 0x0008), 0x8080_80ff);
    }

    #[test]
    fn nth_set_bit_is_counted_in_either_direction() {
        assert_eq!(find_nth_set(0b1011_0100, 2, 1), 2);
        assert_eq!(find_nth_set(0b1011_0100, 3, 2), 5);
        assert_eq!(find_nth_set(0b1011_0100, 7, -2), 5);
        assert_eq!(find_nth_set(0b1011_0100, 3, 0), u32::MAX);
        assert_eq!(find_nth_set(0b1011_0100, 4, 0), 4);
        assert_eq!(find_nth_set(u32::MAX, 40, 1), u32::MAX);
        assert_eq!(find_nth_set(1, 0, i32::MIN), 0);
    }

    #[test]
    fn extension_position_wraps_or_clamps() {
        assert_eq!(extend_from(0xff, 4, true, true), u32::MAX);
        assert_eq!(extend_from(0xf7, 4, true, true), 7);
        assert_eq!(extend_from(0xff, 4, true, false), 0xf);
        assert_eq!(extend_from(0xff, 36, false, false), 0xf);
        assert_eq!(extend_from(0xff, 36, true, true), 0xff);
        assert_eq!(extend_from(0xff, 0, true, true), 0);
    }
}
