//! Conversions between `f32` and formats of 8 and 16 bits, on integers: on the host, and for GPUs that lack the instructions.

/// A format with `E` bits of exponent and `M` bits of mantissa. A `FINITE` one has no infinities, and a single NaN of each sign.
pub(crate) struct Format<const E: u32, const M: u32, const FINITE: bool>;

/// IEEE binary16.
pub(crate) type Binary16 = Format<5, 10, false>;
/// bfloat16.
pub(crate) type Bfloat16 = Format<8, 7, false>;
/// FP8 E4M3, with numbers up to 448.
pub(crate) type E4m3Format = Format<4, 3, true>;
/// FP8 E5M2, with numbers up to 57344.
pub(crate) type E5m2Format = Format<5, 2, false>;

/// Declares what numbers and their pairs have in common: conversions from and to bits, and the traits of plain memory.
macro_rules! bits {
    ($name:ident($bits:ty), $pair:ident($pair_bits:ty)) => {
        // SAFETY: zeros are a number.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: any bytes are a number.
        unsafe impl bytemuck::Pod for $name {}
        // SAFETY: a number without padding.
        unsafe impl crate::ByValue for $name {}
        // SAFETY: zeros are a pair of numbers.
        unsafe impl bytemuck::Zeroable for $pair {}
        // SAFETY: any bytes are a pair of numbers.
        unsafe impl bytemuck::Pod for $pair {}
        // SAFETY: two numbers without padding.
        unsafe impl crate::ByValue for $pair {}

        impl $name {
            /// Creates a number from its bits.
            #[inline(always)]
            #[must_use]
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits)
            }

            /// Returns the bits.
            #[inline(always)]
            #[must_use]
            pub const fn to_bits(self) -> $bits {
                self.0
            }
        }

        impl $pair {
            /// Creates a pair from its bits, the first number in the low ones.
            #[inline(always)]
            #[must_use]
            pub const fn from_bits(bits: $pair_bits) -> Self {
                Self(bits)
            }

            /// Returns the bits.
            #[inline(always)]
            #[must_use]
            pub const fn to_bits(self) -> $pair_bits {
                self.0
            }
        }

        impl From<$name> for f32 {
            #[inline(always)]
            fn from(number: $name) -> Self {
                number.to_f32()
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.to_f32().fmt(formatter)
            }
        }

        impl core::fmt::Debug for $pair {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.to_f32s().fmt(formatter)
            }
        }
    };
}
pub(crate) use bits;

impl<const E: u32, const M: u32, const FINITE: bool> Format<E, M, FINITE> {
    const BIAS: i32 = (1 << (E - 1)) - 1;
    const SIGN: u32 = 1 << (E + M);
    const NAN: u32 = (1 << (E + M)) - 1;
    const INFINITY: u32 = ((1 << E) - 1) << M;
    /// The largest finite number.
    const MAX: u32 = if FINITE {
        Self::NAN - 1
    } else {
        Self::INFINITY - 1
    };

    /// Rounds a number to the nearest one of the format, or toward zero. If `SATURATE`, numbers beyond the largest and infinities become the
    /// largest.
    #[inline(always)]
    pub(crate) fn narrow<const SATURATE: bool, const TOWARD_ZERO: bool>(number: f32) -> u32 {
        let bits = number.to_bits();
        let sign = (bits >> 31) * Self::SIGN;
        let absolute = bits & 0x7fff_ffff;
        if absolute > 0x7f80_0000 {
            return sign | Self::NAN;
        }
        let exponent = (absolute >> 23).max(1).cast_signed() - 127;
        let hidden = if absolute < 0x0080_0000 {
            0
        } else {
            0x0080_0000
        };
        let mantissa = absolute & 0x007f_ffff | hidden;
        let smallest = 1 - Self::BIAS;
        // A subnormal number has fewer bits.
        let missing = (smallest - exponent).clamp(0, 26).cast_unsigned();
        let shift = (23 - M + missing).min(26);
        let bias = if TOWARD_ZERO {
            0
        } else {
            (1 << (shift - 1)) - 1 + (mantissa >> shift & 1)
        };
        let rounded = (mantissa + bias) >> shift;
        // The hidden bit of a normal number adds 1 to the exponent, and so does a carry.
        let scale = (exponent - smallest).max(0).cast_unsigned();
        let code = (scale << M) + rounded;
        let is_infinite = absolute == 0x7f80_0000;
        let code = if code <= Self::MAX && !is_infinite {
            code
        } else if SATURATE || (TOWARD_ZERO && !is_infinite) {
            Self::MAX
        } else if FINITE {
            Self::NAN
        } else {
            Self::INFINITY
        };
        sign | code
    }

    /// Converts a number of the format.
    #[inline(always)]
    pub(crate) fn widen(code: u32) -> f32 {
        let sign = (code & Self::SIGN) << (31 - E - M);
        let absolute = code & (Self::SIGN - 1);
        let exponent = absolute >> M;
        let bits = absolute << (23 - M);
        let is_special = if FINITE {
            absolute == Self::NAN
        } else {
            absolute >= Self::INFINITY
        };
        let magnitude = if is_special {
            bits | 0x7f80_0000
        } else if E == 8 {
            bits
        } else if exponent == 0 {
            // An integer, times the smallest subnormal number.
            let unit = (127 + 1 - Self::BIAS - M.cast_signed()).cast_unsigned() << 23;
            (absolute as f32 * f32::from_bits(unit)).to_bits()
        } else {
            bits + ((127 - Self::BIAS).cast_unsigned() << 23)
        };
        f32::from_bits(sign | magnitude)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// Every number of a format is itself, and a number between two becomes the nearer one, or the even one.
    fn check<const E: u32, const M: u32, const FINITE: bool>() {
        type F<const E: u32, const M: u32, const FINITE: bool> = Format<E, M, FINITE>;
        let max = F::<E, M, FINITE>::MAX;
        for code in 0..=max {
            let number = F::<E, M, FINITE>::widen(code);
            assert_eq!(F::<E, M, FINITE>::narrow::<false, false>(number), code);
            assert_eq!(
                F::<E, M, FINITE>::narrow::<true, true>(-number),
                code | F::<E, M, FINITE>::SIGN
            );
            if code == max {
                continue;
            }
            let next = F::<E, M, FINITE>::widen(code + 1);
            let middle = ((f64::from(number) + f64::from(next)) / 2.0) as f32;
            let even = code + code % 2;
            assert_eq!(F::<E, M, FINITE>::narrow::<false, false>(middle), even);
            assert_eq!(F::<E, M, FINITE>::narrow::<false, true>(middle), code);
            let below = f32::from_bits(middle.to_bits() - 1);
            let above = f32::from_bits(middle.to_bits() + 1);
            assert_eq!(F::<E, M, FINITE>::narrow::<false, false>(below), code);
            assert_eq!(F::<E, M, FINITE>::narrow::<false, false>(above), code + 1);
        }
        let overflow = if FINITE {
            F::<E, M, FINITE>::NAN
        } else {
            F::<E, M, FINITE>::INFINITY
        };
        assert_eq!(
            F::<E, M, FINITE>::narrow::<false, false>(f32::INFINITY),
            overflow
        );
        assert_eq!(F::<E, M, FINITE>::narrow::<true, false>(f32::MAX), max);
        assert_eq!(F::<E, M, FINITE>::narrow::<false, true>(f32::MAX), max);
        let nan = F::<E, M, FINITE>::narrow::<true, false>(f32::NAN);
        assert!(F::<E, M, FINITE>::widen(nan).is_nan());
    }

    #[test]
    fn numbers_of_all_formats() {
        check::<5, 10, false>();
        check::<8, 7, false>();
        check::<4, 3, true>();
        check::<5, 2, false>();
        assert_eq!(E4m3Format::widen(E4m3Format::MAX), 448.0);
        assert_eq!(E5m2Format::widen(E5m2Format::MAX), 57344.0);
        assert_eq!(Binary16::widen(Binary16::MAX), 65504.0);
        assert_eq!(Bfloat16::widen(0x3f80), 1.0);
    }
}
