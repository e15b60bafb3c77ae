//! Functions of floating-point numbers that `core` lacks.

use core::f32::consts::{LN_2, LOG2_E};

use crate::intrinsics as device;
use crate::thread::sealed;

/// Functions of `f32` and `f64`. Unless stated otherwise they are correctly rounded.
///
/// The functions of `f32` do not use `f64`. On the host, the standard library's methods of the same name are used. The trait is sealed.
pub trait Float: sealed::Sealed + Copy {
    /// Returns the square root.
    #[must_use]
    fn sqrt(self) -> Self;

    /// Returns `self * a + b`, rounded once.
    #[doc(alias = "fma")]
    #[must_use]
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// Returns the largest integer that is not greater.
    #[must_use]
    fn floor(self) -> Self;

    /// Returns the smallest integer that is not less.
    #[must_use]
    fn ceil(self) -> Self;

    /// Returns the integer part.
    #[must_use]
    fn trunc(self) -> Self;

    /// Returns the nearest integer, the even one of two.
    #[doc(alias = "rint")]
    #[must_use]
    fn round_ties_even(self) -> Self;
}

macro_rules! float {
    ($ty:ty: $($name:ident = $intrinsic:ident($($argument:ident),*);)*) => {
        impl Float for $ty {
            $(
                #[inline(always)]
                fn $name(self $(, $argument: Self)*) -> Self {
                    // SAFETY: the result depends on the operands only.
                    unsafe { device::$intrinsic(self $(, $argument)*) }
                }
            )*
        }
    };
}

float! { f32:
    sqrt = sqrt_f32();
    mul_add = fma_f32(a, b);
    floor = floor_f32();
    ceil = ceil_f32();
    trunc = trunc_f32();
    round_ties_even = round_ties_even_f32();
}

float! { f64:
    sqrt = sqrt_f64();
    mul_add = fma_f64(a, b);
    floor = floor_f64();
    ceil = ceil_f64();
    trunc = trunc_f64();
    round_ties_even = round_ties_even_f64();
}

/// Functions of `f32` that are fast on the device, with the stated errors. The trait is sealed.
pub trait FastMath: sealed::Sealed + Copy {
    /// Returns the exponential function, with an error of 2 ulp, as CUDA's `expf`.
    #[doc(alias = "expf")]
    #[must_use]
    fn exp(self) -> Self;

    /// Returns the reciprocal of the square root, with a relative error of 2⁻²² (`rsqrt.approx`).
    #[doc(alias = "rsqrtf")]
    #[must_use]
    fn fast_rsqrt(self) -> Self;

    /// Returns the reciprocal, with an error of 1 ulp; subnormal numbers are zero (`rcp.approx.ftz`).
    #[doc(alias = "__frcp_rn")]
    #[must_use]
    fn fast_recip(self) -> Self;

    /// Returns 2 to the power of the number, with a relative error of 2⁻²² (`ex2.approx`).
    #[doc(alias = "exp2f")]
    #[must_use]
    fn fast_exp2(self) -> Self;

    /// Returns the exponential function from [`FastMath::fast_exp2`] (`__expf`).
    #[doc(alias = "__expf")]
    #[must_use]
    fn fast_exp(self) -> Self;

    /// Returns the binary logarithm, with an absolute error of 2⁻²² for numbers near 1 (`lg2.approx`).
    #[doc(alias = "__log2f")]
    #[must_use]
    fn fast_log2(self) -> Self;

    /// Returns the natural logarithm from [`FastMath::fast_log2`] (`__logf`).
    #[doc(alias = "__logf")]
    #[must_use]
    fn fast_ln(self) -> Self;

    /// Returns the sine, with an absolute error of 2⁻²⁰·⁵ from -π to π (`sin.approx`).
    #[doc(alias = "__sinf")]
    #[must_use]
    fn fast_sin(self) -> Self;

    /// Returns the cosine, with an absolute error of 2⁻²⁰·⁵ from -π to π (`cos.approx`).
    #[doc(alias = "__cosf")]
    #[must_use]
    fn fast_cos(self) -> Self;

    /// Returns the hyperbolic tangent, with a relative error of 2⁻¹¹ (`tanh.approx`). Needs compute capability 7.5.
    #[doc(alias = "__tanhf")]
    #[must_use]
    fn fast_tanh(self) -> Self;
}

impl FastMath for f32 {
    #[inline(always)]
    fn exp(self) -> Self {
        // 2^(x / ln 2), with an exact integer part. ln 2 is the sum of two constants, so that the remainder is exact enough.
        const LN_2_HIGH: f32 = LN_2;
        const LN_2_LOW: f32 = -1.904_654_3e-9;
        let scaled = self * LOG2_E;
        let whole = Float::round_ties_even(scaled.clamp(-126.0, 126.0));
        let remainder = Float::mul_add(whole, -LN_2_HIGH, self);
        let remainder = Float::mul_add(whole, -LN_2_LOW, remainder);
        let power = (remainder * LOG2_E).fast_exp2();
        let scale = f32::from_bits(((whole as i32 + 127) as u32) << 23);
        if scaled < -150.0 {
            0.0
        } else if scaled > 128.5 {
            f32::INFINITY
        } else {
            power * scale
        }
    }

    #[inline(always)]
    fn fast_rsqrt(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::rsqrt_approx_f32(self) }
    }

    #[inline(always)]
    fn fast_recip(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::rcp_approx_f32(self) }
    }

    #[inline(always)]
    fn fast_exp2(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::exp2_approx_f32(self) }
    }

    #[inline(always)]
    fn fast_exp(self) -> Self {
        (self * LOG2_E).fast_exp2()
    }

    #[inline(always)]
    fn fast_log2(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::log2_approx_f32(self) }
    }

    #[inline(always)]
    fn fast_ln(self) -> Self {
        self.fast_log2() * LN_2
    }

    #[inline(always)]
    fn fast_sin(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::sin_approx_f32(self) }
    }

    #[inline(always)]
    fn fast_cos(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::cos_approx_f32(self) }
    }

    #[inline(always)]
    fn fast_tanh(self) -> Self {
        // SAFETY: the result depends on the operand only.
        unsafe { device::tanh_approx_f32(self) }
    }
}
