//! Numbers of 16 bits, and pairs of them.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::math::Rounding;
use crate::small_float::{Bfloat16, Binary16, NEAREST, OVERFLOW, TOWARD_ZERO, impl_plain_number};

intrinsics! {
    f16_from_f32 = "curium.asm|cvt.rn.f16.f32 $0, $1;|=h,f|pure"(x: f32) -> u16;
    f16_from_f32_toward_zero = "curium.asm|cvt.rz.f16.f32 $0, $1;|=h,f|pure"(x: f32) -> u16;
    f16_to_f32 = "curium.asm|cvt.f32.f16 $0, $1;|=f,h|pure"(x: u16) -> f32;
    bf16_from_f32 = "curium.asm|cvt.rn.bf16.f32 $0, $1;|=h,f|pure,sm_80"(x: f32) -> u16;
    bf16_from_f32_toward_zero = "curium.asm|cvt.rz.bf16.f32 $0, $1;|=h,f|pure,sm_80"(x: f32) -> u16;
    f16x2_from_f32 = "curium.asm|cvt.rn.f16x2.f32 $0, $2, $1;|=r,f,f|pure,sm_80"(low: f32, high: f32) -> u32;
    f16x2_from_f32_toward_zero = "curium.asm|cvt.rz.f16x2.f32 $0, $2, $1;|=r,f,f|pure,sm_80"(low: f32, high: f32) -> u32;
    bf16x2_from_f32 = "curium.asm|cvt.rn.bf16x2.f32 $0, $2, $1;|=r,f,f|pure,sm_80"(low: f32, high: f32) -> u32;
    bf16x2_from_f32_toward_zero = "curium.asm|cvt.rz.bf16x2.f32 $0, $2, $1;|=r,f,f|pure,sm_80"(low: f32, high: f32) -> u32;

    f16x2_add = "curium.asm|add.rn.f16x2 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    f16x2_sub = "curium.asm|sub.rn.f16x2 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    f16x2_mul = "curium.asm|mul.rn.f16x2 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    f16x2_fma = "curium.asm|fma.rn.f16x2 $0, $1, $2, $3;|=r,r,r,r|pure"(a: u32, b: u32, c: u32) -> u32;
    f16x2_fma_relu = "curium.asm|fma.rn.relu.f16x2 $0, $1, $2, $3;|=r,r,r,r|pure,sm_80"(a: u32, b: u32, c: u32) -> u32;
    f16x2_min = "curium.asm|min.f16x2 $0, $1, $2;|=r,r,r|pure,sm_80"(a: u32, b: u32) -> u32;
    f16x2_max = "curium.asm|max.f16x2 $0, $1, $2;|=r,r,r|pure,sm_80"(a: u32, b: u32) -> u32;
    f16x2_less = "curium.asm|set.lt.f16x2.f16x2 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    f16x2_equal = "curium.asm|set.eq.f16x2.f16x2 $0, $1, $2;|=r,r,r|pure"(a: u32, b: u32) -> u32;
    f16x2_exp2 = "curium.asm|ex2.approx.f16x2 $0, $1;|=r,r|pure,sm_75"(x: u32) -> u32;
    f16x2_tanh = "curium.asm|tanh.approx.f16x2 $0, $1;|=r,r|pure,sm_75"(x: u32) -> u32;

    bf16x2_fma = "curium.asm|fma.rn.bf16x2 $0, $1, $2, $3;|=r,r,r,r|pure,sm_80"(a: u32, b: u32, c: u32) -> u32;
    bf16x2_fma_relu = "curium.asm|fma.rn.relu.bf16x2 $0, $1, $2, $3;|=r,r,r,r|pure,sm_80"(a: u32, b: u32, c: u32) -> u32;
    bf16x2_min = "curium.asm|min.bf16x2 $0, $1, $2;|=r,r,r|pure,sm_80"(a: u32, b: u32) -> u32;
    bf16x2_max = "curium.asm|max.bf16x2 $0, $1, $2;|=r,r,r|pure,sm_80"(a: u32, b: u32) -> u32;
    bf16x2_exp2 = "curium.asm|ex2.approx.ftz.bf16x2 $0, $1;|=r,r|pure,sm_90"(x: u32) -> u32;
    bf16x2_tanh = "curium.asm|tanh.approx.bf16x2 $0, $1;|=r,r|pure,sm_90"(x: u32) -> u32;
}

/// Calls an instruction on the device, or evaluates an expression on the host.
macro_rules! device_or_host {
    ($intrinsic:ident($($argument:expr),*), $host:expr) => {{
        #[cfg(target_arch = "nvptx64")]
        {
            // SAFETY: the result depends on the operands only.
            unsafe { $intrinsic($($argument),*) }
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            $host
        }
    }};
}

macro_rules! half {
    ($(#[$attribute:meta])* $name:ident, $(#[$pair_attribute:meta])* $pair:ident, $format:ident, $nearest:ident, $toward_zero:ident, |$bits:ident| $widen:expr, $pair_nearest:ident, $pair_toward_zero:ident) => {
        $(#[$attribute])*
        ///
        /// It is a type of elements and of conversions. Arithmetic is that of pairs, or of `f32`.
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u16);

        $(#[$pair_attribute])*
        ///
        /// Its arithmetic is for the device only; conversions work on the host as well. The bits
        /// are an operand of [`Warp::mma_f16`](crate::Warp::mma_f16) or
        /// [`Warp::mma_bf16`](crate::Warp::mma_bf16).
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $pair(u32);

        impl_plain_number!($name(u16), $pair(u32));

        impl $name {
            /// Rounds to the nearest number. Numbers that are too large become infinite.
            #[inline(always)]
            #[must_use]
            pub fn from_f32(number: f32) -> Self {
                Self(device_or_host!($nearest(number), $format::from_f32::<OVERFLOW, NEAREST>(number) as u16))
            }

            /// Rounds toward zero. Numbers that are too large become the largest.
            #[inline(always)]
            #[must_use]
            pub fn from_f32_toward_zero(number: f32) -> Self {
                Self(device_or_host!($toward_zero(number), $format::from_f32::<OVERFLOW, TOWARD_ZERO>(number) as u16))
            }

            /// Converts the number. Exact.
            #[inline(always)]
            #[must_use]
            pub fn to_f32(self) -> f32 {
                let $bits = self.0;
                $widen
            }
        }

        impl PartialEq for $name {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(formatter)
            }
        }

        impl $pair {
            /// Rounds two numbers to the nearest ones. Needs compute capability 8.0.
            #[inline(always)]
            #[must_use]
            pub fn new(low: f32, high: f32) -> Self {
                Self(device_or_host!(
                    $pair_nearest(low, high),
                    $format::from_f32::<OVERFLOW, NEAREST>(low) | $format::from_f32::<OVERFLOW, NEAREST>(high) << 16
                ))
            }

            /// Rounds two numbers: to the nearest ones, or toward zero. Needs compute capability
            /// 8.0.
            ///
            /// # Panics
            ///
            /// For the other rounding modes, which the instruction lacks.
            #[inline(always)]
            #[must_use]
            pub fn new_rounded(low: f32, high: f32, mode: Rounding) -> Self {
                match mode {
                    Rounding::Nearest => Self::new(low, high),
                    Rounding::TowardZero => Self(device_or_host!(
                        $pair_toward_zero(low, high),
                        $format::from_f32::<OVERFLOW, TOWARD_ZERO>(low) | $format::from_f32::<OVERFLOW, TOWARD_ZERO>(high) << 16
                    )),
                    _ => panic!("a pair is rounded to nearest or toward zero"),
                }
            }

            /// Creates a pair with the same number twice.
            #[inline(always)]
            #[must_use]
            pub fn splat(number: f32) -> Self {
                Self::new(number, number)
            }

            /// Creates a pair.
            #[inline(always)]
            #[must_use]
            pub const fn from_halves(low: $name, high: $name) -> Self {
                Self(low.0 as u32 | (high.0 as u32) << 16)
            }

            /// Returns the two numbers.
            #[inline(always)]
            #[must_use]
            pub const fn to_halves(self) -> [$name; 2] {
                [$name(self.0 as u16), $name((self.0 >> 16) as u16)]
            }

            /// Returns the first number.
            #[inline(always)]
            #[must_use]
            pub fn low(self) -> f32 {
                self.to_halves()[0].to_f32()
            }

            /// Returns the second number.
            #[inline(always)]
            #[must_use]
            pub fn high(self) -> f32 {
                self.to_halves()[1].to_f32()
            }

            /// Converts both numbers. Exact.
            #[inline(always)]
            #[must_use]
            pub fn to_f32s(self) -> [f32; 2] {
                [self.low(), self.high()]
            }

            /// Returns the absolute values.
            #[inline(always)]
            #[must_use]
            pub const fn abs(self) -> Self {
                Self(self.0 & 0x7fff_7fff)
            }

            /// Exchanges the two numbers.
            #[inline(always)]
            #[must_use]
            pub const fn swap(self) -> Self {
                Self(self.0.rotate_left(16))
            }
        }

        impl Neg for $pair {
            type Output = Self;

            #[inline(always)]
            fn neg(self) -> Self {
                Self(self.0 ^ 0x8000_8000)
            }
        }

        impl AddAssign for $pair {
            #[inline(always)]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl SubAssign for $pair {
            #[inline(always)]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl MulAssign for $pair {
            #[inline(always)]
            fn mul_assign(&mut self, other: Self) {
                *self = *self * other;
            }
        }
    };
}

half! {
    /// A number of IEEE binary16 (CUDA's `__half`).
    #[doc(alias = "__half")]
    F16,
    /// Two numbers of IEEE binary16 (CUDA's `__half2`).
    #[doc(alias = "__half2")]
    F16x2, Binary16, f16_from_f32, f16_from_f32_toward_zero,
    |bits| device_or_host!(f16_to_f32(bits), Binary16::to_f32(u32::from(bits))), f16x2_from_f32, f16x2_from_f32_toward_zero
}

half! {
    /// A number of bfloat16 (CUDA's `__nv_bfloat16`). Rounding to it needs compute capability 8.0.
    #[doc(alias = "__nv_bfloat16")]
    Bf16,
    /// Two numbers of bfloat16 (CUDA's `__nv_bfloat162`). Needs compute capability 8.0.
    #[doc(alias = "__nv_bfloat162")]
    Bf16x2, Bfloat16, bf16_from_f32, bf16_from_f32_toward_zero,
    |bits| Bfloat16::to_f32(u32::from(bits)), bf16x2_from_f32, bf16x2_from_f32_toward_zero
}

/// Implements methods that are one instruction.
macro_rules! instructions {
    ($pair:ident: $($(#[$attribute:meta])* $name:ident($($argument:ident),*) = $intrinsic:ident;)*) => {
        impl $pair {
            $(
                $(#[$attribute])*
                #[inline(always)]
                #[must_use]
                pub fn $name(self $(, $argument: Self)*) -> Self {
                    // SAFETY: the result depends on the operands only.
                    Self(unsafe { $intrinsic(self.0 $(, $argument.0)*) })
                }
            )*
        }
    };
}

instructions! { F16x2:
    /// Returns `self * a + b`, rounded once (`fma.rn.f16x2`).
    #[doc(alias = "__hfma2")]
    mul_add(a, b) = f16x2_fma;
    /// Returns `self * a + b`, rounded once, or 0 if that is negative (`fma.rn.relu.f16x2`). Needs
    /// compute capability 8.0.
    #[doc(alias = "__hfma2_relu")]
    mul_add_relu(a, b) = f16x2_fma_relu;
    /// Returns the smaller numbers, and those that are not NaN. Needs compute capability 8.0.
    #[doc(alias = "__hmin2")]
    min(other) = f16x2_min;
    /// Returns the larger numbers, and those that are not NaN. Needs compute capability 8.0.
    #[doc(alias = "__hmax2")]
    max(other) = f16x2_max;
    /// Returns 1 where the number is less, and otherwise 0.
    #[doc(alias = "__hlt2")]
    less(other) = f16x2_less;
    /// Returns 1 where the numbers are equal, and otherwise 0.
    #[doc(alias = "__heq2")]
    equal(other) = f16x2_equal;
    /// Returns 2 to the power of the numbers, with a relative error of 2⁻⁹·⁹ (`ex2.approx.f16x2`).
    /// Needs compute capability 7.5.
    #[doc(alias = "h2exp2")]
    fast_exp2() = f16x2_exp2;
    /// Returns the hyperbolic tangents, with an absolute error of 2⁻¹⁰·⁹⁸⁷ (`tanh.approx.f16x2`).
    /// Needs compute capability 7.5.
    #[doc(alias = "h2tanh_approx")]
    fast_tanh() = f16x2_tanh;
}

instructions! { Bf16x2:
    /// Returns `self * a + b`, rounded once (`fma.rn.bf16x2`).
    #[doc(alias = "__hfma2")]
    mul_add(a, b) = bf16x2_fma;
    /// Returns `self * a + b`, rounded once, or 0 if that is negative (`fma.rn.relu.bf16x2`).
    #[doc(alias = "__hfma2_relu")]
    mul_add_relu(a, b) = bf16x2_fma_relu;
    /// Returns the smaller numbers, and those that are not NaN.
    #[doc(alias = "__hmin2")]
    min(other) = bf16x2_min;
    /// Returns the larger numbers, and those that are not NaN.
    #[doc(alias = "__hmax2")]
    max(other) = bf16x2_max;
    /// Returns 2 to the power of the numbers, with a relative error of 2⁻⁷; subnormal numbers are
    /// zero (`ex2.approx.ftz.bf16x2`). Needs compute capability 9.0.
    #[doc(alias = "h2exp2")]
    fast_exp2() = bf16x2_exp2;
    /// Returns the hyperbolic tangents, with an absolute error of 2⁻⁸ (`tanh.approx.bf16x2`). Needs
    /// compute capability 9.0.
    #[doc(alias = "h2tanh_approx")]
    fast_tanh() = bf16x2_tanh;
}

macro_rules! operator {
    ($trait:ident $method:ident $pair:ident, |$a:ident, $b:ident| $result:expr) => {
        impl $trait for $pair {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let $a = self.0;
                let $b = other.0;
                // SAFETY: the result depends on the operands only.
                Self(unsafe { $result })
            }
        }
    };
}

operator!(Add add F16x2, |a, b| f16x2_add(a, b));
operator!(Sub sub F16x2, |a, b| f16x2_sub(a, b));
operator!(Mul mul F16x2, |a, b| f16x2_mul(a, b));

/// 1 and 1, and -1 and -1.
const BF16_ONES: u32 = 0x3f80_3f80;
const BF16_MINUS_ONES: u32 = 0xbf80_bf80;
/// -0 and -0, which is added to a product without a change.
const MINUS_ZEROS: u32 = 0x8000_8000;

// The instructions `add`, `sub` and `mul` need compute capability 9.0. These have the same results.
operator!(Add add Bf16x2, |a, b| bf16x2_fma(a, BF16_ONES, b));
operator!(Sub sub Bf16x2, |a, b| bf16x2_fma(b, BF16_MINUS_ONES, a));
operator!(Mul mul Bf16x2, |a, b| bf16x2_fma(a, b, MINUS_ZEROS));
