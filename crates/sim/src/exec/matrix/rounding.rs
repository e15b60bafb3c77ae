//! The summation of tensor cores.
//!
//! Products are exact. They and the addend are aligned to the largest exponent, where the exponent of a product is the sum of its factors'
//! exponents. Bits too far below that exponent are truncated, and the sum is exact. A sum in f32 is truncated, one in f16 is rounded to
//! nearest, and a zero is positive. An H100 computes so, bit for bit. It keeps 25 bits below the largest exponent. Warpgroup products of
//! 8-bit numbers keep 13, to which sums in f32 are truncated too. Other generations are simulated the same way.

use super::Element;
use super::multiply::{Manner, Part, Problem};
use crate::exec::float::canonical;
use crate::exec::narrow::Half;

/// An exponent below those of all products except zeros.
const LOWEST: i32 = -500;
/// An exponent above those of all finite products.
const HIGHEST: i32 = 500;

/// The alignment and the rounding of a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// The exponents of the least normal numbers of A, B and the addend.
    least: [i32; 3],
    /// The number of bits below the largest exponent.
    fraction: i32,
    /// The number of bits below the exponent of an f32 sum.
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

    /// Rounds a sum, and returns its bits.
    #[inline(always)]
    pub(super) fn bits(self, sum: f64) -> u64 {
        let (bits, sign) = if self.is_half { (Half::nearest(sum), 1 << 15) } else { (self.single(sum), 1 << 31) };
        if bits == sign { 0 } else { bits }
    }

    /// Rounds to f32 toward zero, and returns the bits.
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

/// Returns the exponent of the least normal number of an element.
fn least_exponent(element: Element) -> i32 {
    match element {
        Element::F16 | Element::E5m2 => -14,
        Element::E4m3 => -6,
        _ => -126,
    }
}

/// Adds products to addends, without rounding the sums.
#[inline(always)]
pub(super) fn aligned(problem: &Problem<f64>, sums: &mut [f64], part: Part, how: Rounding) {
    let columns = problem.b.columns;
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
fn exponents(values: &[f64], least: i32) -> Vec<i32> {
    let mut exponents = vec![0; values.len()];
    for (result, value) in exponents.iter_mut().zip(values) {
        *result = exponent(*value, least);
    }
    exponents
}

/// The number of columns that are computed together.
const TOGETHER: usize = 8;

/// Adds to the sums of neighboring columns of a row. Plain loops are compiled with the vector features of the handler.
#[inline(always)]
fn add<const N: usize>(
    problem: &Problem<f64>,
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
            let a = problem.a.values[at];
            for lane in 0..N {
                scaled[lane] += (a * b[lane] * scales[lane]).trunc();
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

/// Returns a sum with an infinite or NaN term.
#[cold]
fn special(problem: &Problem<f64>, (row, column): (usize, usize), part: Part, addend: f64) -> f64 {
    let each = problem.a.columns;
    (0..each).filter(|number| part.has(*number)).fold(addend, |sum, number| {
        let at = row * each + number;
        problem.a.values[at] * problem.b.values[problem.place(at, number) * problem.b.columns + column] + sum
    })
}

/// Returns the exponent of a number, at least that of the least normal one. Infinities and NaN have an exponent above all others, and zeros
/// one below.
#[inline(always)]
fn exponent(value: f64, least: i32) -> i32 {
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    if value == 0.0 { LOWEST } else { exponent.max(least) }
}

/// Returns a power of two. It has no effect on infinities and NaN.
#[inline(always)]
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(LOWEST, HIGHEST) + 1023) as u64) << 52)
}
