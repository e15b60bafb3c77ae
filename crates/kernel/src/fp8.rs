//! FP8: numbers of 8 bits, and pairs of them.

use crate::half::F16x2;
use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::small_float::{E4m3Format, E5m2Format, NEAREST, SATURATE, impl_plain_number};

intrinsics! {
    e4m3x2_from_f32 = "curium.asm|cvt.rn.satfinite.e4m3x2.f32 $0, $2, $1;|=h,f,f|pure,sm_89"(low: f32, high: f32) -> u16;
    e5m2x2_from_f32 = "curium.asm|cvt.rn.satfinite.e5m2x2.f32 $0, $2, $1;|=h,f,f|pure,sm_89"(low: f32, high: f32) -> u16;
    e4m3x2_from_f16x2 = "curium.asm|cvt.rn.satfinite.e4m3x2.f16x2 $0, $1;|=h,r|pure,sm_89"(pair: u32) -> u16;
    e5m2x2_from_f16x2 = "curium.asm|cvt.rn.satfinite.e5m2x2.f16x2 $0, $1;|=h,r|pure,sm_89"(pair: u32) -> u16;
    e4m3x2_to_f16x2 = "curium.asm|cvt.rn.f16x2.e4m3x2 $0, $1;|=r,h|pure,sm_89"(pair: u16) -> u32;
    e5m2x2_to_f16x2 = "curium.asm|cvt.rn.f16x2.e5m2x2 $0, $1;|=r,h|pure,sm_89"(pair: u16) -> u32;
}

macro_rules! fp8 {
    ($(#[$attribute:meta])* $name:ident, $(#[$pair_attribute:meta])* $pair:ident, $format:ident, $from_f32:ident, $from_f16x2:ident, $to_f16x2:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Default, Eq, PartialEq)]
        #[repr(transparent)]
        pub struct $name(u8);

        $(#[$pair_attribute])*
        ///
        /// The methods without a suffix convert on all GPUs and on the host, by integer arithmetic.
        /// Those with the suffix `_sm89` are one instruction with the same result, for code that is
        /// compiled for `sm_89` or newer; the build fails for older targets.
        #[derive(Clone, Copy, Default, Eq, PartialEq)]
        #[repr(transparent)]
        pub struct $pair(u16);

        impl_plain_number!($name(u8), $pair(u16));

        impl $name {
            /// Rounds to the nearest number. Numbers that are too large, and infinities, become the
            /// largest finite number (`satfinite`).
            #[inline(always)]
            #[must_use]
            pub fn from_f32(number: f32) -> Self {
                Self($format::from_f32::<SATURATE, NEAREST>(number) as u8)
            }

            /// Converts the number. Exact.
            #[inline(always)]
            #[must_use]
            pub fn to_f32(self) -> f32 {
                $format::to_f32(u32::from(self.0))
            }
        }

        impl $pair {
            /// Rounds two numbers to the nearest ones. Numbers that are too large, and infinities,
            /// become the largest finite number.
            #[inline(always)]
            #[must_use]
            pub fn new(low: f32, high: f32) -> Self {
                let low = $format::from_f32::<SATURATE, NEAREST>(low) as u16;
                let high = $format::from_f32::<SATURATE, NEAREST>(high) as u16;
                Self(low | high << 8)
            }

            /// The instruction for [`Self::new`] (`cvt.rn.satfinite`). Needs compute capability
            /// 8.9.
            #[doc(alias = "__nv_cvt_float2_to_fp8x2")]
            #[inline(always)]
            #[must_use]
            pub fn new_sm89(low: f32, high: f32) -> Self {
                // SAFETY: the result depends on the operands only.
                Self(unsafe { $from_f32(low, high) })
            }

            /// Rounds two numbers of binary16 to the nearest ones.
            #[inline(always)]
            #[must_use]
            pub fn from_f16x2(pair: F16x2) -> Self {
                let [low, high] = pair.to_f32s();
                Self::new(low, high)
            }

            /// The instruction for [`Self::from_f16x2`]. Needs compute capability 8.9.
            #[doc(alias = "__nv_cvt_halfraw2_to_fp8x2")]
            #[inline(always)]
            #[must_use]
            pub fn from_f16x2_sm89(pair: F16x2) -> Self {
                // SAFETY: the result depends on the operand only.
                Self(unsafe { $from_f16x2(pair.to_bits()) })
            }

            /// Converts both numbers. Exact.
            #[inline(always)]
            #[must_use]
            pub fn to_f32s(self) -> [f32; 2] {
                let [low, high] = self.to_numbers();
                [low.to_f32(), high.to_f32()]
            }

            /// The instruction that converts both numbers to binary16. Exact. Needs compute
            /// capability 8.9.
            #[doc(alias = "__nv_cvt_fp8x2_to_halfraw2")]
            #[inline(always)]
            #[must_use]
            pub fn to_f16x2_sm89(self) -> F16x2 {
                // SAFETY: the result depends on the operand only.
                F16x2::from_bits(unsafe { $to_f16x2(self.0) })
            }

            /// Creates a pair.
            #[inline(always)]
            #[must_use]
            pub const fn from_numbers(low: $name, high: $name) -> Self {
                Self(low.0 as u16 | (high.0 as u16) << 8)
            }

            /// Returns the two numbers.
            #[inline(always)]
            #[must_use]
            pub const fn to_numbers(self) -> [$name; 2] {
                [$name(self.0 as u8), $name((self.0 >> 8) as u8)]
            }
        }
    };
}

fp8! {
    /// A number of FP8 with 4 bits of exponent and 3 of mantissa, up to 448, without infinities
    /// (CUDA's `__nv_fp8_e4m3`).
    #[doc(alias = "__nv_fp8_e4m3")]
    E4m3,
    /// Two numbers of FP8 E4M3 (CUDA's `__nv_fp8x2_e4m3`).
    #[doc(alias = "__nv_fp8x2_e4m3")]
    E4m3x2, E4m3Format, e4m3x2_from_f32, e4m3x2_from_f16x2, e4m3x2_to_f16x2
}

fp8! {
    /// A number of FP8 with 5 bits of exponent and 2 of mantissa, up to 57344 (CUDA's
    /// `__nv_fp8_e5m2`).
    #[doc(alias = "__nv_fp8_e5m2")]
    E5m2,
    /// Two numbers of FP8 E5M2 (CUDA's `__nv_fp8x2_e5m2`).
    #[doc(alias = "__nv_fp8x2_e5m2")]
    E5m2x2, E5m2Format, e5m2x2_from_f32, e5m2x2_from_f16x2, e5m2x2_to_f16x2
}
