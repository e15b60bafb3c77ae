//! How tensor cores add up products of floating-point numbers.
//!
//! Products are exact. They and the addend are aligned to the largest of their exponents, which of a product is the sum of its factors'
//! exponents, and lose what is more than some bits below; then they are added up exactly. A sum of single precision loses the bits
//! that it cannot hold; one of half precision is the nearest. What is zero then is positive. An H100 does so, bit for bit: with 25
//! bits below the largest exponent, and in products of numbers of 8 bits by a warpgroup with 13, to which sums of single precision
//! are cut off too. Other generations are not known to do otherwise, and are simulated alike.

use super::Element;
use super::multiply::{Manner, Part, Problem};
use crate::exec::float::canonical;
use crate::exec::narrow::Half;

/// Exponents below those of all products, zeroes' excepted.
const LOWEST: i32 = -500;
/// An exponent above those of all finite products.
const HIGHEST: i32 = 500;

/// How a sum is aligned and rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// The least exponents of normal numbers: of A and B, and of the addend.
    least: [i32; 3],
    /// Bits that are kept below the largest exponent.
    fraction: i32,
    /// Bits that are kept below the exponent of a sum of single precision.
    kept: u32,
    is_half: bool,
}

impl Rounding {
    pub(super) fn of(how: Manner) -> Self {
        let [left, right] = how.factors;
        let (fraction, kept) = if left.bits() == 8 { (13, 13) } else { (25, 23) };
        let least = [left, right, how.result].map(least_exponent);
        Self { least, fraction, kept, is_half: how.result == Element::F16 }
    }

    /// The bits of a rounded sum.
    #[inline(always)]
    pub(super) fn bits(self, sum: f64) -> u64 {
        let (bits, sign) = if self.is_half { (Half::nearest(sum), 1 << 15) } else { (self.single(sum), 1 << 31) };
        if bits == sign { 0 } else { bits }
    }

    /// The bits of the next number of single precision towards zero.
    #[inline(always)]
    fn single(self, sum: f64) -> u64 {
        /// The least subnormal number.
        const UNIT: f64 = f64::from_bits((1023 - 149) << 52);
        let cut = if sum.abs() < f64::from(f32::MIN_POSITIVE) {
            (sum / UNIT).trunc() * UNIT
        } else if sum.is_finite() {
            f64::from_bits(sum.to_bits() & u64::MAX << (52 - self.kept))
        } else {
            sum
        };
        u64::from(canonical(cut as f32).to_bits())
    }
}

/// The least exponent of an element's normal numbers.
fn least_exponent(element: Element) -> i32 {
    match element {
        Element::F16 | Element::E5m2 => -14,
        Element::E4m3 => -6,
        _ => -126,
    }
}

/// The sums of addends and some products, before they are rounded.
#[inline(always)]
pub(super) fn aligned(problem: &Problem<f64>, addends: &[f64], part: Part, how: Rounding) -> Vec<f64> {
    let columns = problem.b.columns;
    let exponents = |values: &[f64], which: usize| -> Vec<i32> {
        values.iter().map(|value| exponent(*value, how.least[which])).collect()
    };
    let factors = [exponents(&problem.a.values, 0), exponents(&problem.b.values, 1)];
    let mut sums = addends.to_vec();
    for (row, sums) in sums.chunks_exact_mut(columns).enumerate() {
        let (blocks, rest) = sums.as_chunks_mut::<TOGETHER>();
        let begin = blocks.len() * TOGETHER;
        for (block, sums) in blocks.iter_mut().enumerate() {
            add(problem, &factors, (row, block * TOGETHER), part, how, sums);
        }
        for (column, sum) in rest.iter_mut().enumerate() {
            add(problem, &factors, (row, begin + column), part, how, std::array::from_mut(sum));
        }
    }
    sums
}

/// Columns that are computed together.
const TOGETHER: usize = 8;

/// Adds to the sums of neighbouring columns of a row.
#[inline(always)]
fn add<const N: usize>(
    problem: &Problem<f64>,
    [left, right]: &[Vec<i32>; 2],
    (row, column): (usize, usize),
    part: Part,
    how: Rounding,
    sums: &mut [f64; N],
) {
    let columns = problem.b.columns;
    let begin = |place: usize| place * columns + column;
    let addends = *sums;
    let mut tops = addends.map(|addend| exponent(addend, how.least[2]));
    for (at, place) in problem.terms(row, part) {
        if let Some(others) = right[begin(place)..].first_chunk::<N>() {
            for lane in 0..N {
                tops[lane] = tops[lane].max(left[at] + others[lane]);
            }
        }
    }
    let scales = tops.map(|top| power(how.fraction - top));
    let mut scaled = [0.0; N];
    for lane in 0..N {
        scaled[lane] = (addends[lane] * scales[lane]).trunc();
    }
    for (at, place) in problem.terms(row, part) {
        let a = problem.a.values[at];
        if let Some(b) = problem.b.values[begin(place)..].first_chunk::<N>() {
            for lane in 0..N {
                scaled[lane] += (a * b[lane] * scales[lane]).trunc();
            }
        }
    }
    for lane in 0..N {
        sums[lane] = scaled[lane] * power(tops[lane] - how.fraction);
        if tops[lane] >= HIGHEST {
            let product = |(at, place): (usize, usize)| (problem.a.values[at], problem.b.values[begin(place) + lane]);
            let products = problem.terms(row, part).map(product);
            sums[lane] = products.fold(addends[lane], |sum, (a, b)| a * b + sum);
        }
    }
}

/// The exponent of a number, at least that of the least normal one; of infinities and NaN one above all others', and of zeroes one below.
#[inline(always)]
fn exponent(value: f64, least: i32) -> i32 {
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    if value == 0.0 { LOWEST } else { exponent.max(least) }
}

/// A power of two; infinities and NaN are multiplied with none that matters.
#[inline(always)]
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(LOWEST, HIGHEST) + 1023) as u64) << 52)
}
