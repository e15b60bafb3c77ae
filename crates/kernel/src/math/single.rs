//! Functions of `f32`.
//!
//! None of them uses `f64`, which most GPUs compute at 1/64 of the rate. The polynomials are
//! minimax approximations of the relative error; a comment states the error of the rounded
//! coefficients. The unit tests measure the error of each function against `f64`.

#![allow(
    clippy::excessive_precision,
    reason = "the digits identify the constants of the sources"
)]

use core::f32::consts::{FRAC_PI_2, LN_2, LOG2_E, LOG10_E, PI};

use super::primitive::{
    exp2_approx, exp2_approx_ftz, fma_252_down, fma_f32 as fma, fma_saturated, log2_approx,
    rcp_approx, round_ties_even_f32, sqrt_f32 as sqrt, trunc_f32 as trunc,
};

/// The sign and the exponent of a number.
const EXPONENT: u32 = 0xff80_0000;

/// The last bit of a number near 1.5 · 2²³ is 1, so that adding this number rounds to an integer.
const ROUNDER: f32 = 12_582_912.0;

/// `LOG2_E_LOW` is the rest of the constant.
const LOG2_E_LOW: f32 = 1.925_963e-8;
const LOG2_10: f32 = core::f32::consts::LOG2_10;
const LOG2_10_LOW: f32 = 7.059_537e-8;
const LOG10_E_LOW: f32 = -1.010_305e-8;
const LN_2_LOW: f32 = -1.904_654_3e-9;
const FRAC_PI_2_LOW: f32 = -4.371_139e-8;
const PI_LOW: f32 = -8.742_278e-8;

/// Returns `coefficients[0] + x * coefficients[1] + …`
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut index = N - 1;
    while index > 0 {
        index -= 1;
        sum = fma(sum, x, coefficients[index]);
    }
    sum
}

/// Returns 2 to the power of `x * (high + low) + extra` as two factors. The second is a power of
/// two from 2⁻¹²⁶ to 2¹²⁶.
///
/// Two instructions round down to an integer: the first limits the number to the exponents of
/// normal numbers, and the second leaves the exponent in the low bits of the result. Without a term
/// `extra`, pass -0, whose addition the compiler removes.
#[inline(always)]
fn exponential(x: f32, high: f32, low: f32, extra: f32) -> (f32, f32) {
    let limited = fma_saturated(x, high / 252.0, 0.5);
    let shifted = fma_252_down(limited, ROUNDER + 1.0);
    let whole = shifted - (ROUNDER + 127.0);
    let fraction = fma(x, high, -whole);
    // Without a low part, the compiler removes the operation.
    let fraction = if low == 0.0 {
        fraction
    } else {
        fma(x, low, fraction)
    };
    let fraction = fraction + extra;
    (
        exp2_approx_ftz(fraction),
        f32::from_bits(shifted.to_bits() << 23),
    )
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let (power, scale) = exponential(x, LOG2_E, LOG2_E_LOW, -0.0);
    power * scale
}

#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    exp2_approx(x)
}

#[inline(always)]
pub(super) fn exp10(x: f32) -> f32 {
    let (power, scale) = exponential(x, LOG2_10, LOG2_10_LOW, -0.0);
    power * scale
}

/// Returns `e^x / 4`, which does not overflow where the hyperbolic functions do not.
#[inline(always)]
fn quarter_exp(x: f32) -> f32 {
    let (power, scale) = exponential(x, LOG2_E, LOG2_E_LOW, -0.0);
    power * (scale * 0.25)
}

#[inline(always)]
pub(super) fn exp_m1(x: f32) -> f32 {
    let shifted = fma(x, LOG2_E, ROUNDER);
    let whole = shifted - ROUNDER;
    let remainder = fma(whole, -LN_2, x);
    let remainder = fma(whole, -LN_2_LOW, remainder);
    // e^r - 1 = r + r² / 2 + r³ q(r) for |r| <= ln(2) / 2, with an error of 2^-31.
    let q = polynomial(
        remainder,
        [
            0.166_666_66,
            0.041_666_49,
            0.008_333_55,
            0.001_393_273_5,
            0.000_197_586_4,
        ],
    );
    let power = fma(fma(q, remainder, 0.5) * remainder, remainder, remainder);
    // Half of 2^whole is finite wherever the result is.
    let exponent = shifted.to_bits().wrapping_add(126) << 23;
    let half = f32::from_bits(exponent);
    let result = fma(power, half, half - 0.5) * 2.0;
    if x > 89.0 {
        f32::INFINITY
    } else if x < -25.0 {
        -1.0
    } else if x == 0.0 {
        x
    } else {
        result
    }
}

/// Returns `ln(1 + m) - m` for `m` from -1/4 to 1/2.
#[inline(always)]
fn ln_1p_tail(m: f32) -> f32 {
    // ln(1 + m) = m - m² / 2 + m³ q(m), with an error of 2^-30.
    let q = polynomial(
        m,
        [
            0.333_333_4,
            -0.250_001_67,
            0.199_995_73,
            -0.166_551_98,
            0.142_768_79,
            -0.127_299_96,
            0.116_977_19,
            -0.090_995_5,
            0.037_522_785,
        ],
    );
    fma(q, m, -0.5) * (m * m)
}

/// Returns `m` and `k` with `x = 2^k (1 + m)`, for a positive finite number, and `m` from -1/4 to
/// 1/2.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    let is_subnormal = x < f32::MIN_POSITIVE;
    let scaled = if is_subnormal { x * 8_388_608.0 } else { x };
    let offset = if is_subnormal { -23.0 } else { 0.0 };
    let exponent = scaled.to_bits().wrapping_sub(0.75_f32.to_bits()) & EXPONENT;
    let m = f32::from_bits(scaled.to_bits().wrapping_sub(exponent)) - 1.0;
    // The exponent is 2²³ · k.
    let k = fma(exponent.cast_signed() as f32, 1.0 / 8_388_608.0, offset);
    (m, k)
}

/// Returns the logarithm of a number for which `result` is not one: zero, negative, infinite or
/// NaN.
#[inline(always)]
fn logarithm(x: f32, result: f32) -> f32 {
    if x > 0.0 && x < f32::INFINITY {
        result
    } else if x == 0.0 {
        f32::NEG_INFINITY
    } else if x < 0.0 {
        f32::NAN
    } else {
        x
    }
}

#[inline(always)]
pub(super) fn ln(x: f32) -> f32 {
    let (m, k) = split(x);
    let sum = m + ln_1p_tail(m);
    logarithm(x, fma(k, LN_2, sum))
}

#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    let (m, k) = split(x);
    let tail = ln_1p_tail(m);
    let high = m * LOG2_E;
    let low = fma(m, LOG2_E, -high);
    let low = fma(m, LOG2_E_LOW, low);
    let low = fma(tail, LOG2_E, low);
    // |k| is zero or greater than |high|, so the error of the sum is exact.
    let sum = k + high;
    let error = high - (sum - k);
    logarithm(x, sum + (error + low))
}

#[inline(always)]
pub(super) fn log10(x: f32) -> f32 {
    // The product of 11 bits and k is exact.
    const LOG10_2_HIGH: f32 = 0.301_025_4;
    const LOG10_2_LOW: f32 = 4.605_039e-6;
    let (m, k) = split(x);
    let tail = ln_1p_tail(m);
    let high = m * LOG10_E;
    let low = fma(m, LOG10_E, -high);
    let low = fma(m, LOG10_E_LOW, low);
    let low = fma(tail, LOG10_E, low);
    let low = fma(k, LOG10_2_LOW, low);
    let whole = k * LOG10_2_HIGH;
    let sum = whole + high;
    let error = high - (sum - whole);
    logarithm(x, sum + (error + low))
}

#[inline(always)]
pub(super) fn ln_1p(x: f32) -> f32 {
    // 1 + x = 2^k (1 + m), where m is computed from x, because 1 + x is rounded.
    let exponent = (1.0 + x).to_bits().wrapping_sub(0.75_f32.to_bits()) & EXPONENT;
    let scaled = f32::from_bits(x.to_bits().wrapping_sub(exponent));
    let scale = f32::from_bits(4.0_f32.to_bits().wrapping_sub(exponent));
    let m = scaled + fma(0.25, scale, -1.0);
    let k = exponent.cast_signed() as f32 * (1.0 / 8_388_608.0);
    let result = fma(k, LN_2, m + ln_1p_tail(m));
    if x == 0.0 {
        x
    } else if x > -1.0 && x < f32::INFINITY {
        result
    } else if x == -1.0 {
        f32::NEG_INFINITY
    } else if x < -1.0 {
        f32::NAN
    } else {
        x
    }
}

/// Returns the remainder of `x` after division by π/2, from -π/4 to π/4, and the quotient modulo 4.
#[inline(always)]
fn remainder_pi_2(x: f32) -> (f32, u32) {
    if x.abs() > 105_615.0 {
        return remainder_pi_2_large(x);
    }
    let shifted = fma(x, core::f32::consts::FRAC_2_PI, ROUNDER);
    let whole = shifted - ROUNDER;
    // π/2 in three parts. The first remainder is exact.
    let remainder = fma(whole, -1.570_796_25, x);
    let remainder = fma(whole, -7.549_789_4e-8, remainder);
    let remainder = fma(whole, -5.390_302_5e-15, remainder);
    (remainder, shifted.to_bits())
}

/// The bits of 2/π, after 32 zeros.
const FRACTION: [u32; 8] = [
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
];

/// Returns 32 bits of 2/π from bit `shift` of a word on.
#[inline(always)]
fn fraction_word(index: usize, shift: u32) -> u64 {
    let high = u64::from(FRACTION[index % 8]);
    let low = u64::from(FRACTION[(index + 1) % 8]);
    ((high << 32 | low) << shift) >> 32
}

/// The remainder of large numbers, from the bits of 2/π that matter (Payne and Hanek).
#[cold]
#[inline(never)]
fn remainder_pi_2_large(x: f32) -> (f32, u32) {
    if !x.is_finite() {
        return (f32::NAN, 0);
    }
    // |x| = mantissa · 2^(exponent - 31), and the exponent is from 16 to 127.
    let exponent = (x.to_bits() >> 23 & 0xff) - 127;
    let mantissa = u64::from(x.to_bits() << 8 | 0x8000_0000);
    // Earlier bits of 2/π contribute multiples of 4 to the quotient.
    let first = exponent - 1;
    let index = (first / 32) as usize;
    let shift = first % 32;
    let low = mantissa * fraction_word(index + 2, shift);
    let middle = mantissa * fraction_word(index + 1, shift) + (low >> 32);
    let high = mantissa * fraction_word(index, shift) + (middle >> 32);
    // The quotient modulo 4, with 62 bits of its fraction.
    let quotient = high << 32 | middle & 0xffff_ffff;
    let nearest = quotient.wrapping_add(1 << 61) >> 62;
    let fraction = quotient.wrapping_sub(nearest << 62).cast_signed();
    let zeros = fraction.unsigned_abs().leading_zeros().min(62);
    let normalized = fraction.unsigned_abs() << zeros;
    // π/2 · 2⁶³
    let product = (u128::from(normalized) * 0xc90f_daa2_2168_c235) >> 64;
    let scale = f32::from_bits((66 - zeros) << 23);
    let remainder = product as u64 as f32 * scale;
    let remainder = if fraction < 0 { -remainder } else { remainder };
    if x < 0.0 {
        (-remainder, (nearest as u32).wrapping_neg())
    } else {
        (remainder, nearest as u32)
    }
}

/// Returns the sine for |x| <= π/4.
#[inline(always)]
fn sin_core(x: f32) -> f32 {
    let square = x * x;
    // sin x = x + x³ q(x²), with an error of 2^-32.
    let q = polynomial(
        square,
        [
            -0.166_666_67,
            0.008_333_379,
            -0.000_198_530_67,
            2.832_604_4e-6,
        ],
    );
    // The addition of 0 keeps the sign of zero.
    fma(q, fma(square, x, 0.0), x)
}

/// Returns the cosine for |x| <= π/4.
#[inline(always)]
fn cos_core(x: f32) -> f32 {
    let square = x * x;
    // cos x = 1 - x² / 2 + x⁴ q(x²), with an error of 2^-33.
    let q = polynomial(square, [0.041_666_646, -0.001_388_731, 2.443_233_8e-5]);
    fma(fma(q, square, -0.5), square, 1.0)
}

/// Returns the sine of the angle in a quadrant.
#[inline(always)]
fn quadrant_sin(remainder: f32, quadrant: u32) -> f32 {
    let value = if quadrant & 1 == 0 {
        sin_core(remainder)
    } else {
        cos_core(remainder)
    };
    if quadrant & 2 == 0 { value } else { -value }
}

#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (remainder, quadrant) = remainder_pi_2(x);
    quadrant_sin(remainder, quadrant)
}

#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (remainder, quadrant) = remainder_pi_2(x);
    quadrant_sin(remainder, quadrant.wrapping_add(1))
}

#[inline(always)]
pub(super) fn sin_cos(x: f32) -> (f32, f32) {
    let (remainder, quadrant) = remainder_pi_2(x);
    (
        quadrant_sin(remainder, quadrant),
        quadrant_sin(remainder, quadrant.wrapping_add(1)),
    )
}

#[inline(always)]
pub(super) fn tan(x: f32) -> f32 {
    let (remainder, quadrant) = remainder_pi_2(x);
    let sine = sin_core(remainder);
    let cosine = cos_core(remainder);
    if quadrant & 1 == 0 {
        sine / cosine
    } else {
        -cosine / sine
    }
}

/// Returns the remainder of `π * x` after division by π/2, and the quotient modulo 4.
#[inline(always)]
fn pi_remainder(x: f32) -> (f32, u32) {
    let halves = round_ties_even_f32(x + x);
    let remainder = fma(halves, -0.5, x);
    let angle = fma(remainder, PI, remainder * PI_LOW);
    // Numbers above 2²⁴ are even.
    let quadrant = if x.abs() < 16_777_216.0 {
        (halves as i32).cast_unsigned()
    } else {
        0
    };
    (angle, quadrant)
}

#[inline(always)]
pub(super) fn sin_pi(x: f32) -> f32 {
    let (angle, quadrant) = pi_remainder(x);
    quadrant_sin(angle, quadrant)
}

#[inline(always)]
pub(super) fn cos_pi(x: f32) -> f32 {
    let (angle, quadrant) = pi_remainder(x);
    quadrant_sin(angle, quadrant.wrapping_add(1))
}

/// Returns the arcsine for |x| <= 1/2, where `square` is x².
#[inline(always)]
fn asin_core(x: f32, square: f32) -> f32 {
    // asin x = x + x³ q(x²), with an error of 2^-27.
    let q = polynomial(
        square,
        [
            0.166_667_54,
            0.074_952_5,
            0.045_476_76,
            0.024_146_09,
            0.042_226_3,
        ],
    );
    fma(q, square * x, x)
}

#[inline(always)]
pub(super) fn asin(x: f32) -> f32 {
    let absolute = x.abs();
    if absolute <= 0.5 {
        return asin_core(x, x * x);
    }
    // asin x = π/2 - 2 asin(sqrt((1 - x) / 2)), where the difference is exact.
    let square = fma(absolute, -0.5, 0.5);
    let half_angle = asin_core(sqrt(square), square);
    let angle = fma(half_angle, -2.0, FRAC_PI_2) + FRAC_PI_2_LOW;
    angle.copysign(x)
}

#[inline(always)]
pub(super) fn acos(x: f32) -> f32 {
    let absolute = x.abs();
    if absolute <= 0.5 {
        return (FRAC_PI_2 - asin_core(x, x * x)) + FRAC_PI_2_LOW;
    }
    let square = fma(absolute, -0.5, 0.5);
    let angle = 2.0 * asin_core(sqrt(square), square);
    if x > 0.0 {
        angle
    } else {
        (PI - angle) + PI_LOW
    }
}

/// Returns the arctangent for x from 0 to 1.
#[inline(always)]
fn atan_core(x: f32) -> f32 {
    let square = x * x;
    // atan x = x + x³ q(x²), with an error of 2^-28.
    let q = polynomial(
        square,
        [
            -0.333_333,
            0.199_985_33,
            -0.142_640_78,
            0.109_513_476,
            -0.084_010_3,
            0.057_916_46,
            -0.031_137_032,
            0.010_892_748,
            -0.001_788_741_6,
        ],
    );
    fma(q, square * x, x)
}

#[inline(always)]
pub(super) fn atan(x: f32) -> f32 {
    let absolute = x.abs();
    let is_inverted = absolute > 1.0;
    let angle = atan_core(if is_inverted {
        rcp_approx(absolute)
    } else {
        absolute
    });
    let angle = if is_inverted {
        (FRAC_PI_2 - angle) + FRAC_PI_2_LOW
    } else {
        angle
    };
    angle.copysign(x)
}

#[inline(always)]
pub(super) fn atan2(y: f32, x: f32) -> f32 {
    let [width, height] = [x.abs(), y.abs()];
    let larger = width.max(height);
    let smaller = width.min(height);
    let ratio = if larger == 0.0 {
        0.0
    } else if smaller == f32::INFINITY {
        1.0
    } else {
        smaller / larger
    };
    let angle = atan_core(ratio);
    let angle = if height > width {
        (FRAC_PI_2 - angle) + FRAC_PI_2_LOW
    } else {
        angle
    };
    let angle = if x.is_sign_negative() {
        (PI - angle) + PI_LOW
    } else {
        angle
    };
    if x.is_nan() || y.is_nan() {
        x + y
    } else {
        angle.copysign(y)
    }
}

#[inline(always)]
pub(super) fn sinh(x: f32) -> f32 {
    let absolute = x.abs();
    if absolute < 1.0 {
        let square = x * x;
        // sinh x = x + x³ q(x²), with an error of 2^-31.
        let q = polynomial(
            square,
            [0.166_666_67, 0.008_333_31, 0.000_198_428_94, 2.782_229_6e-6],
        );
        return fma(q, square * x, x);
    }
    let quarter = quarter_exp(absolute);
    fma(rcp_approx(quarter), -0.125, quarter * 2.0).copysign(x)
}

#[inline(always)]
pub(super) fn cosh(x: f32) -> f32 {
    let quarter = quarter_exp(x.abs());
    fma(rcp_approx(quarter), 0.125, quarter * 2.0)
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let absolute = x.abs();
    if absolute < 0.6 {
        let square = x * x;
        // tanh x = x + x³ q(x²), with an error of 2^-28.
        let q = polynomial(
            square,
            [
                -0.333_333,
                0.133_319_36,
                -0.053_784_717,
                0.020_798_624,
                -0.005_897_961,
            ],
        );
        return fma(q, fma(square, x, 0.0), x);
    }
    // 1 - 2 / (e^2x + 1)
    let power = exp(absolute + absolute);
    fma(rcp_approx(power + 1.0), -2.0, 1.0).copysign(x)
}

#[inline(always)]
pub(super) fn asinh(x: f32) -> f32 {
    let absolute = x.abs();
    let result = if absolute > 1.0e9 {
        ln(absolute) + LN_2
    } else {
        // x + sqrt(x² + 1) = 1 + x + x² / (1 + sqrt(x² + 1))
        let square = absolute * absolute;
        ln_1p(absolute + square / (1.0 + sqrt(fma(absolute, absolute, 1.0))))
    };
    result.copysign(x)
}

#[inline(always)]
pub(super) fn acosh(x: f32) -> f32 {
    if x > 1.0e9 {
        return ln(x) + LN_2;
    }
    let excess = x - 1.0;
    ln_1p(excess + sqrt(fma(excess, excess, excess + excess)))
}

#[inline(always)]
pub(super) fn atanh(x: f32) -> f32 {
    let absolute = x.abs();
    (0.5 * ln_1p((absolute + absolute) / (1.0 - absolute))).copysign(x)
}

/// A positive finite number as `2^k · m`, where `ln m` is the sum of two numbers, with a relative
/// error of 2⁻³⁰.
struct Logarithm {
    k: f32,
    high: f32,
    low: f32,
}

impl Logarithm {
    #[inline(always)]
    fn new(x: f32) -> Self {
        let is_subnormal = x < f32::MIN_POSITIVE;
        let scaled = if is_subnormal { x * 16_777_216.0 } else { x };
        let offset = if is_subnormal { -24.0 } else { 0.0 };
        let sqrt_half = core::f32::consts::FRAC_1_SQRT_2.to_bits();
        let exponent = scaled.to_bits().wrapping_sub(sqrt_half) & EXPONENT;
        let m = f32::from_bits(scaled.to_bits().wrapping_sub(exponent));
        let k = fma(exponent.cast_signed() as f32, 1.0 / 8_388_608.0, offset);
        // g = 2 (m - 1) / (m + 1), with its remainder
        let p = m - 1.0;
        let reciprocal = rcp_approx(m + 1.0);
        let g = 2.0 * p * reciprocal;
        let g_low = fma(-g, p, 2.0 * (p - g)) * reciprocal;
        // ln m = g + g³ q(g²), with an error of 2^-35. The coefficients are those of atanh(g / 2),
        // divided by powers of 4.
        let square = g * g;
        let q = polynomial(
            square,
            [
                0.333_333_31 / 4.0,
                0.200_004_85 / 16.0,
                0.142_495_92 / 64.0,
                0.121_342_026 / 256.0,
            ],
        );
        Self {
            k,
            high: g,
            low: fma(g * square, q, g_low),
        }
    }

    /// Returns the natural logarithm as the sum of two numbers.
    #[inline(always)]
    fn natural(&self) -> (f32, f32) {
        // The product of 16 bits and k is exact.
        const LN_2_HIGH: f32 = 0.693_145_75;
        const LN_2_REST: f32 = 1.428_606_8e-6;
        let whole = self.k * LN_2_HIGH;
        let low = fma(self.k, LN_2_REST, self.low);
        add_three(whole, self.high, low)
    }

    /// Returns the binary logarithm as the sum of two numbers. It is exact for powers of 2.
    #[inline(always)]
    fn binary(&self) -> (f32, f32) {
        let product = self.high * LOG2_E;
        let low = fma(self.high, LOG2_E, -product);
        let low = fma(self.high, LOG2_E_LOW, low);
        let low = fma(self.low, LOG2_E, low);
        add_three(self.k, product, low)
    }
}

/// Returns a sum as the sum of two numbers. `|a|` is 0 or greater than `|b|`, which is much greater
/// than `|c|`.
#[inline(always)]
fn add_three(a: f32, b: f32, c: f32) -> (f32, f32) {
    let sum = a + b;
    let low = (b - (sum - a)) + c;
    let high = sum + low;
    (high, low - (high - sum))
}

/// Returns `e^(high + low)` for `|low|` that is much smaller than 1.
#[inline(always)]
fn extended_exp(high: f32, low: f32) -> f32 {
    let low = if high.abs() < 150.0 { low } else { 0.0 };
    let (power, scale) = exponential(high, LOG2_E, LOG2_E_LOW, low * LOG2_E);
    power * scale
}

/// Returns `2^(high + low)` for `|low|` that is much smaller than 1.
#[inline(always)]
fn extended_exp2(high: f32, low: f32) -> f32 {
    let high = high.clamp(-300.0, 300.0);
    let low = if high.abs() < 200.0 { low } else { 0.0 };
    let (power, scale) = exponential(high, 1.0, 0.0, low);
    power * scale
}

#[inline(always)]
pub(super) fn powf(x: f32, y: f32) -> f32 {
    if x == 1.0 || y == 0.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return x + y;
    }
    let is_integer = trunc(y) == y;
    let half = y * 0.5;
    let is_odd = is_integer && y.abs() < 16_777_216.0 && trunc(half) != half;
    let is_negative = x.is_sign_negative() && is_odd;
    let absolute = x.abs();
    let magnitude = if absolute == 0.0 || absolute == f32::INFINITY {
        if (absolute == 0.0) == (y < 0.0) {
            f32::INFINITY
        } else {
            0.0
        }
    } else if y.is_infinite() {
        if absolute == 1.0 {
            1.0
        } else if (absolute > 1.0) == (y > 0.0) {
            f32::INFINITY
        } else {
            0.0
        }
    } else if x < 0.0 && !is_integer {
        return f32::NAN;
    } else {
        let (high, low) = Logarithm::new(absolute).binary();
        let product = y * high;
        let error = fma(y, low, fma(y, high, -product));
        extended_exp2(product, error)
    };
    if is_negative { -magnitude } else { magnitude }
}

#[inline(always)]
pub(super) fn cbrt(x: f32) -> f32 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let absolute = x.abs();
    let is_subnormal = absolute < f32::MIN_POSITIVE;
    let scaled = if is_subnormal {
        absolute * 16_777_216.0
    } else {
        absolute
    };
    let root = exp2_approx_ftz(log2_approx(scaled) * (1.0 / 3.0));
    // A step of Newton's method.
    let difference = fma(scaled, -rcp_approx(root * root), root);
    let root = fma(difference, -1.0 / 3.0, root);
    let root = if is_subnormal {
        root * (1.0 / 256.0)
    } else {
        root
    };
    root.copysign(x)
}

#[inline(always)]
pub(super) fn hypot(x: f32, y: f32) -> f32 {
    let [x, y] = [x.abs(), y.abs()];
    let larger = x.max(y);
    let smaller = x.min(y);
    if larger == f32::INFINITY {
        return larger;
    }
    // Scales by a power of two, so that the squares neither overflow nor vanish.
    let exponent = (larger.to_bits() >> 23).clamp(1, 253);
    let scale = f32::from_bits((254 - exponent) << 23);
    let larger = larger * scale;
    let smaller = smaller * scale;
    let length = sqrt(fma(larger, larger, smaller * smaller)) * f32::from_bits(exponent << 23);
    if x.is_nan() || y.is_nan() {
        x + y
    } else {
        length
    }
}

#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let absolute = x.abs();
    if absolute < 1.0 {
        // erf x = x + x q(x²), with an error of 2^-29.
        let q = polynomial(
            x * x,
            [
                0.128_379_17,
                -0.376_126_26,
                0.112_835_82,
                -0.026_853_595,
                0.005_187_851_8,
                -0.000_800_571_87,
                7.838_526e-5,
            ],
        );
        return fma(q, x, x);
    }
    let limited = absolute.min(4.0);
    // erf x = 1 - e^-(x + x q(x)) for x from 1 to 4, with an error of 2^-31.
    let q = polynomial(
        limited,
        [
            0.128_694_64,
            0.634_968_34,
            0.106_532_78,
            -0.024_011_679,
            0.003_758_220_9,
            -0.000_350_771_24,
            1.398_001e-5,
        ],
    );
    let exponent = fma(q, limited, limited);
    let result = (1.0 - exp2_approx_ftz(exponent * -LOG2_E)).copysign(x);
    if x.is_nan() { x } else { result }
}

/// Returns the complementary error function of `x + low`, where `|low|` is below an ulp of `x`.
#[inline(always)]
fn extended_erfc(x: f32, low: f32) -> f32 {
    let absolute = x.abs();
    let low = if x < 0.0 { -low } else { low };
    let sum = absolute + 2.0;
    let t = (absolute - 2.0) / sum;
    // erfc x = e^-x² q(t) / (1 + 2x) with t = (x - 2) / (x + 2), for x from 0 to 10.1, with an
    // error of 2^-26.
    let q = polynomial(
        t,
        [
            1.276_978_4,
            -0.092_763_856,
            -0.166_030_85,
            0.164_052_67,
            -0.054_208_845,
            -0.008_043_451,
            0.008_648_838,
            0.001_274_793_4,
            -0.001_263_880_8,
            -0.000_368_993_47,
            2.753_743e-5,
        ],
    );
    let quotient = q / fma(absolute, 2.0, 1.0);
    let square = absolute * absolute;
    let error = fma(absolute, absolute, -square) + 2.0 * absolute * low;
    let tail = if absolute > 10.06 {
        0.0
    } else {
        quotient * extended_exp(-square, -error)
    };
    if x.is_nan() {
        x
    } else if x < 0.0 {
        2.0 - tail
    } else {
        tail
    }
}

#[inline(always)]
pub(super) fn erfc(x: f32) -> f32 {
    extended_erfc(x, 0.0)
}

#[inline(always)]
pub(super) fn normcdf(x: f32) -> f32 {
    // 1 / sqrt(2) in two parts
    const SCALE: f32 = -core::f32::consts::FRAC_1_SQRT_2;
    const SCALE_LOW: f32 = -1.210_161_7e-8;
    let limited = x.clamp(-15.0, 15.0);
    let scaled = limited * SCALE;
    let low = fma(limited, SCALE_LOW, fma(limited, SCALE, -scaled));
    0.5 * extended_erfc(scaled, low)
}

/// Returns `1 / Γ(1 + z)` for |z| <= 1/2, minus 1.
#[inline(always)]
fn reciprocal_gamma(z: f32) -> f32 {
    // 1 / Γ(1 + z) = 1 + z q(z), with an error of 2^-31.
    z * polynomial(
        z,
        [
            0.577_215_67,
            -0.655_878_07,
            -0.042_002_97,
            0.166_538_39,
            -0.042_193_208,
            -0.009_618_862,
            0.007_196_74,
            -0.001_181_355_1,
            -0.000_184_020_8,
            0.000_155_996_6,
        ],
    )
}

/// Returns `ln Γ(x) - (x - 1/2) (ln x - 1)` for `x` of at least 3, without the constant
/// `ln(2π) / 2 - 1/2`.
#[inline(always)]
fn stirling_tail(x: f32) -> f32 {
    let reciprocal = 1.0 / x;
    // With an error of 2^-28.
    let q = polynomial(
        reciprocal * reciprocal,
        [0.083_333_27, -0.002_772_809_2, 0.000_697_239_65],
    );
    reciprocal * q
}

/// `ln(2π) / 2 - 1/2`
const STIRLING: f32 = 0.418_938_53;

/// Returns `ln Γ(x)` for positive finite `x`.
#[inline(always)]
fn lgamma_positive(x: f32) -> f32 {
    if x < 0.5 {
        -ln(fma(reciprocal_gamma(x), x, x))
    } else if x < 1.5 {
        -ln_1p(reciprocal_gamma(x - 1.0))
    } else if x < 3.0 {
        // ln Γ(2 + z) = z q(z), with an error of 2^-26.
        let z = x - 2.0;
        z * polynomial(
            z,
            [
                0.422_784_33,
                0.322_467_03,
                -0.067_352_1,
                0.020_581_12,
                -0.007_385_972_4,
                0.002_886_413_8,
                -0.001_196_125_9,
                0.000_533_805_23,
                -0.000_225_508_88,
                5.419_925e-5,
            ],
        )
    } else {
        let (high, low) = Logarithm::new(x).natural();
        let factor = x - 0.5;
        let logarithm = (high - 1.0) + low;
        fma(factor, logarithm, STIRLING + stirling_tail(x))
    }
}

#[inline(always)]
pub(super) fn lgamma(x: f32) -> f32 {
    let absolute = x.abs();
    if !x.is_finite() {
        return absolute;
    }
    let result = lgamma_positive(absolute);
    if x > 0.0 {
        return result;
    }
    // Γ(x) Γ(-x) = -π / (x sin(π x)); whole numbers are poles.
    if trunc(x) == x {
        return f32::INFINITY;
    }
    if absolute < 1.0e-15 {
        return -ln(absolute);
    }
    let reflection = absolute * sin_pi(absolute).abs();
    ln(PI / reflection) - result
}

#[inline(always)]
pub(super) fn tgamma(x: f32) -> f32 {
    if x.is_nan() || x == f32::INFINITY {
        return x;
    }
    if x == 0.0 {
        return f32::INFINITY.copysign(x);
    }
    let absolute = x.abs();
    if x < 0.0 && trunc(x) == x {
        return f32::NAN;
    }
    if absolute < 6.0 {
        // Γ(1 + z) = Γ(x) · x · (x + 1) · … or Γ(x) / ((x - 1) · (x - 2) · …), where the
        // differences are exact.
        let nearest = round_ties_even_f32(x);
        let z = x - nearest;
        let mut product = 1.0;
        let mut factor = x;
        let mut steps = nearest;
        while steps > 1.0 {
            factor -= 1.0;
            product *= factor;
            steps -= 1.0;
        }
        let mut divisor = 1.0;
        while steps < 1.0 {
            divisor *= factor;
            factor += 1.0;
            steps += 1.0;
        }
        return product / (divisor * (1.0 + reciprocal_gamma(z)));
    }
    // Γ(x) = e^((x - 1/2) (ln x - 1) + …)
    let limited = absolute.min(64.0);
    let (high, low) = Logarithm::new(limited).natural();
    let factor = limited - 0.5;
    let difference = high - 1.0;
    let low = low + ((high - difference) - 1.0);
    let product = factor * difference;
    let error = fma(factor, low, fma(factor, difference, -product));
    let constant = STIRLING + stirling_tail(limited);
    let sum = product + constant;
    let error = error + (constant - (sum - product));
    if x > 0.0 {
        extended_exp(sum, error)
    } else if x < -45.0 {
        0.0
    } else {
        let reflection = x * sin_pi(x);
        extended_exp(-sum, -error) * (-PI / reflection)
    }
}
