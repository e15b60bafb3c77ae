//! Arithmetic with a rounding mode.

use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::thread::sealed;

/// A rounding mode of IEEE 754.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rounding {
    /// To the nearest number, the even one of two (`.rn`): the mode of Rust's operators.
    Nearest,
    /// Toward zero (`.rz`).
    TowardZero,
    /// Toward negative infinity (`.rm`).
    Down,
    /// Toward positive infinity (`.rp`).
    Up,
}

/// Arithmetic of `f32` and `f64` with a rounding mode (`__fadd_rd`, `__dmul_ru`, …). With a
/// constant mode, each is one instruction, except divisions and roots. On the device only. The
/// trait is sealed.
pub trait Rounded: sealed::Sealed + Copy {
    /// Returns the sum.
    #[doc(alias = "__fadd_rd")]
    #[must_use]
    fn add_rounded(self, other: Self, mode: Rounding) -> Self;

    /// Returns the product.
    #[doc(alias = "__fmul_rd")]
    #[must_use]
    fn mul_rounded(self, other: Self, mode: Rounding) -> Self;

    /// Returns `self * a + b`, rounded once.
    #[doc(alias = "__fmaf_rd")]
    #[must_use]
    fn mul_add_rounded(self, a: Self, b: Self, mode: Rounding) -> Self;

    /// Returns the quotient.
    #[doc(alias = "__fdiv_rd")]
    #[must_use]
    fn div_rounded(self, divisor: Self, mode: Rounding) -> Self;

    /// Returns the square root.
    #[doc(alias = "__fsqrt_rd")]
    #[must_use]
    fn sqrt_rounded(self, mode: Rounding) -> Self;
}

intrinsics! {
    add_nearest_f32 = "curium.asm|add.rn.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    add_toward_zero_f32 = "curium.asm|add.rz.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    add_down_f32 = "curium.asm|add.rm.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    add_up_f32 = "curium.asm|add.rp.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    mul_nearest_f32 = "curium.asm|mul.rn.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    mul_toward_zero_f32 = "curium.asm|mul.rz.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    mul_down_f32 = "curium.asm|mul.rm.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    mul_up_f32 = "curium.asm|mul.rp.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    fma_nearest_f32 = "curium.asm|fma.rn.f32 $0, $1, $2, $3;|=f,f,f,f|pure"(a: f32, b: f32, c: f32) -> f32;
    fma_toward_zero_f32 = "curium.asm|fma.rz.f32 $0, $1, $2, $3;|=f,f,f,f|pure"(a: f32, b: f32, c: f32) -> f32;
    fma_down_f32 = "curium.asm|fma.rm.f32 $0, $1, $2, $3;|=f,f,f,f|pure"(a: f32, b: f32, c: f32) -> f32;
    fma_up_f32 = "curium.asm|fma.rp.f32 $0, $1, $2, $3;|=f,f,f,f|pure"(a: f32, b: f32, c: f32) -> f32;
    div_nearest_f32 = "curium.asm|div.rn.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    div_toward_zero_f32 = "curium.asm|div.rz.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    div_down_f32 = "curium.asm|div.rm.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    div_up_f32 = "curium.asm|div.rp.f32 $0, $1, $2;|=f,f,f|pure"(a: f32, b: f32) -> f32;
    sqrt_nearest_f32 = "curium.asm|sqrt.rn.f32 $0, $1;|=f,f|pure"(a: f32) -> f32;
    sqrt_toward_zero_f32 = "curium.asm|sqrt.rz.f32 $0, $1;|=f,f|pure"(a: f32) -> f32;
    sqrt_down_f32 = "curium.asm|sqrt.rm.f32 $0, $1;|=f,f|pure"(a: f32) -> f32;
    sqrt_up_f32 = "curium.asm|sqrt.rp.f32 $0, $1;|=f,f|pure"(a: f32) -> f32;
    add_nearest_f64 = "curium.asm|add.rn.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    add_toward_zero_f64 = "curium.asm|add.rz.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    add_down_f64 = "curium.asm|add.rm.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    add_up_f64 = "curium.asm|add.rp.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    mul_nearest_f64 = "curium.asm|mul.rn.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    mul_toward_zero_f64 = "curium.asm|mul.rz.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    mul_down_f64 = "curium.asm|mul.rm.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    mul_up_f64 = "curium.asm|mul.rp.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    fma_nearest_f64 = "curium.asm|fma.rn.f64 $0, $1, $2, $3;|=d,d,d,d|pure"(a: f64, b: f64, c: f64) -> f64;
    fma_toward_zero_f64 = "curium.asm|fma.rz.f64 $0, $1, $2, $3;|=d,d,d,d|pure"(a: f64, b: f64, c: f64) -> f64;
    fma_down_f64 = "curium.asm|fma.rm.f64 $0, $1, $2, $3;|=d,d,d,d|pure"(a: f64, b: f64, c: f64) -> f64;
    fma_up_f64 = "curium.asm|fma.rp.f64 $0, $1, $2, $3;|=d,d,d,d|pure"(a: f64, b: f64, c: f64) -> f64;
    div_nearest_f64 = "curium.asm|div.rn.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    div_toward_zero_f64 = "curium.asm|div.rz.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    div_down_f64 = "curium.asm|div.rm.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    div_up_f64 = "curium.asm|div.rp.f64 $0, $1, $2;|=d,d,d|pure"(a: f64, b: f64) -> f64;
    sqrt_nearest_f64 = "curium.asm|sqrt.rn.f64 $0, $1;|=d,d|pure"(a: f64) -> f64;
    sqrt_toward_zero_f64 = "curium.asm|sqrt.rz.f64 $0, $1;|=d,d|pure"(a: f64) -> f64;
    sqrt_down_f64 = "curium.asm|sqrt.rm.f64 $0, $1;|=d,d|pure"(a: f64) -> f64;
    sqrt_up_f64 = "curium.asm|sqrt.rp.f64 $0, $1;|=d,d|pure"(a: f64) -> f64;
}

macro_rules! rounded {
    ($ty:ty: $($name:ident($($operand:ident),*) = $nearest:ident $toward_zero:ident $down:ident $up:ident;)*) => {
        impl Rounded for $ty {
            $(
                #[inline(always)]
                fn $name(self $(, $operand: Self)*, mode: Rounding) -> Self {
                    match mode {
                        // SAFETY: the result depends on the operands only.
                        Rounding::Nearest => unsafe { $nearest(self $(, $operand)*) },
                        // SAFETY: the result depends on the operands only.
                        Rounding::TowardZero => unsafe { $toward_zero(self $(, $operand)*) },
                        // SAFETY: the result depends on the operands only.
                        Rounding::Down => unsafe { $down(self $(, $operand)*) },
                        // SAFETY: the result depends on the operands only.
                        Rounding::Up => unsafe { $up(self $(, $operand)*) },
                    }
                }
            )*
        }
    };
}

rounded! { f32:
    add_rounded(other) = add_nearest_f32 add_toward_zero_f32 add_down_f32 add_up_f32;
    mul_rounded(other) = mul_nearest_f32 mul_toward_zero_f32 mul_down_f32 mul_up_f32;
    mul_add_rounded(a, b) = fma_nearest_f32 fma_toward_zero_f32 fma_down_f32 fma_up_f32;
    div_rounded(divisor) = div_nearest_f32 div_toward_zero_f32 div_down_f32 div_up_f32;
    sqrt_rounded() = sqrt_nearest_f32 sqrt_toward_zero_f32 sqrt_down_f32 sqrt_up_f32;
}

rounded! { f64:
    add_rounded(other) = add_nearest_f64 add_toward_zero_f64 add_down_f64 add_up_f64;
    mul_rounded(other) = mul_nearest_f64 mul_toward_zero_f64 mul_down_f64 mul_up_f64;
    mul_add_rounded(a, b) = fma_nearest_f64 fma_toward_zero_f64 fma_down_f64 fma_up_f64;
    div_rounded(divisor) = div_nearest_f64 div_toward_zero_f64 div_down_f64 div_up_f64;
    sqrt_rounded() = sqrt_nearest_f64 sqrt_toward_zero_f64 sqrt_down_f64 sqrt_up_f64;
}
