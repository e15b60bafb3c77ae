//! Rows of 16-bit numbers, whose arithmetic is done in f32.

#[cfg(target_arch = "x86_64")]
mod f16c;

use super::float::Real;
use super::lane::{LANES, Lane};
use super::narrow::{Bfloat, Half, odd_single};

/// The number of values in a row of pairs.
pub(crate) const NUMBERS: usize = 2 * LANES;

/// A 16-bit format whose arithmetic is done in f32.
///
/// Rows are computed in plain loops, because a closure argument is not compiled with the vector
/// features of the handler.
pub(crate) trait Narrow: Real + Lane<Raw = u32> {
    /// `true` if values widen and narrow in the loop that computes with them, and so stay in
    /// registers of the processor.
    const CONVERTS_IN_LOOPS: bool;

    /// Returns the value.
    fn single(self) -> f32;
    /// Creates the nearest number.
    fn from_single(value: f32) -> Self;
    /// Returns `true` if rounding a rounded result again may differ from rounding the exact result
    /// once.
    fn may_double_round(value: f32) -> bool;
    /// Returns `true` if the result of `a * b + c` is certainly exact.
    fn is_exact(value: f32, operands: [f32; 3]) -> bool;
    /// Returns `a * b + c` rounded to odd, so that rounding it again gives the exact result rounded
    /// once.
    fn odd_fused(a: f32, b: f32, c: f32) -> f32;

    /// Returns the values in the lower halves of a row.
    #[inline(always)]
    fn widen<const WIDE: bool>(row: &[u32; LANES]) -> [f32; LANES] {
        widen::<Self>(row)
    }

    /// Returns a row with the nearest numbers in its lower halves.
    #[inline(always)]
    fn narrow<const WIDE: bool>(values: &[f32; LANES]) -> [u32; LANES] {
        narrow::<Self>(values)
    }

    /// Returns the values of a row of pairs, in an order that only [`Narrow::narrow_pairs`] relies
    /// on.
    #[inline(always)]
    fn widen_pairs<const WIDE: bool>(row: &[u32; LANES]) -> [f32; NUMBERS] {
        let mut values = [0.0; NUMBERS];
        for lane in 0..LANES {
            values[lane] = Self::from_raw(row[lane]).single();
            values[LANES + lane] = Self::from_raw(row[lane] >> 16).single();
        }
        values
    }

    /// Returns the values of a row of pairs, the lower one of each first.
    #[inline(always)]
    fn unpack<const WIDE: bool>(row: &[u32; LANES]) -> [f32; NUMBERS] {
        unpack::<Self>(row)
    }

    /// Returns the values of four pairs, the lower one of each first.
    #[inline(always)]
    fn octet<const WIDE: bool>(pairs: [u32; 4]) -> [f32; 8] {
        octet::<Self>(pairs)
    }

    /// Returns the row of pairs of the numbers nearest to values, which are in the order of
    /// [`Narrow::widen_pairs`].
    #[inline(always)]
    fn narrow_pairs<const WIDE: bool>(values: &[f32; NUMBERS]) -> [u32; LANES] {
        let mut row = [0; LANES];
        for lane in 0..LANES {
            let [low, high] = [
                Self::from_single(values[lane]),
                Self::from_single(values[LANES + lane]),
            ];
            row[lane] = high.into_raw() << 16 | low.into_raw();
        }
        row
    }
}

#[inline(always)]
pub(crate) fn widen<T: Narrow>(row: &[u32; LANES]) -> [f32; LANES] {
    let mut values = [0.0; LANES];
    for lane in 0..LANES {
        values[lane] = T::from_raw(row[lane]).single();
    }
    values
}

#[inline(always)]
pub(crate) fn narrow<T: Narrow>(values: &[f32; LANES]) -> [u32; LANES] {
    let mut row = [0; LANES];
    for lane in 0..LANES {
        row[lane] = T::from_single(values[lane]).into_raw();
    }
    row
}

#[inline(always)]
pub(crate) fn unpack<T: Narrow>(row: &[u32; LANES]) -> [f32; NUMBERS] {
    let mut values = [0.0; NUMBERS];
    for lane in 0..LANES {
        values[2 * lane] = T::from_raw(row[lane]).single();
        values[2 * lane + 1] = T::from_raw(row[lane] >> 16).single();
    }
    values
}

#[inline(always)]
pub(crate) fn octet<T: Narrow>(pairs: [u32; 4]) -> [f32; 8] {
    let mut values = [0.0; 8];
    for (pair, &bits) in pairs.iter().enumerate() {
        values[2 * pair] = T::from_raw(bits).single();
        values[2 * pair + 1] = T::from_raw(bits >> 16).single();
    }
    values
}

impl Narrow for Half {
    const CONVERTS_IN_LOOPS: bool = false;

    #[inline(always)]
    fn single(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn from_single(value: f32) -> Self {
        Self::from_f32(value)
    }

    /// Returns `true` halfway between two normal numbers, and for subnormal ones, whose rounding
    /// position differs.
    #[inline(always)]
    fn may_double_round(value: f32) -> bool {
        let bits = value.to_bits();
        (bits & 0x1fff == 0x1000) | ((bits & 0x7fff_ffff).wrapping_sub(1) < 0x387f_ffff)
    }

    #[inline(always)]
    fn is_exact(_value: f32, _operands: [f32; 3]) -> bool {
        false
    }

    #[inline(always)]
    fn odd_fused(a: f32, b: f32, c: f32) -> f32 {
        // The product is exact.
        odd_sum(a * b, c)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn widen<const WIDE: bool>(row: &[u32; LANES]) -> [f32; LANES] {
        if WIDE {
            // SAFETY: only handlers selected for AVX2 and F16C pass `WIDE`.
            return unsafe { f16c::widen(row) };
        }
        widen::<Self>(row)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn narrow<const WIDE: bool>(values: &[f32; LANES]) -> [u32; LANES] {
        if WIDE {
            // SAFETY: only handlers selected for AVX2 and F16C pass `WIDE`.
            return unsafe { f16c::narrow(values) };
        }
        narrow::<Self>(values)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn widen_pairs<const WIDE: bool>(row: &[u32; LANES]) -> [f32; NUMBERS] {
        if WIDE {
            // SAFETY: only handlers selected for AVX2 and F16C pass `WIDE`.
            return unsafe { f16c::widen_pairs(row) };
        }
        unpack::<Self>(row)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn unpack<const WIDE: bool>(row: &[u32; LANES]) -> [f32; NUMBERS] {
        Self::widen_pairs::<WIDE>(row)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn octet<const WIDE: bool>(pairs: [u32; 4]) -> [f32; 8] {
        if WIDE {
            // SAFETY: only handlers selected for AVX2 and F16C pass `WIDE`.
            return unsafe { f16c::octet(pairs) };
        }
        octet::<Self>(pairs)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn narrow_pairs<const WIDE: bool>(values: &[f32; NUMBERS]) -> [u32; LANES] {
        if WIDE {
            // SAFETY: only handlers selected for AVX2 and F16C pass `WIDE`.
            return unsafe { f16c::narrow_pairs(values) };
        }
        std::array::from_fn(|lane| {
            let [low, high] = [values[2 * lane], values[2 * lane + 1]]
                .map(|value| Self::from_f32(value).into_raw());
            high << 16 | low
        })
    }
}

impl Narrow for Bfloat {
    const CONVERTS_IN_LOOPS: bool = true;

    #[inline(always)]
    fn single(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn from_single(value: f32) -> Self {
        Self::from_f32(value)
    }

    #[inline(always)]
    fn may_double_round(value: f32) -> bool {
        value.to_bits() & 0xffff == 0x8000
    }

    /// Returns `true` if no bits are lost on either side of the sum. For tiny numbers, the lost
    /// bits may round to zero.
    #[inline(always)]
    fn is_exact(value: f32, [a, b, c]: [f32; 3]) -> bool {
        const TINY: u32 = 0x0d80_0000;
        let product = value - c;
        (value - product == c)
            & (a.mul_add(b, -product) == 0.0)
            & (value.to_bits() & 0x7fff_ffff > TINY)
    }

    #[inline(always)]
    fn odd_fused(a: f32, b: f32, c: f32) -> f32 {
        // The product exceeds the range of f32.
        odd_single(odd_sum_wide(f64::from(a) * f64::from(b), f64::from(c)))
    }
}

/// Defines a sum that is rounded to odd: of the two numbers next to the exact result, the one whose
/// last bit is set. Rounding it again rounds the exact result.
macro_rules! odd_sums {
    ($($name:ident $ty:ty),*) => {$(
        #[inline(always)]
        fn $name(a: $ty, b: $ty) -> $ty {
            let sum = a + b;
            // The rounding error of the sum, which is exact (two-sum).
            let rounded_b = sum - a;
            let error = (a - (sum - rounded_b)) + (b - rounded_b);
            let bits = sum.to_bits();
            let is_away_from_zero = (error > 0.0) == (sum > 0.0);
            let odd = if is_away_from_zero { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
            let is_inexact = error != 0.0 && !error.is_nan() && bits & 1 == 0;
            <$ty>::from_bits(if is_inexact { odd } else { bits })
        }
    )*};
}

odd_sums!(odd_sum f32, odd_sum_wide f64);
