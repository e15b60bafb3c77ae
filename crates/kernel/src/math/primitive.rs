//! Operations from which the functions are made: instructions on the device, the crate `libm` on
//! the host.

#[cfg(target_arch = "nvptx64")]
use crate::intrinsics as device;

macro_rules! primitives {
    ($($(#[$attribute:meta])* $name:ident($($argument:ident),*) -> $ty:ty = $intrinsic:ident, $host:expr;)*) => {
        $(
            $(#[$attribute])*
            #[inline(always)]
            pub(crate) fn $name($($argument: $ty),*) -> $ty {
                #[cfg(target_arch = "nvptx64")]
                {
                    // SAFETY: the result depends on the operands only.
                    unsafe { device::$intrinsic($($argument),*) }
                }
                #[cfg(not(target_arch = "nvptx64"))]
                {
                    $host
                }
            }
        )*
    };
}

primitives! {
    sqrt_f32(x) -> f32 = sqrt_f32, libm::sqrtf(x);
    sqrt_f64(x) -> f64 = sqrt_f64, libm::sqrt(x);
    /// Returns `a * b + c`, rounded once.
    fma_f32(a, b, c) -> f32 = fma_f32, libm::fmaf(a, b, c);
    fma_f64(a, b, c) -> f64 = fma_f64, libm::fma(a, b, c);
    floor_f32(x) -> f32 = floor_f32, libm::floorf(x);
    floor_f64(x) -> f64 = floor_f64, libm::floor(x);
    ceil_f32(x) -> f32 = ceil_f32, libm::ceilf(x);
    ceil_f64(x) -> f64 = ceil_f64, libm::ceil(x);
    trunc_f32(x) -> f32 = trunc_f32, libm::truncf(x);
    trunc_f64(x) -> f64 = trunc_f64, libm::trunc(x);
    round_f32(x) -> f32 = round_f32, libm::roundf(x);
    round_f64(x) -> f64 = round_f64, libm::round(x);
    round_ties_even_f32(x) -> f32 = round_ties_even_f32, libm::rintf(x);
    round_ties_even_f64(x) -> f64 = round_ties_even_f64, libm::rint(x);

    rsqrt_approx(x) -> f32 = rsqrt_approx_f32, 1.0 / libm::sqrtf(x);
    rcp_approx(x) -> f32 = rcp_approx_f32, 1.0 / x;
    exp2_approx(x) -> f32 = exp2_approx_f32, libm::exp2f(x);
    /// `ex2.approx.ftz`: a subnormal result is zero.
    exp2_approx_ftz(x) -> f32 = exp2_approx_ftz_f32, {
        let power = libm::exp2f(x);
        if power < f32::MIN_POSITIVE { 0.0 } else { power }
    };
    log2_approx(x) -> f32 = log2_approx_f32, libm::log2f(x);
    sin_approx(x) -> f32 = sin_approx_f32, libm::sinf(x);
    cos_approx(x) -> f32 = cos_approx_f32, libm::cosf(x);
    tanh_approx(x) -> f32 = tanh_approx_f32, libm::tanhf(x);
    /// Returns `a * b + c`, limited to the range from 0 to 1. NaN becomes 0.
    fma_saturated(a, b, c) -> f32 = fma_saturated_f32, {
        let sum = libm::fmaf(a, b, c);
        if sum.is_nan() { 0.0 } else { sum.clamp(0.0, 1.0) }
    };
    /// Returns `a * 252 + c`, rounded down, for `a` from 0 to 1 and an integer `c` from 2²³ to 2²⁴.
    fma_252_down(a, c) -> f32 = fma_252_down_f32, c + libm::floor(f64::from(a) * 252.0) as f32;
}
