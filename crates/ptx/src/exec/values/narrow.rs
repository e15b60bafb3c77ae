//! The 16-bit floating-point formats, as one number or two in a register.

use super::exact::{self, BF16, F16, Format, Rounding};
use super::float::{Real, flush_any};
use super::lane::Lane;

/// A half-precision number, as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half(pub(crate) u16);

/// A bfloat16 number, as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bfloat(pub(crate) u16);

macro_rules! narrow_reals {
    ($($ty:ident $format:ident),*) => {$(
        impl Lane for $ty {
            type Raw = u32;
            #[inline(always)]
            fn from_raw(raw: u32) -> Self {
                Self(raw as u16)
            }
            #[inline(always)]
            fn into_raw(self) -> u32 {
                u32::from(self.0)
            }
        }

        impl Real for $ty {
            const FORMAT: Format = $format;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self.to_f32())
            }
            #[inline(always)]
            fn from_low_bits(bits: u64) -> Self {
                Self(bits as u16)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.0)
            }
            #[inline(always)]
            fn nan(_operands: &[Self]) -> Self {
                Self(0x7fff)
            }
        }
    )*};
}

narrow_reals!(Half F16, Bfloat BF16);

impl Half {
    /// Returns the value. A NaN stays a NaN.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        let bits = u32::from(self.0);
        let magnitude = (bits & 0x7fff) << 13;
        let sign = (bits & 0x8000) << 16;
        // Multiplication by 2^112 corrects the exponent of an f16 in the fields of an f32, also for
        // subnormals.
        let finite = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
        let special = magnitude | 0x7f80_0000;
        f32::from_bits(
            sign | if bits & 0x7c00 == 0x7c00 {
                special
            } else {
                finite
            },
        )
    }

    /// Returns the bits of the f16 nearest to a number. Every NaN gives the same NaN.
    #[inline(always)]
    pub(crate) fn nearest(value: f64) -> u64 {
        Self::from_f32(odd_single(value)).bits()
    }

    /// Returns the nearest f16.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let magnitude = bits & 0x7fff_ffff;
        // The addition rounds to the unit of subnormal f16.
        let subnormal = (f32::from_bits(magnitude) + 0.5)
            .to_bits()
            .wrapping_sub(0.5_f32.to_bits());
        let normal = magnitude
            .wrapping_sub(0x3800_0000)
            .wrapping_add(0xfff + (magnitude >> 13 & 1))
            >> 13;
        // All cases are computed and one is selected, which the compiler vectorizes.
        let finite = if magnitude < 0x3880_0000 {
            subnormal
        } else {
            normal
        };
        let number = if magnitude >= 0x4780_0000 {
            0x7c00
        } else {
            finite
        };
        Self(if magnitude > 0x7f80_0000 {
            0x7fff
        } else {
            sign | number as u16
        })
    }
}

impl Bfloat {
    /// Returns the value. A NaN stays a NaN.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Returns the nearest bfloat16.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
        // The sum exceeds 32 bits only for a NaN.
        Self(if is_nan {
            0x7fff
        } else {
            (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
        })
    }
}

/// Two numbers in one register, the first in the lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<T>(pub(crate) T, pub(crate) T);

macro_rules! pairs {
    ($($ty:ty as $raw:ty, $half:literal),*) => {$(
        impl Lane for Pair<$ty> {
            type Raw = $raw;
            #[inline(always)]
            fn from_raw(raw: $raw) -> Self {
                Self(<$ty>::from_raw(raw as u32), <$ty>::from_raw((raw >> $half) as u32))
            }
            #[inline(always)]
            fn into_raw(self) -> $raw {
                <$raw>::from(self.1.into_raw()) << $half | <$raw>::from(self.0.into_raw())
            }
        }
    )*};
}

pairs!(Half as u32, 16, Bfloat as u32, 16, f32 as u64, 32);

impl<T: Real> Pair<T> {
    /// Applies an operation to each number.
    #[inline(always)]
    pub(crate) fn map(self, f: impl Fn(T) -> T) -> Self {
        Self(f(self.0), f(self.1))
    }

    /// Applies an operation to the first and to the second numbers.
    #[inline(always)]
    pub(crate) fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Self(f(self.0, other.0), f(self.1, other.1))
    }

    /// Applies an operation of three operands to the first and to the second numbers.
    #[inline(always)]
    pub(crate) fn zip3(self, b: Self, c: Self, f: impl Fn(T, T, T) -> T) -> Self {
        Self(f(self.0, b.0, c.0), f(self.1, b.1, c.1))
    }

    /// Flushes subnormal numbers to zero.
    #[inline(always)]
    pub(crate) fn flushed(self) -> Self {
        self.map(flush_any)
    }
}

/// Computes an approximate function of a 16-bit number, rounded once.
pub(crate) fn approximate_narrow<T: Real>(value: T, f: impl Fn(f64) -> f64) -> T {
    let result = f(value.to_f64());
    if result.is_nan() {
        T::nan(&[value])
    } else {
        T::from_low_bits(exact::narrow(result, T::FORMAT, Rounding::Nearest))
    }
}

/// Returns the magnitude of a 16-bit number. A NaN becomes the canonical NaN.
#[inline(always)]
pub(crate) fn abs_narrow<T: Real>(value: T) -> T {
    if value.to_f64().is_nan() {
        T::nan(&[value])
    } else {
        T::from_low_bits(value.bits() & 0x7fff)
    }
}

/// Returns the negated 16-bit number. A NaN becomes the canonical NaN.
#[inline(always)]
pub(crate) fn neg_narrow<T: Real>(value: T) -> T {
    if value.to_f64().is_nan() {
        T::nan(&[value])
    } else {
        T::from_low_bits(value.bits() ^ 0x8000)
    }
}

/// Rounds a number to odd in f32, so that rounding it to 16 bits rounds the original number.
#[inline(always)]
pub(crate) fn odd_single(value: f64) -> f32 {
    let single = value as f32;
    let is_exact = f64::from(single) == value;
    let toward_zero = single
        .to_bits()
        .wrapping_sub(u32::from(f64::from(single).abs() > value.abs()));
    f32::from_bits(if is_exact || value.is_nan() {
        single.to_bits()
    } else {
        toward_zero | 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_convert_quickly_as_they_do_exactly() {
        for bits in 0..=u16::MAX {
            let value = Half(bits).to_f32();
            if value.is_nan() {
                assert!(Half(bits).to_f64().is_nan());
            } else {
                assert_eq!(
                    f64::from(value).to_bits(),
                    Half(bits).to_f64().to_bits(),
                    "{bits:#x}"
                );
            }
            // Numbers between two f16, and close to their midpoint.
            for offset in [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff] {
                let single = f32::from_bits(value.to_bits() | offset);
                if !single.is_nan() {
                    let exact = exact::narrow(f64::from(single), F16, Rounding::Nearest);
                    assert_eq!(u64::from(Half::from_f32(single).0), exact, "{single:e}");
                    let exact = exact::narrow(f64::from(single), BF16, Rounding::Nearest);
                    assert_eq!(u64::from(Bfloat::from_f32(single).0), exact, "{single:e}");
                }
            }
        }
        assert_eq!(Half::from_f32(f32::NAN), Half(0x7fff));
        assert_eq!(Bfloat::from_f32(f32::NAN), Bfloat(0x7fff));
    }
}
