//! The 16-bit formats, one number or two in a register.

use super::exact::{self, BF16, F16, Format, Rounding};
use super::float::Real;
use super::lane::Lane;

/// A half-precision number, by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half(pub(crate) u16);

/// A bfloat16 number, by its bits.
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
            fn of_bits(bits: u64) -> Self {
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
    /// The value; a NaN stays one.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        let bits = u32::from(self.0);
        let (magnitude, sign) = ((bits & 0x7fff) << 13, (bits & 0x8000) << 16);
        // Multiplied by 2^112, the fields of f16 in the place of f32's have their value, subnormals too.
        let finite = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
        let special = magnitude | 0x7f80_0000;
        f32::from_bits(sign | if bits & 0x7c00 == 0x7c00 { special } else { finite })
    }

    /// The bits of the half nearest to a number, to which all NaNs are one.
    pub(crate) fn nearest(value: f64) -> u64 {
        if value.is_nan() { Self::nan(&[]).bits() } else { exact::narrow(value, F16, Rounding::Nearest) }
    }

    /// The nearest half.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let magnitude = bits & 0x7fff_ffff;
        // The sum with this number rounds to the unit of subnormal halves.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
        let normal = magnitude.wrapping_sub(0x3800_0000).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        // All are computed and one is chosen, which the compiler does for many lanes at once.
        let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
        let number = if magnitude >= 0x4780_0000 { 0x7c00 } else { finite };
        Self(if magnitude > 0x7f80_0000 { 0x7fff } else { sign | number as u16 })
    }
}

impl Bfloat {
    /// The value; a NaN stays one.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// The nearest bfloat16.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
        Self(if is_nan { 0x7fff } else { ((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) >> 16) as u16 })
    }
}

/// Arithmetic of 16-bit numbers to nearest, by way of wider ones.
pub(crate) trait Narrow: Real {
    /// The value.
    fn single(self) -> f32;
    /// The nearest number.
    fn of_single(value: f32) -> Self;
    /// `a * b + c`, rounded once.
    fn fused(a: Self, b: Self, c: Self) -> Self;
}

/// Defines a sum that is rounded to odd: of the two numbers next to the exact sum the one whose last bit is set, so that
/// rounding it again is rounding the sum.
macro_rules! odd_sums {
    ($($name:ident $ty:ty),*) => {$(
        #[inline(always)]
        fn $name(a: $ty, b: $ty) -> $ty {
            let sum = a + b;
            let of_b = sum - a;
            let lost = (a - (sum - of_b)) + (b - of_b);
            let bits = sum.to_bits();
            let farther = (lost > 0.0) == (sum > 0.0);
            let moved = if farther { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
            let moves = lost != 0.0 && !lost.is_nan() && bits & 1 == 0;
            <$ty>::from_bits(if moves { moved } else { bits })
        }
    )*};
}

odd_sums!(odd_sum f32, odd_sum_wide f64);

impl Narrow for Half {
    #[inline(always)]
    fn single(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn of_single(value: f32) -> Self {
        Self::from_f32(value)
    }
    #[inline(always)]
    fn fused(a: Self, b: Self, c: Self) -> Self {
        // The product is exact.
        Self::from_f32(odd_sum(a.to_f32() * b.to_f32(), c.to_f32()))
    }
}

impl Narrow for Bfloat {
    #[inline(always)]
    fn single(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn of_single(value: f32) -> Self {
        Self::from_f32(value)
    }
    #[inline(always)]
    fn fused(a: Self, b: Self, c: Self) -> Self {
        // The product would leave the range of f32.
        let sum = odd_sum_wide(f64::from(a.to_f32()) * f64::from(b.to_f32()), f64::from(c.to_f32()));
        let single = sum as f32;
        let is_exact = f64::from(single) == sum;
        let toward_zero = single.to_bits().wrapping_sub(u32::from(f64::from(single).abs() > sum.abs()));
        Self::from_f32(f32::from_bits(if is_exact || sum.is_nan() { single.to_bits() } else { toward_zero | 1 }))
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

/// An approximate function of a 16-bit number, rounded once.
pub(crate) fn approximate_narrow<T: Real>(value: T, f: impl Fn(f64) -> f64) -> T {
    let result = f(value.to_f64());
    if result.is_nan() { T::nan(&[value]) } else { T::of_bits(exact::narrow(result, T::FORMAT, Rounding::Nearest)) }
}

/// The magnitude of a 16-bit number; a NaN becomes the one NaN.
#[inline(always)]
pub(crate) fn abs_narrow<T: Real>(value: T) -> T {
    if value.to_f64().is_nan() { T::nan(&[value]) } else { T::of_bits(value.bits() & 0x7fff) }
}

/// The negative of a 16-bit number; a NaN becomes the one NaN.
#[inline(always)]
pub(crate) fn neg_narrow<T: Real>(value: T) -> T {
    if value.to_f64().is_nan() { T::nan(&[value]) } else { T::of_bits(value.bits() ^ 0x8000) }
}

#[cfg(test)]
mod tests {
    use super::super::float::{self, Mode};
    use super::*;

    #[test]
    fn halves_convert_quickly_as_they_do_exactly() {
        for bits in 0..=u16::MAX {
            let value = Half(bits).to_f32();
            if value.is_nan() {
                assert!(Half(bits).to_f64().is_nan());
            } else {
                assert_eq!(f64::from(value).to_bits(), Half(bits).to_f64().to_bits(), "{bits:#x}");
            }
            // Numbers between two halves, and just beside the middle.
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

    /// Compares arithmetic by way of f32 with the exact one.
    fn compare<T: Narrow + PartialEq + std::fmt::Debug>() {
        let mut state = 5_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state >> 40 & 0xffff;
            // Numbers with few bits meet in the middle between two others more often.
            T::of_bits(if state >> 60 & 1 == 0 { bits } else { bits & 0xfff0 })
        };
        for _ in 0..400_000 {
            let (a, b, c) = (random(), random(), random());
            let near = Mode::NEAREST;
            assert_eq!(T::of_single(a.single() + b.single()), float::add(a, b, near), "{a:?} + {b:?}");
            assert_eq!(T::of_single(a.single() - b.single()), float::sub(a, b, near), "{a:?} - {b:?}");
            assert_eq!(T::of_single(a.single() * b.single()), float::mul(a, b, near), "{a:?} * {b:?}");
            assert_eq!(T::fused(a, b, c), float::fma(a, b, c, near), "{a:?} * {b:?} + {c:?}");
        }
    }

    #[test]
    fn arithmetic_by_way_of_wider_numbers_rounds_as_the_exact_one() {
        compare::<Half>();
        compare::<Bfloat>();
    }

    #[test]
    fn product_in_the_middle_between_two_numbers_goes_where_a_tiny_addend_lies() {
        let tiny = |sign: u16| Bfloat(sign | 1);
        // 129 / 128 times 192 / 128 is 193.5 / 128.
        let (a, b) = (Bfloat(0x3f81), Bfloat(0x3fc0));
        assert_eq!(Bfloat::fused(a, b, tiny(0)), Bfloat(0x3fc2));
        assert_eq!(Bfloat::fused(a, b, tiny(0x8000)), Bfloat(0x3fc1));
    }
}
