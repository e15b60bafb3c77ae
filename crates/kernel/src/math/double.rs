//! Functions of `f64`, from the crate `libm`, and some that it lacks.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

use super::primitive::{fma_f64 as fma, round_ties_even_f64, sqrt_f64};

pub(super) use libm::{
    acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, cos, cosh, erf, erfc, exp, exp2, exp10,
    expm1 as exp_m1, hypot, lgamma, log as ln, log1p as ln_1p, log2, log10, pow as powf, sin, sinh,
    tan, tanh, tgamma,
};

#[inline(always)]
pub(super) fn sin_cos(x: f64) -> (f64, f64) {
    libm::sincos(x)
}

#[inline(always)]
pub(super) fn rsqrt(x: f64) -> f64 {
    1.0 / sqrt_f64(x)
}

/// The remainder of `x` modulo 1/2, and the quotient modulo 4.
#[inline(always)]
fn half_remainder(x: f64) -> (f64, u32) {
    let halves = round_ties_even_f64(x + x);
    let remainder = fma(halves, -0.5, x);
    // Numbers above 2⁵³ are even.
    let quadrant = if x.abs() < 9_007_199_254_740_992.0 {
        halves as i64 as u32
    } else {
        0
    };
    (remainder, quadrant)
}

fn quadrant_sin(remainder: f64, quadrant: u32) -> f64 {
    let angle = remainder * PI;
    let value = if quadrant & 1 == 0 {
        sin(angle)
    } else {
        cos(angle)
    };
    if quadrant & 2 == 0 { value } else { -value }
}

#[inline(always)]
pub(super) fn sin_pi(x: f64) -> f64 {
    let (remainder, quadrant) = half_remainder(x);
    quadrant_sin(remainder, quadrant)
}

#[inline(always)]
pub(super) fn cos_pi(x: f64) -> f64 {
    let (remainder, quadrant) = half_remainder(x);
    quadrant_sin(remainder, quadrant.wrapping_add(1))
}

#[inline(always)]
pub(super) fn normcdf(x: f64) -> f64 {
    // 1 / sqrt(2) in two parts: the relative error of erfc grows with the square of its argument.
    const LOW: f64 = -4.833_646_656_726_457e-17;
    let scaled = x * -FRAC_1_SQRT_2;
    let low = fma(x, -LOW, fma(x, -FRAC_1_SQRT_2, -scaled));
    let result = erfc(scaled);
    // The derivative of erfc(z) for large z is about -2z erfc(z).
    let correction = if scaled > 1.0 && scaled < 40.0 {
        2.0 * scaled * low * result
    } else {
        0.0
    };
    0.5 * (result - correction)
}
