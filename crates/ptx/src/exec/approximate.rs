//! The approximate functions of PTX.

use super::float::canonical;

/// Computes an approximate f32 function in f64.
#[inline(always)]
pub(crate) fn approximate(value: f32, f: impl Fn(f64) -> f64) -> f32 {
    canonical(f(f64::from(value)) as f32)
}

/// Computes `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: keeps only the upper half of the result, and flushes subnormals.
pub(crate) fn coarse(value: f64, f: impl Fn(f64) -> f64) -> f64 {
    let flush = |value: f64| {
        if value.is_subnormal() {
            0.0f64.copysign(value)
        } else {
            value
        }
    };
    // Hardware uses only the upper half of the operand.
    let upper = |value: f64| f64::from_bits(value.to_bits() & !0xffff_ffff);
    let result = flush(f(upper(flush(value))));
    f64::from_bits(if result.is_nan() {
        0x7fff_ffff << 32
    } else {
        result.to_bits() & !0xffff_ffff
    })
}
