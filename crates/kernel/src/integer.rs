//! Integer instructions that `core` lacks.
//!
//! These methods of `core` become single instructions: `count_ones` (`popc`), `leading_zeros`
//! (`clz`), `reverse_bits` (`brev`), `rotate_left` (`shf.l.wrap`), `min` and `max`.

use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::ptx;

/// Returns `c` plus the sum of the products of four unsigned bytes (`__dp4a`).
#[doc(alias = "__dp4a")]
#[inline(always)]
#[must_use]
pub fn dot4_u8(a: u32, b: u32, c: u32) -> u32 {
    let mut sum = 0_u32;
    // SAFETY: the result depends on the operands only.
    unsafe {
        ptx!("dp4a.u32.u32 {0}, {1}, {2}, {3};", out(r) sum, in(r) a, in(r) b, in(r) c, pure);
    };
    sum
}

/// Returns `c` plus the sum of the products of four signed bytes (`__dp4a`).
#[doc(alias = "__dp4a")]
#[inline(always)]
#[must_use]
pub fn dot4_i8(a: u32, b: u32, c: i32) -> i32 {
    let c = c.cast_unsigned();
    let mut sum = 0_u32;
    // SAFETY: the result depends on the operands only.
    unsafe {
        ptx!("dp4a.s32.s32 {0}, {1}, {2}, {3};", out(r) sum, in(r) a, in(r) b, in(r) c, pure);
    };
    sum.cast_signed()
}

/// Returns the bytes of `a` (0 to 3) and `b` (4 to 7) that the four lowest hexadecimal digits of
/// `selector` number (`__byte_perm`).
#[doc(alias = "__byte_perm")]
#[inline(always)]
#[must_use]
pub fn permute_bytes(a: u32, b: u32, selector: u32) -> u32 {
    let mut bytes = 0_u32;
    // SAFETY: the result depends on the operands only.
    unsafe {
        ptx!("prmt.b32 {0}, {1}, {2}, {3};", out(r) bytes, in(r) a, in(r) b, in(r) selector, pure);
    };
    bytes
}

intrinsics! {
    mul_high_u32 = "curium.asm|mul.hi.u32 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    mul_high_i32 = "curium.asm|mul.hi.s32 $0, $1, $2;|=r,r,r|pure"(a: i32, b: i32) -> i32;
    mul_high_u64 = "curium.asm|mul.hi.u64 $0, $1, $2;|=l,l,l|pure"(a: u64, b: u64) -> u64;
    mul_high_i64 = "curium.asm|mul.hi.s64 $0, $1, $2;|=l,l,l|pure"(a: i64, b: i64) -> i64;
    add_sat_i32 = "curium.asm|add.sat.s32 $0, $1, $2;|=r,r,r|pure"(a: i32, b: i32) -> i32;
    sub_sat_i32 = "curium.asm|sub.sat.s32 $0, $1, $2;|=r,r,r|pure"(a: i32, b: i32) -> i32;
    sad_u32 = "curium.asm|sad.u32 $0, $1, $2, $3;|=r,r,r,r|pure"(a: u32, b: u32, c: u32) -> u32;
    sad_i32 = "curium.asm|sad.s32 $0, $1, $2, $3;|=r,r,r,r|pure"(a: i32, b: i32, c: u32) -> u32;
    mul24_u32 = "curium.asm|mul24.lo.u32 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    mul24_i32 = "curium.asm|mul24.lo.s32 $0, $1, $2;|=r,r,r|pure"(a: i32, b: i32) -> i32;
    shf_left_clamp = "curium.asm|shf.l.clamp.b32 $0, $1, $2, $3;|=r,r,r,r|pure"(low: u32, high: u32, shift: u32) -> u32;
    shf_right_clamp = "curium.asm|shf.r.clamp.b32 $0, $1, $2, $3;|=r,r,r,r|pure"(low: u32, high: u32, shift: u32) -> u32;
    bfe_u32 = "curium.asm|bfe.u32 $0, $1, $2, $3;|=r,r,r,r|pure"(x: u32, start: u32, len: u32) -> u32;
    bfe_i32 = "curium.asm|bfe.s32 $0, $1, $2, $3;|=r,r,r,r|pure"(x: i32, start: u32, len: u32) -> i32;
    bfi_u32 = "curium.asm|bfi.b32 $0, $1, $2, $3, $4;|=r,r,r,r,r|pure"(field: u32, x: u32, start: u32, len: u32) -> u32;
    fns_u32 = "curium.asm|fns.b32 $0, $1, $2, $3;|=r,r,r,r|pure"(mask: u32, base: u32, offset: i32) -> u32;
}

/// Integers of 32 and 64 bits, with the high half of products. The trait is sealed.
pub trait MulHigh: crate::thread::sealed::Sealed + Copy {
    /// Returns the high half of the product (`mul.hi`).
    #[doc(alias = "__umulhi")]
    #[doc(alias = "__mulhi")]
    #[doc(alias = "__umul64hi")]
    #[must_use]
    fn mul_high(self, other: Self) -> Self;
}

macro_rules! mul_high {
    ($($ty:ty, $wide:ty, $intrinsic:ident;)*) => {
        $(
            impl MulHigh for $ty {
                #[inline(always)]
                fn mul_high(self, other: Self) -> Self {
                    #[cfg(target_arch = "nvptx64")]
                    {
                        // SAFETY: the result depends on the operands only.
                        unsafe { $intrinsic(self, other) }
                    }
                    #[cfg(not(target_arch = "nvptx64"))]
                    {
                        ((<$wide>::from(self) * <$wide>::from(other)) >> <$ty>::BITS) as $ty
                    }
                }
            }
        )*
    };
}

mul_high! {
    u32, u64, mul_high_u32;
    i32, i64, mul_high_i32;
    u64, u128, mul_high_u64;
    i64, i128, mul_high_i64;
}

/// Declares functions that are one instruction.
macro_rules! functions {
    ($($(#[$attribute:meta])* $name:ident($($argument:ident: $ty:ty),*) -> $result:ty = $intrinsic:ident;)*) => {
        $(
            $(#[$attribute])*
            #[inline(always)]
            #[must_use]
            pub fn $name($($argument: $ty),*) -> $result {
                // SAFETY: the result depends on the operands only.
                unsafe { $intrinsic($($argument),*) }
            }
        )*
    };
}

functions! {
    /// Returns the sum, limited to the numbers of the type, by one instruction (`add.sat.s32`).
    /// `saturating_add` of `core` takes several.
    add_saturating(a: i32, b: i32) -> i32 = add_sat_i32;
    /// Returns the difference, limited to the numbers of the type, by one instruction
    /// (`sub.sat.s32`). `saturating_sub` of `core` takes several.
    sub_saturating(a: i32, b: i32) -> i32 = sub_sat_i32;
    /// Returns `|a - b| + c` (`sad.u32`).
    #[doc(alias = "__usad")]
    sum_abs_diff_u32(a: u32, b: u32, c: u32) -> u32 = sad_u32;
    /// Returns `|a - b| + c` (`sad.s32`).
    #[doc(alias = "__sad")]
    sum_abs_diff_i32(a: i32, b: i32, c: u32) -> u32 = sad_i32;
    /// Returns the low 32 bits of the product of the low 24 bits of the numbers (`mul24.lo.u32`).
    /// On GPUs since 2010, an ordinary product is as fast.
    #[doc(alias = "__umul24")]
    mul24_low_u32(a: u32, b: u32) -> u32 = mul24_u32;
    /// Returns the low 32 bits of the product of the low 24 bits of the numbers (`mul24.lo.s32`).
    /// On GPUs since 2010, an ordinary product is as fast.
    #[doc(alias = "__mul24")]
    mul24_low_i32(a: i32, b: i32) -> i32 = mul24_i32;
    /// Returns the high 32 bits of `high:low`, shifted left by at most 32 bits (`shf.l.clamp`).
    #[doc(alias = "__funnelshift_lc")]
    funnel_shift_left(low: u32, high: u32, shift: u32) -> u32 = shf_left_clamp;
    /// Returns the low 32 bits of `high:low`, shifted right by at most 32 bits (`shf.r.clamp`).
    #[doc(alias = "__funnelshift_rc")]
    funnel_shift_right(low: u32, high: u32, shift: u32) -> u32 = shf_right_clamp;
    /// Returns `len` bits from the bit `start` on (`bfe.u32`). The two are numbers modulo 256.
    extract_bits_u32(x: u32, start: u32, len: u32) -> u32 = bfe_u32;
    /// Returns `len` bits from the bit `start` on, with the last one as the sign (`bfe.s32`). The
    /// two are numbers modulo 256.
    extract_bits_i32(x: i32, start: u32, len: u32) -> i32 = bfe_i32;
    /// Returns `x` with the low `len` bits of `field` in place of its bits from `start` on
    /// (`bfi.b32`). The two are numbers modulo 256.
    insert_bits(field: u32, x: u32, start: u32, len: u32) -> u32 = bfi_u32;
    /// Returns the position of the bit that is set and `offset` - 1 set bits above the bit `base`,
    /// or, for a negative offset, below it; `u32::MAX` if there is none (`fns.b32`).
    ///
    /// If the offset is 0, it is the position `base`, if that bit is set.
    #[doc(alias = "__fns")]
    find_nth_set(mask: u32, base: u32, offset: i32) -> u32 = fns_u32;
}

/// Returns the bits that a table of eight entries has for the bits of three words (`lop3.b32`):
/// `LUT` is the same function of `0xf0`, `0xcc` and `0xaa`, such as `(0xf0 & 0xcc) | 0xaa` for
/// `(a & b) | c`.
///
/// The compiler combines the operators of `core` to this instruction by itself.
#[doc(alias = "lop3")]
#[inline(always)]
#[must_use]
pub const fn logic3<const LUT: u8>(a: u32, b: u32, c: u32) -> u32 {
    let mut result = 0;
    let mut entry = 0;
    while entry < 8 {
        if LUT >> entry & 1 == 1 {
            let a = if entry & 4 != 0 { a } else { !a };
            let b = if entry & 2 != 0 { b } else { !b };
            let c = if entry & 1 != 0 { c } else { !c };
            result |= a & b & c;
        }
        entry += 1;
    }
    result
}

/// A divisor of many numbers, such as the width of an image: division by it is a product and a
/// shift.
///
/// The host creates it and passes it by value; CUDA C++ code uses `FastDivmod` of CUTLASS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct Divisor {
    divisor: u32,
    /// `2^(32 + shift) / divisor` rounded up, minus 2³².
    factor: u32,
    /// `log2(divisor)` rounded up.
    shift: u32,
}

// SAFETY: three numbers without padding.
unsafe impl crate::ByValue for Divisor {}

impl Divisor {
    /// Creates a divisor.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor != 0, "the divisor is 0");
        let shift = 32 - (divisor - 1).leading_zeros();
        // The factor is below 2³³, because 2^shift is below 2 · divisor.
        let factor = ((1_u128 << (32 + shift)) / divisor as u128 + 1 - (1 << 32)) as u32;
        Self {
            divisor,
            factor,
            shift,
        }
    }

    /// Returns the divisor.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.divisor
    }

    /// Returns the quotient, rounded down.
    #[inline(always)]
    #[must_use]
    pub const fn divide(self, number: u32) -> u32 {
        let product = (number as u64 * self.factor as u64) >> 32;
        ((product + number as u64) >> self.shift) as u32
    }

    /// Returns the quotient and the remainder.
    #[inline(always)]
    #[must_use]
    pub const fn divide_with_remainder(self, number: u32) -> (u32, u32) {
        let quotient = self.divide(number);
        (
            quotient,
            number.wrapping_sub(quotient.wrapping_mul(self.divisor)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors() {
        let numbers = [
            0,
            1,
            2,
            3,
            9,
            10,
            999,
            1 << 16,
            (1 << 31) - 1,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
        ];
        let divisors = (1..2000).chain(numbers.into_iter().filter(|divisor| *divisor > 0));
        for divisor in divisors {
            let fast = Divisor::new(divisor);
            for number in numbers {
                for number in [
                    number,
                    number / divisor * divisor,
                    (number / divisor * divisor).wrapping_sub(1),
                ] {
                    assert_eq!(
                        fast.divide_with_remainder(number),
                        (number / divisor, number % divisor),
                        "{number} / {divisor}"
                    );
                }
            }
        }
    }

    #[test]
    fn functions_of_three_words() {
        let [a, b, c] = [0x1234_5678, 0x9abc_def0, 0x0f1e_2d3c];
        assert_eq!(logic3::<{ (0xf0 & 0xcc) | 0xaa }>(a, b, c), (a & b) | c);
        assert_eq!(logic3::<{ 0xf0 ^ 0xcc ^ 0xaa }>(a, b, c), a ^ b ^ c);
        assert_eq!(0x8000_0000_u32.mul_high(6), 3);
        assert_eq!((-1_i64).mul_high(1), -1);
    }
}
