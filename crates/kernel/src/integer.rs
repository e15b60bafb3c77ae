//! Integer instructions that `core` lacks.

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

/// Returns the bytes of `a` (0 to 3) and `b` (4 to 7) that the four lowest hexadecimal digits of `selector` number (`__byte_perm`).
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
