//! Functions of floating-point numbers that `core` lacks.

mod double;
pub(crate) mod primitive;
mod rounding;
mod single;
#[cfg(test)]
mod tests;

use core::f32::consts::{LN_2, LOG2_E};

pub use self::rounding::{Rounded, Rounding};
use crate::thread::sealed;

/// Functions of `f32` and `f64`, under the names of `std`.
///
/// The first group is correctly rounded, as IEEE 754 requires. The others state their maximum error
/// in units in the last place (ulp), for `f32` and for `f64`; the unit tests measure it on the
/// host. [`FastMath`] has the fast forms.
///
/// The functions of `f32` do not use `f64`. On the host, the standard library's methods of the same
/// name are used; without `std`, these. The trait is sealed.
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

    /// Returns the nearest integer, the one away from zero of two.
    #[must_use]
    fn round(self) -> Self;

    /// Returns the nearest integer, the even one of two.
    #[doc(alias = "rint")]
    #[must_use]
    fn round_ties_even(self) -> Self;

    /// Returns the reciprocal of the square root: 2 ulp, 2 ulp.
    #[doc(alias = "rsqrtf")]
    #[must_use]
    fn rsqrt(self) -> Self;

    /// Returns the exponential function: 2 ulp (`f32`), 1 ulp (`f64`).
    #[doc(alias = "expf")]
    #[must_use]
    fn exp(self) -> Self;

    /// Returns 2 to the power of the number: 2 ulp, 1 ulp.
    #[doc(alias = "exp2f")]
    #[must_use]
    fn exp2(self) -> Self;

    /// Returns 10 to the power of the number: 2 ulp, 1 ulp.
    #[doc(alias = "exp10f")]
    #[must_use]
    fn exp10(self) -> Self;

    /// Returns `e^x - 1`, which is accurate near 0: 2 ulp, 1 ulp.
    #[doc(alias = "expm1f")]
    #[must_use]
    fn exp_m1(self) -> Self;

    /// Returns the natural logarithm: 1 ulp, 1 ulp.
    #[doc(alias = "logf")]
    #[must_use]
    fn ln(self) -> Self;

    /// Returns the binary logarithm: 1 ulp, 1 ulp.
    #[doc(alias = "log2f")]
    #[must_use]
    fn log2(self) -> Self;

    /// Returns the decimal logarithm: 2 ulp, 1 ulp.
    #[doc(alias = "log10f")]
    #[must_use]
    fn log10(self) -> Self;

    /// Returns `ln(1 + x)`, which is accurate near 0: 2 ulp, 1 ulp.
    #[doc(alias = "log1pf")]
    #[must_use]
    fn ln_1p(self) -> Self;

    /// Returns the sine, for all angles: 2 ulp, 1 ulp.
    #[doc(alias = "sinf")]
    #[must_use]
    fn sin(self) -> Self;

    /// Returns the cosine, for all angles: 2 ulp, 1 ulp.
    #[doc(alias = "cosf")]
    #[must_use]
    fn cos(self) -> Self;

    /// Returns the tangent, for all angles: 4 ulp, 1 ulp.
    #[doc(alias = "tanf")]
    #[must_use]
    fn tan(self) -> Self;

    /// Returns `sin(π x)`: 2 ulp, 2 ulp.
    #[doc(alias = "sinpif")]
    #[must_use]
    fn sin_pi(self) -> Self;

    /// Returns `cos(π x)`: 2 ulp, 2 ulp.
    #[doc(alias = "cospif")]
    #[must_use]
    fn cos_pi(self) -> Self;

    /// Returns the arcsine: 2 ulp, 1 ulp.
    #[doc(alias = "asinf")]
    #[must_use]
    fn asin(self) -> Self;

    /// Returns the arccosine: 2 ulp, 1 ulp.
    #[doc(alias = "acosf")]
    #[must_use]
    fn acos(self) -> Self;

    /// Returns the arctangent: 2 ulp, 1 ulp.
    #[doc(alias = "atanf")]
    #[must_use]
    fn atan(self) -> Self;

    /// Returns the hyperbolic sine: 3 ulp, 2 ulp.
    #[doc(alias = "sinhf")]
    #[must_use]
    fn sinh(self) -> Self;

    /// Returns the hyperbolic cosine: 3 ulp, 2 ulp.
    #[doc(alias = "coshf")]
    #[must_use]
    fn cosh(self) -> Self;

    /// Returns the hyperbolic tangent: 2 ulp, 2 ulp.
    #[doc(alias = "tanhf")]
    #[must_use]
    fn tanh(self) -> Self;

    /// Returns the inverse hyperbolic sine: 4 ulp, 3 ulp.
    #[doc(alias = "asinhf")]
    #[must_use]
    fn asinh(self) -> Self;

    /// Returns the inverse hyperbolic cosine: 4 ulp, 3 ulp.
    #[doc(alias = "acoshf")]
    #[must_use]
    fn acosh(self) -> Self;

    /// Returns the inverse hyperbolic tangent: 4 ulp, 3 ulp.
    #[doc(alias = "atanhf")]
    #[must_use]
    fn atanh(self) -> Self;

    /// Returns the cube root: 1 ulp, 1 ulp.
    #[doc(alias = "cbrtf")]
    #[must_use]
    fn cbrt(self) -> Self;

    /// Returns the error function: 2 ulp, 1 ulp.
    ///
    /// Code of the host with `std` calls it as `Float::erf(x)`, because `std` has an unstable
    /// method of this name.
    #[doc(alias = "erff")]
    #[must_use]
    fn erf(self) -> Self;

    /// Returns the complementary error function `1 - erf(x)`: 4 ulp, 2 ulp.
    ///
    /// Code of the host with `std` calls it as `Float::erfc(x)`, because `std` has an unstable
    /// method of this name.
    #[doc(alias = "erfcf")]
    #[must_use]
    fn erfc(self) -> Self;

    /// Returns the cumulative distribution function of the standard normal distribution: 5 ulp, 5
    /// ulp.
    #[doc(alias = "normcdff")]
    #[must_use]
    fn normcdf(self) -> Self;

    /// Returns the gamma function: 6 ulp, 10 ulp.
    #[doc(alias = "tgammaf")]
    #[must_use]
    fn tgamma(self) -> Self;

    /// Returns the logarithm of the absolute value of the gamma function: 6 ulp for positive
    /// numbers; for negative ones the absolute error is small, and not the relative error near
    /// zeros.
    #[doc(alias = "lgammaf")]
    #[must_use]
    fn lgamma(self) -> Self;

    /// Returns the sine and the cosine, with the errors of [`Float::sin`] and [`Float::cos`].
    #[doc(alias = "sincosf")]
    #[must_use]
    fn sin_cos(self) -> (Self, Self);

    /// Returns the angle of the point (`x`, `self`) from the x axis, from -π to π: 3 ulp, 1 ulp.
    #[doc(alias = "atan2f")]
    #[must_use]
    fn atan2(self, x: Self) -> Self;

    /// Returns the number to the power of `y`: 4 ulp, 1 ulp.
    #[doc(alias = "pow")]
    #[must_use]
    fn powf(self, y: Self) -> Self;

    /// Returns the number to an integer power, by repeated multiplication: each rounds once.
    #[must_use]
    fn powi(self, n: i32) -> Self;

    /// Returns the length of the vector (`self`, `y`) without overflow: 3 ulp, 1 ulp.
    #[doc(alias = "hypotf")]
    #[must_use]
    fn hypot(self, y: Self) -> Self;
}

macro_rules! float {
    ($ty:ty, $functions:ident, $rsqrt:path: $($name:ident = $primitive:ident($($argument:ident),*);)*) => {
        impl Float for $ty {
            $(
                #[inline(always)]
                fn $name(self $(, $argument: Self)*) -> Self {
                    primitive::$primitive(self $(, $argument)*)
                }
            )*

            #[inline(always)]
            fn rsqrt(self) -> Self {
                $rsqrt(self)
            }

            float! { @functions $functions:
                exp exp2 exp10 exp_m1 ln log2 log10 ln_1p sin cos tan sin_pi cos_pi asin acos atan sinh cosh tanh asinh acosh atanh cbrt erf erfc normcdf tgamma lgamma
            }

            #[inline(always)]
            fn sin_cos(self) -> (Self, Self) {
                $functions::sin_cos(self)
            }

            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                $functions::atan2(self, x)
            }

            #[inline(always)]
            fn powf(self, y: Self) -> Self {
                $functions::powf(self, y)
            }

            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                let mut power = 1.0;
                let mut factor = self;
                let mut exponent = n.unsigned_abs();
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        power *= factor;
                    }
                    factor *= factor;
                    exponent >>= 1;
                }
                if n < 0 { 1.0 / power } else { power }
            }

            #[inline(always)]
            fn hypot(self, y: Self) -> Self {
                $functions::hypot(self, y)
            }
        }
    };
    (@functions $functions:ident: $($name:ident)*) => {
        $(
            #[inline(always)]
            fn $name(self) -> Self {
                $functions::$name(self)
            }
        )*
    };
}

float! { f32, single, primitive::rsqrt_approx:
    sqrt = sqrt_f32();
    mul_add = fma_f32(a, b);
    floor = floor_f32();
    ceil = ceil_f32();
    trunc = trunc_f32();
    round = round_f32();
    round_ties_even = round_ties_even_f32();
}

float! { f64, double, double::rsqrt:
    sqrt = sqrt_f64();
    mul_add = fma_f64(a, b);
    floor = floor_f64();
    ceil = ceil_f64();
    trunc = trunc_f64();
    round = round_f64();
    round_ties_even = round_ties_even_f64();
}

/// Functions of `f32` that are fast on the device, with the stated errors. The trait is sealed.
pub trait FastMath: sealed::Sealed + Copy {
    /// Returns the reciprocal of the square root, with a relative error of 2⁻²² (`rsqrt.approx`).
    #[doc(alias = "rsqrtf")]
    #[must_use]
    fn fast_rsqrt(self) -> Self;

    /// Returns the reciprocal, with an error of 1 ulp; subnormal numbers are zero
    /// (`rcp.approx.ftz`).
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

    /// Returns the binary logarithm, with an absolute error of 2⁻²² for numbers near 1
    /// (`lg2.approx`).
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

    /// Returns the number to the power of `y`, from [`FastMath::fast_exp2`] and
    /// [`FastMath::fast_log2`] (`__powf`).
    #[doc(alias = "__powf")]
    #[must_use]
    fn fast_powf(self, y: Self) -> Self;

    /// Returns the quotient, from [`FastMath::fast_recip`]: 2 ulp, for divisors whose reciprocal is
    /// a normal number.
    #[doc(alias = "__fdividef")]
    #[must_use]
    fn fast_div(self, divisor: Self) -> Self;

    /// Returns the hyperbolic tangent, with a relative error of 2⁻¹¹ (`tanh.approx`). Needs compute
    /// capability 7.5.
    #[doc(alias = "__tanhf")]
    #[must_use]
    fn fast_tanh(self) -> Self;
}

impl FastMath for f32 {
    #[inline(always)]
    fn fast_rsqrt(self) -> Self {
        primitive::rsqrt_approx(self)
    }

    #[inline(always)]
    fn fast_recip(self) -> Self {
        primitive::rcp_approx(self)
    }

    #[inline(always)]
    fn fast_exp2(self) -> Self {
        primitive::exp2_approx(self)
    }

    #[inline(always)]
    fn fast_exp(self) -> Self {
        (self * LOG2_E).fast_exp2()
    }

    #[inline(always)]
    fn fast_log2(self) -> Self {
        primitive::log2_approx(self)
    }

    #[inline(always)]
    fn fast_ln(self) -> Self {
        self.fast_log2() * LN_2
    }

    #[inline(always)]
    fn fast_sin(self) -> Self {
        primitive::sin_approx(self)
    }

    #[inline(always)]
    fn fast_cos(self) -> Self {
        primitive::cos_approx(self)
    }

    #[inline(always)]
    fn fast_tanh(self) -> Self {
        primitive::tanh_approx(self)
    }

    #[inline(always)]
    fn fast_powf(self, y: Self) -> Self {
        (self.fast_log2() * y).fast_exp2()
    }

    #[inline(always)]
    fn fast_div(self, divisor: Self) -> Self {
        self * divisor.fast_recip()
    }
}
