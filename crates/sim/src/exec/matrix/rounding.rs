//! How tensor cores add up products of floating-point numbers.
//!
//! Products are exact. They and the addend are aligned to the largest of their exponents, which of a product is the sum of its factors'
//! exponents, and lose what is more than some bits below; then they are added up exactly. A sum of single precision loses the bits
//! that it cannot hold; one of half precision is the nearest. What is zero then is positive. An H100 does so, bit for bit: with 25
//! bits below the largest exponent, and in products of numbers of 8 bits by a warpgroup with 13, to which sums of single precision
//! are cut off too. Other generations are not known to do otherwise, and are simulated alike.

use super::multiply::{Manner, Part, Problem};
use super::{Element, Numbers, fixed_point};
use crate::exec::float::canonical;
use crate::exec::narrow::Half;

/// Exponents below those of all products, zeroes' excepted.
pub(super) const LOWEST: i32 = -500;
/// An exponent above those of all finite products.
const HIGHEST: i32 = 500;

/// How a sum is aligned and rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// The least exponents of normal numbers: of A and B, and of the addend.
    pub(super) least: [i32; 3],
    /// Bits that are kept below the largest exponent.
    pub(super) fraction: i32,
    /// Bits that are kept below the exponent of a sum of single precision.
    pub(super) kept: u32,
    pub(super) is_half: bool,
}

impl Rounding {
    pub(super) fn of(how: Manner) -> Self {
        let [left, right] = how.factors;
        let (fraction, kept) = if left.bits() == 8 { (13, 13) } else { (25, 23) };
        let least = [left, right, how.result].map(least_exponent);
        Self { least, fraction, kept, is_half: how.result == Element::F16 }
    }

    /// Computes the bits of rounded sums into an empty buffer.
    #[inline(always)]
    pub(super) fn round(self, sums: &[f64], bits: &mut Numbers<u32>) {
        bits.resize(sums.len(), 0);
        let (blocks, rest) = sums.as_chunks::<TOGETHER>();
        let (bits_of_blocks, bits_of_rest) = bits.as_chunks_mut::<TOGETHER>();
        for (bits, sums) in bits_of_blocks.iter_mut().zip(blocks) {
            *bits = self.block(sums);
        }
        for (bits, sum) in bits_of_rest.iter_mut().zip(rest) {
            [*bits] = self.block(&[*sum]);
        }
    }

    /// The same for sums that are rounded together.
    #[inline(always)]
    fn block<const N: usize>(self, sums: &[f64; N]) -> [u32; N] {
        let mut bits = [0; N];
        if self.is_half {
            for lane in 0..N {
                bits[lane] = Half::nearest(sums[lane]) as u32;
                bits[lane] = if bits[lane] == 1 << 15 { 0 } else { bits[lane] };
            }
        } else if are_normal(sums) {
            for lane in 0..N {
                // The sum with zero has no negative zero.
                let cut = f64::from_bits(sums[lane].to_bits() & u64::MAX << (52 - self.kept)) + 0.0;
                bits[lane] = (cut as f32).to_bits();
            }
        } else {
            for lane in 0..N {
                bits[lane] = self.single(sums[lane]);
            }
        }
        bits
    }

    /// Returns the bits of the next number of single precision towards zero.
    #[inline(never)]
    fn single(self, sum: f64) -> u32 {
        /// The least subnormal number.
        const UNIT: f64 = f64::from_bits((1023 - 149) << 52);
        let cut = if sum.abs() < f64::from(f32::MIN_POSITIVE) {
            (sum / UNIT).trunc() * UNIT
        } else if sum.is_finite() {
            f64::from_bits(sum.to_bits() & u64::MAX << (52 - self.kept))
        } else {
            sum
        };
        canonical(cut as f32 + 0.0).to_bits()
    }
}

/// Returns `true` if all sums are zero or finite and not subnormal in single precision.
#[inline(always)]
fn are_normal<const N: usize>(sums: &[f64; N]) -> bool {
    let mut are_normal = true;
    for sum in sums {
        let size = sum.abs();
        are_normal &= (size == 0.0) | (size >= f64::from(f32::MIN_POSITIVE)) & (size < f64::INFINITY);
    }
    are_normal
}

/// Returns the least exponent of an element's normal numbers.
fn least_exponent(element: Element) -> i32 {
    match element {
        Element::F16 | Element::E5m2 => -14,
        Element::E4m3 => -6,
        _ => -126,
    }
}

/// Computes the sums of some products and addends, without rounding them.
#[inline(always)]
pub(super) fn aligned(problem: &Problem<f32>, addends: &[f32], sums: &mut [f64], part: Part, how: Rounding) {
    if !fixed_point::add(problem, addends, sums, part, how) {
        add_widely(problem, addends, sums, part, how);
    }
}

/// The same in double precision, for factors of any exponents.
#[inline(never)]
pub(super) fn add_widely(problem: &Problem<f32>, addends: &[f32], sums: &mut [f64], part: Part, how: Rounding) {
    let columns = problem.b.columns;
    sums.iter_mut().zip(addends).for_each(|(sum, &addend)| *sum = addend.into());
    let left = exponents(&problem.a.values, how.least[0]);
    let right = exponents(&problem.b.values, how.least[1]);
    for (row, sums) in sums.chunks_exact_mut(columns).enumerate() {
        let (blocks, rest) = sums.as_chunks_mut::<TOGETHER>();
        let begin = blocks.len() * TOGETHER;
        for (block, sums) in blocks.iter_mut().enumerate() {
            add(problem, [&left, &right], (row, block * TOGETHER), part, how, sums);
        }
        for (column, sum) in rest.iter_mut().enumerate() {
            add(problem, [&left, &right], (row, begin + column), part, how, std::array::from_mut(sum));
        }
    }
}

#[inline(always)]
fn exponents(values: &[f32], least: i32) -> Vec<i32> {
    values.iter().map(|&value| exponent(value.into(), least)).collect()
}

/// Columns that are computed together.
pub(super) const TOGETHER: usize = 8;

/// Adds to the sums of neighboring columns of a row. Plain loops, so that they are compiled with the instructions of the handler.
#[inline(always)]
fn add<const N: usize>(
    problem: &Problem<f32>,
    [left, right]: [&[i32]; 2],
    (row, column): (usize, usize),
    part: Part,
    how: Rounding,
    sums: &mut [f64; N],
) {
    let (each, columns) = (problem.a.columns, problem.b.columns);
    let addends = *sums;
    let mut tops = [0; N];
    for lane in 0..N {
        tops[lane] = exponent(addends[lane], how.least[2]);
    }
    for number in 0..each {
        let at = row * each + number;
        if part.has(number)
            && let Some(others) = right[problem.place(at, number) * columns + column..].first_chunk::<N>()
        {
            for lane in 0..N {
                tops[lane] = tops[lane].max(left[at] + others[lane]);
            }
        }
    }
    let (mut scales, mut scaled) = ([0.0; N], [0.0; N]);
    for lane in 0..N {
        scales[lane] = power(how.fraction - tops[lane]);
        scaled[lane] = (addends[lane] * scales[lane]).trunc();
    }
    for number in 0..each {
        let at = row * each + number;
        if part.has(number)
            && let Some(b) = problem.b.values[problem.place(at, number) * columns + column..].first_chunk::<N>()
        {
            let a = f64::from(problem.a.values[at]);
            for lane in 0..N {
                scaled[lane] += (a * f64::from(b[lane]) * scales[lane]).trunc();
            }
        }
    }
    for lane in 0..N {
        sums[lane] = scaled[lane] * power(tops[lane] - how.fraction);
        if tops[lane] >= HIGHEST {
            sums[lane] = special(problem, (row, column + lane), part, addends[lane]);
        }
    }
}

/// Returns a sum of which a part is infinite or NaN.
#[cold]
pub(super) fn special(problem: &Problem<f32>, (row, column): (usize, usize), part: Part, addend: f64) -> f64 {
    let each = problem.a.columns;
    (0..each).filter(|number| part.has(*number)).fold(addend, |sum, number| {
        let at = row * each + number;
        let b = problem.b.values[problem.place(at, number) * problem.b.columns + column];
        f64::from(problem.a.values[at]) * f64::from(b) + sum
    })
}

/// Returns the exponent of a number, at least that of the least normal one; of infinities and NaN one above all others', and of zeroes one
/// below.
#[inline(always)]
fn exponent(value: f64, least: i32) -> i32 {
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    if value == 0.0 { LOWEST } else { exponent.max(least) }
}

/// Returns a power of two; infinities and NaN are multiplied with none that matters.
#[inline(always)]
pub(super) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(LOWEST, HIGHEST) + 1023) as u64) << 52)
}
