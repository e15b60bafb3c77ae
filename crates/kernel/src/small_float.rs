//! Conversions between `f32` and formats of 8 and 16 bits, on integers: on the host, and for GPUs
//! that lack the instructions.

/// A format with `E` bits of exponent and `M` bits of mantissa. A `FINITE` one has no infinities,
/// and a single NaN of each sign.
pub(crate) struct Format<const E: u32, const M: u32, const FINITE: bool>;

/// IEEE binary16.
pub(crate) type Binary16 = Format<5, 10, false>;
/// bfloat16.
pub(crate) type Bfloat16 = Format<8, 7, false>;
/// FP8 E4M3, with numbers up to 448.
pub(crate) type E4m3Format = Format<4, 3, true>;
/// FP8 E5M2, with numbers up to 57344.
pub(crate) type E5m2Format = Format<5, 2, false>;

/// Implements what numbers and their pairs have in common: conversions from and to bits, and the
/// traits of plain memory.
macro_rules! impl_plain_number {
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
pub(crate) use impl_plain_number;

/// Numbers beyond the largest become infinite or NaN.
pub(crate) const OVERFLOW: bool = false;
/// Numbers beyond the largest become the largest.
pub(crate) const SATURATE: bool = true;
/// Rounds to the nearest number.
pub(crate) const NEAREST: bool = false;
/// Rounds toward zero.
pub(crate) const TOWARD_ZERO: bool = true;

const F32_INFINITY: u32 = 0x7f80_0000;
/// The bit of a normal number's mantissa that is not stored.
const F32_IMPLICIT_BIT: u32 = 0x0080_0000;
const F32_MANTISSA: u32 = 0x007f_ffff;

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

    /// Rounds a number to the nearest one of the format, or toward zero if `TRUNCATING`. If
    /// `SATURATING`, numbers beyond the largest and infinities become the largest.
    #[inline(always)]
    pub(crate) fn from_f32<const SATURATING: bool, const TRUNCATING: bool>(number: f32) -> u32 {
        let bits = number.to_bits();
        let sign = (bits >> 31) * Self::SIGN;
        let absolute = bits & 0x7fff_ffff;
        if absolute > F32_INFINITY {
            return sign | Self::NAN;
        }
        let exponent = (absolute >> 23).max(1).cast_signed() - 127;
        let implicit_bit = if absolute < F32_IMPLICIT_BIT {
            0
        } else {
            F32_IMPLICIT_BIT
        };
        let mantissa = (absolute & F32_MANTISSA) | implicit_bit;
        let min_exponent = 1 - Self::BIAS;
        // A subnormal number has fewer bits.
        let subnormal_shift = (min_exponent - exponent).clamp(0, 26).cast_unsigned();
        let shift = (23 - M + subnormal_shift).min(26);
        let rounding_increment = if TRUNCATING {
            0
        } else {
            (1 << (shift - 1)) - 1 + ((mantissa >> shift) & 1)
        };
        let rounded = (mantissa + rounding_increment) >> shift;
        // The implicit bit of a normal number adds 1 to the exponent, and so does a carry.
        let scale = (exponent - min_exponent).max(0).cast_unsigned();
        let encoded = (scale << M) + rounded;
        let is_infinite = absolute == F32_INFINITY;
        let encoded = if encoded <= Self::MAX && !is_infinite {
            encoded
        } else if SATURATING || (TRUNCATING && !is_infinite) {
            Self::MAX
        } else if FINITE {
            Self::NAN
        } else {
            Self::INFINITY
        };
        sign | encoded
    }

    /// Converts a number of the format.
    #[inline(always)]
    pub(crate) fn to_f32(encoded: u32) -> f32 {
        let sign = (encoded & Self::SIGN) << (31 - E - M);
        let absolute = encoded & (Self::SIGN - 1);
        let exponent = absolute >> M;
        let bits = absolute << (23 - M);
        let is_special = if FINITE {
            absolute == Self::NAN
        } else {
            absolute >= Self::INFINITY
        };
        let magnitude = if is_special {
            bits | F32_INFINITY
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

    impl<const E: u32, const M: u32, const FINITE: bool> Format<E, M, FINITE> {
        /// Checks that every value round-trips, and that midpoints round to even.
        fn check() {
            for encoded in 0..=Self::MAX {
                let number = Self::to_f32(encoded);
                assert_eq!(Self::from_f32::<OVERFLOW, NEAREST>(number), encoded);
                let negative = Self::from_f32::<SATURATE, TOWARD_ZERO>(-number);
                assert_eq!(negative, encoded | Self::SIGN);
                if encoded == Self::MAX {
                    continue;
                }
                let next = Self::to_f32(encoded + 1);
                let middle = ((f64::from(number) + f64::from(next)) / 2.0) as f32;
                let even = encoded + encoded % 2;
                assert_eq!(Self::from_f32::<OVERFLOW, NEAREST>(middle), even);
                assert_eq!(Self::from_f32::<OVERFLOW, TOWARD_ZERO>(middle), encoded);
                let below = f32::from_bits(middle.to_bits() - 1);
                let above = f32::from_bits(middle.to_bits() + 1);
                assert_eq!(Self::from_f32::<OVERFLOW, NEAREST>(below), encoded);
                assert_eq!(Self::from_f32::<OVERFLOW, NEAREST>(above), encoded + 1);
            }
            let overflow = if FINITE { Self::NAN } else { Self::INFINITY };
            assert_eq!(Self::from_f32::<OVERFLOW, NEAREST>(f32::INFINITY), overflow);
            assert_eq!(Self::from_f32::<SATURATE, NEAREST>(f32::MAX), Self::MAX);
            assert_eq!(Self::from_f32::<OVERFLOW, TOWARD_ZERO>(f32::MAX), Self::MAX);
            let nan = Self::from_f32::<SATURATE, NEAREST>(f32::NAN);
            assert!(Self::to_f32(nan).is_nan());
        }
    }

    #[test]
    fn numbers_of_all_formats() {
        Binary16::check();
        Bfloat16::check();
        E4m3Format::check();
        E5m2Format::check();
        assert_eq!(E4m3Format::to_f32(E4m3Format::MAX), 448.0);
        assert_eq!(E5m2Format::to_f32(E5m2Format::MAX), 57344.0);
        assert_eq!(Binary16::to_f32(Binary16::MAX), 65504.0);
        assert_eq!(Bfloat16::to_f32(0x3f80), 1.0);
    }
}
