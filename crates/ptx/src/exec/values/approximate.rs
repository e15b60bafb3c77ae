//! The approximate functions of PTX.

use super::float::canonical;

/// Computes an approximate f32 function in f64.
#[inline(always)]
pub(crate) fn approximate(value: f32, f: impl Fn(f64) -> f64) -> f32 {
    canonical(f(f64::from(value)) as f32)
}

/// Computes `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: keeps only the upper half of the
/// result, and flushes subnormals.
pub(crate) fn coarse(value: f64, f: impl Fn(f64) -> f64) -> f64 {
    // Hardware uses only the upper half of the operand.
    let result = flush(f(upper_half(flush(value))));
    if result.is_nan() {
        f64::from_bits(0x7fff_ffff << 32)
    } else {
        upper_half(result)
    }
}

fn flush(value: f64) -> f64 {
    if value.is_subnormal() {
        0.0f64.copysign(value)
    } else {
        value
    }
}

fn upper_half(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & !0xffff_ffff)
}
