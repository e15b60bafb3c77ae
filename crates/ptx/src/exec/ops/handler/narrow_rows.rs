//! Arithmetic on rows of 16-bit numbers, rounded to nearest, in f32.

#[cfg(target_arch = "x86_64")]
mod f16c;

use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::ops::handler::versions;
use crate::exec::values::float::Real;
use crate::exec::values::lane::{LANES, Lane};
use crate::exec::values::narrow::{Bfloat, Half, odd_single};

/// The number of values in a row of pairs.
const NUMBERS: usize = 2 * LANES;

/// A 16-bit format whose arithmetic is done in f32.
///
/// Rows are computed in plain loops, because a closure argument is not compiled with the vector features of the handler.
pub(crate) trait Narrow: Real + Lane<Raw = u32> {
    /// `true` if values widen and narrow in the loop that computes with them, and so stay in registers of the processor.
    const CONVERTS_IN_LOOPS: bool;

    /// Returns the value.
    fn single(self) -> f32;
    /// Creates the nearest number.
    fn from_single(value: f32) -> Self;
    /// Returns `true` if rounding a rounded result again may differ from rounding the exact result once.
    fn may_double_round(value: f32) -> bool;
    /// Returns `true` if the result of `a * b + c` is certainly exact.
    fn is_exact(value: f32, operands: [f32; 3]) -> bool;
    /// Returns `a * b + c` rounded to odd, so that rounding it again gives the exact result rounded once.
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

    /// Returns the values of a row of pairs, in an order that only [`Narrow::narrow_pairs`] relies on.
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

    /// Returns the row of pairs of the numbers nearest to values, which are in the order of [`Narrow::widen_pairs`].
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
fn widen<T: Narrow>(row: &[u32; LANES]) -> [f32; LANES] {
    let mut values = [0.0; LANES];
    for lane in 0..LANES {
        values[lane] = T::from_raw(row[lane]).single();
    }
    values
}

#[inline(always)]
fn narrow<T: Narrow>(values: &[f32; LANES]) -> [u32; LANES] {
    let mut row = [0; LANES];
    for lane in 0..LANES {
        row[lane] = T::from_single(values[lane]).into_raw();
    }
    row
}

#[inline(always)]
fn unpack<T: Narrow>(row: &[u32; LANES]) -> [f32; NUMBERS] {
    let mut values = [0.0; NUMBERS];
    for lane in 0..LANES {
        values[2 * lane] = T::from_raw(row[lane]).single();
        values[2 * lane + 1] = T::from_raw(row[lane] >> 16).single();
    }
    values
}

#[inline(always)]
fn octet<T: Narrow>(pairs: [u32; 4]) -> [f32; 8] {
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

    /// Returns `true` halfway between two normal numbers, and for subnormal ones, whose rounding position differs.
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

    /// Returns `true` if no bits are lost on either side of the sum. For tiny numbers, the lost bits may round to zero.
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

/// Defines a sum that is rounded to odd: of the two numbers next to the exact result, the one whose last bit is set. Rounding it again rounds
/// the exact result.
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

versions! {
    /// `d = f(a, b)`, which is exact in f32, or for which rounding twice equals rounding once.
    binary(operation: F) = run_binary [T, F; WIDE] where T: Narrow, F: Fn(f32, f32) -> f32 + Copy + Send + 'static
}

versions! {
    /// `d = a * b + c`.
    fused() = run_fused [T; WIDE] where T: Narrow
}

versions! {
    /// [`binary`] on pairs.
    packed_binary(operation: F) = run_packed_binary [T, F; WIDE]
    where
        T: Narrow, F: Fn(f32, f32) -> f32 + Copy + Send + 'static
}

versions! {
    /// [`fused`] on pairs.
    packed_fused() = run_packed_fused [T; WIDE] where T: Narrow
}

#[inline(always)]
fn run_binary<T: Narrow, F: Fn(f32, f32) -> f32 + Copy + Send + 'static, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
    operation: F,
) -> Control {
    let a = T::widen::<WIDE>(unit.frame.row::<u32>(op.a));
    let b = T::widen::<WIDE>(unit.frame.row::<u32>(op.b));
    let result = T::narrow::<WIDE>(&zip_with(&a, &b, operation));
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

#[inline(always)]
fn run_packed_binary<
    T: Narrow,
    F: Fn(f32, f32) -> f32 + Copy + Send + 'static,
    const WIDE: bool,
>(
    unit: &mut Unit<'_>,
    op: &Op,
    operation: F,
) -> Control {
    let a = T::widen_pairs::<WIDE>(unit.frame.row::<u32>(op.a));
    let b = T::widen_pairs::<WIDE>(unit.frame.row::<u32>(op.b));
    let result = T::narrow_pairs::<WIDE>(&zip_with(&a, &b, operation));
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

#[inline(always)]
fn run_fused<T: Narrow, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let a = unit.frame.row::<u32>(op.a);
    let b = unit.frame.row::<u32>(op.b);
    let c = unit.frame.row::<u32>(op.c);
    let result = fused_numbers::<T, WIDE>(a, b, c);
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

#[inline(always)]
fn run_packed_fused<T: Narrow, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let a = unit.frame.row::<u32>(op.a);
    let b = unit.frame.row::<u32>(op.b);
    let c = unit.frame.row::<u32>(op.c);
    let result = fused_pairs::<T, WIDE>(a, b, c);
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

/// Returns the value in the lower half of a word.
#[inline(always)]
fn low<T: Narrow>(bits: u32) -> f32 {
    T::from_raw(bits).single()
}

/// Returns the value in the upper half of a word.
#[inline(always)]
fn high<T: Narrow>(bits: u32) -> f32 {
    T::from_raw(bits >> 16).single()
}

/// `a * b + c` of rows.
#[inline(always)]
fn fused_numbers<T: Narrow, const WIDE: bool>(
    a: &[u32; LANES],
    b: &[u32; LANES],
    c: &[u32; LANES],
) -> [u32; LANES] {
    if WIDE && T::CONVERTS_IN_LOOPS {
        let mut row = [0; LANES];
        let mut ambiguous = 0;
        for lane in 0..LANES {
            let value = low::<T>(a[lane]).mul_add(low::<T>(b[lane]), low::<T>(c[lane]));
            ambiguous |= u32::from(T::may_double_round(value));
            row[lane] = T::from_single(value).into_raw();
        }
        if ambiguous == 0 {
            return row;
        }
    }
    let a = T::widen::<WIDE>(a);
    let b = T::widen::<WIDE>(b);
    let c = T::widen::<WIDE>(c);
    T::narrow::<WIDE>(&multiply_add::<T, LANES, WIDE>(&a, &b, &c))
}

/// `a * b + c` of rows of pairs.
#[inline(always)]
fn fused_pairs<T: Narrow, const WIDE: bool>(
    a: &[u32; LANES],
    b: &[u32; LANES],
    c: &[u32; LANES],
) -> [u32; LANES] {
    if WIDE && T::CONVERTS_IN_LOOPS {
        let mut row = [0; LANES];
        let mut ambiguous = 0;
        for lane in 0..LANES {
            let first = low::<T>(a[lane]).mul_add(low::<T>(b[lane]), low::<T>(c[lane]));
            let second = high::<T>(a[lane]).mul_add(high::<T>(b[lane]), high::<T>(c[lane]));
            ambiguous |= u32::from(T::may_double_round(first) | T::may_double_round(second));
            row[lane] = T::from_single(second).into_raw() << 16 | T::from_single(first).into_raw();
        }
        if ambiguous == 0 {
            return row;
        }
    }
    let a = T::widen_pairs::<WIDE>(a);
    let b = T::widen_pairs::<WIDE>(b);
    let c = T::widen_pairs::<WIDE>(c);
    T::narrow_pairs::<WIDE>(&multiply_add::<T, NUMBERS, WIDE>(&a, &b, &c))
}

#[inline(always)]
fn zip_with<const N: usize>(a: &[f32; N], b: &[f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    let mut result = [0.0; N];
    for index in 0..N {
        result[index] = f(a[index], b[index]);
    }
    result
}

/// Computes `a * b + c` such that it may be rounded again. Each method is exact except for midpoints, which are computed separately.
#[inline(always)]
fn multiply_add<T: Narrow, const N: usize, const WIDE: bool>(
    a: &[f32; N],
    b: &[f32; N],
    c: &[f32; N],
) -> [f32; N] {
    let mut result = [0.0; N];
    let mut ambiguous = u32::from(!WIDE);
    if WIDE {
        for index in 0..N {
            result[index] = a[index].mul_add(b[index], c[index]);
            ambiguous |= u32::from(T::may_double_round(result[index]));
        }
    }
    if WIDE && ambiguous != 0 {
        ambiguous = 0;
        for index in 0..N {
            let is_exact = T::is_exact(result[index], [a[index], b[index], c[index]]);
            ambiguous |= u32::from(T::may_double_round(result[index]) & !is_exact);
        }
    }
    if ambiguous != 0 {
        for index in 0..N {
            result[index] = T::odd_fused(a[index], b[index], c[index]);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::ops::handler::wide_vectors;
    use crate::exec::values::float::{self, Mode};

    /// Compares all four operations on rows of numbers and of pairs with exact ones.
    fn compare<T: Narrow + PartialEq + std::fmt::Debug, const WIDE: bool>() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..15_000 {
            let [a, b, c] = [(); 3].map(|()| random_row(&mut random));
            check::<T>([&a, &b, &c], 0, results::<T, WIDE>(&a, &b, &c));
            let pairs = packed_results::<T, WIDE>(&a, &b, &c);
            check::<T>(
                [&a, &b, &c],
                0,
                pairs.map(|row| row.map(|bits| bits & 0xffff)),
            );
            check::<T>(
                [&a, &b, &c],
                16,
                pairs.map(|row| row.map(|bits| bits >> 16)),
            );
        }
    }

    /// Returns random pairs. Half of them have few bits, because their results are midpoints more often.
    fn random_row(random: &mut fastrand::Rng) -> [u32; LANES] {
        std::array::from_fn(|_| {
            let mask = if random.bool() { u32::MAX } else { 0xfff0_fff0 };
            random.u32(..) & mask
        })
    }

    type Rows<'r> = [&'r [u32; LANES]; 3];

    fn results<T: Narrow, const WIDE: bool>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
    ) -> [[u32; LANES]; 4] {
        let fused = fused_numbers::<T, WIDE>(a, b, c);
        let [a, b] = [a, b].map(|row| T::widen::<WIDE>(row));
        let exact = [
            zip_with(&a, &b, |a, b| a + b),
            zip_with(&a, &b, |a, b| a - b),
            zip_with(&a, &b, |a, b| a * b),
        ];
        let [sum, difference, product] = exact.map(|values| T::narrow::<WIDE>(&values));
        [sum, difference, product, fused]
    }

    fn packed_results<T: Narrow, const WIDE: bool>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
    ) -> [[u32; LANES]; 4] {
        let fused = fused_pairs::<T, WIDE>(a, b, c);
        let [a, b] = [a, b].map(|row| T::widen_pairs::<WIDE>(row));
        let exact = [
            zip_with(&a, &b, |a, b| a + b),
            zip_with(&a, &b, |a, b| a - b),
            zip_with(&a, &b, |a, b| a * b),
        ];
        let [sum, difference, product] = exact.map(|values| T::narrow_pairs::<WIDE>(&values));
        [sum, difference, product, fused]
    }

    #[test]
    fn unpacked_pairs_are_in_their_order() {
        fn check<T: Narrow, const WIDE: bool>() {
            let row = std::array::from_fn(|lane| 0x3c01_3c00 + 0x0002_0002 * lane as u32);
            let expected: Vec<f32> = (0..NUMBERS)
                .map(|number| T::from_raw(0x3c00 + number as u32).single())
                .collect();
            assert_eq!(T::unpack::<WIDE>(&row)[..], expected);
        }
        check::<Half, false>();
        check::<Bfloat, false>();
        if wide_vectors() {
            check::<Half, true>();
            check::<Bfloat, true>();
        }
    }

    fn check<T: Narrow + PartialEq + std::fmt::Debug>(
        rows: Rows<'_>,
        shift: u32,
        results: [[u32; LANES]; 4],
    ) {
        for lane in 0..LANES {
            let [a, b, c] = rows.map(|row| T::from_raw(row[lane] >> shift));
            let expected = [
                float::add(a, b, Mode::NEAREST),
                float::sub(a, b, Mode::NEAREST),
                float::mul(a, b, Mode::NEAREST),
                float::fma(a, b, c, Mode::NEAREST),
            ];
            assert_eq!(
                results.map(|row| T::from_raw(row[lane])),
                expected,
                "{a:?} {b:?} {c:?}"
            );
        }
    }

    #[test]
    fn arithmetic_in_f32_rounds_like_exact_arithmetic() {
        compare::<Half, false>();
        compare::<Bfloat, false>();
        // Outside of a handler, `mul_add` is a function of the C library, and MinGW's is wrong.
        if wide_vectors() && !cfg!(all(windows, target_env = "gnu")) {
            compare::<Half, true>();
            compare::<Bfloat, true>();
        }
    }

    #[test]
    fn halves_convert_equally_with_vectors() {
        for first in (0..=u16::MAX).step_by(LANES) {
            let row = std::array::from_fn(|lane| u32::from(first) + lane as u32);
            let values = Half::widen::<false>(&row);
            let next = values.map(|value| f32::from_bits(value.to_bits() + 0x1000));
            if wide_vectors() {
                for values in [values, next] {
                    assert_eq!(
                        Half::narrow::<true>(&values),
                        Half::narrow::<false>(&values),
                        "{first:#x}"
                    );
                }
                assert_eq!(
                    Half::narrow::<true>(&Half::widen::<true>(&row)),
                    Half::narrow::<false>(&values)
                );
            }
        }
    }

    #[test]
    fn midpoint_product_rounds_toward_a_tiny_addend() {
        for (sign, expected) in [(0, 0x3fc2), (0x8000, 0x3fc1)] {
            // 129 / 128 times 192 / 128 is 193.5 / 128.
            let [a, b, c] =
                [0x3f81, 0x3fc0, sign | 1].map(|bits| Bfloat::widen::<false>(&[bits; LANES]));
            let result = multiply_add::<Bfloat, LANES, false>(&a, &b, &c);
            assert_eq!(Bfloat::narrow::<false>(&result), [expected; LANES]);
            if wide_vectors() {
                assert_eq!(multiply_add::<Bfloat, LANES, true>(&a, &b, &c), result);
            }
        }
    }
}
