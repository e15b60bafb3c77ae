//! The summation of tensor cores.
//!
//! Products are exact. They and the addend are aligned to the largest exponent, where the exponent of a product is the sum of its factors'
//! exponents. Bits too far below that exponent are truncated, and the sum is exact. A sum in f32 is truncated, one in f16 is rounded to
//! nearest, and a zero is positive. These are the results of an H100, bit for bit. It keeps 25 bits below the largest exponent. Warpgroup
//! products of 8-bit numbers keep 13, to which sums in f32 are truncated too. Other generations are simulated the same way.

use super::multiply::{Manner, Part, Problem};
use super::{Element, Numbers, fixed_point};
use crate::exec::float::canonical;
use crate::exec::narrow::Half;

/// An exponent below those of all nonzero products.
const LOWEST: i32 = -500;
/// An exponent above those of all finite products.
const HIGHEST: i32 = 500;

/// The largest integer of 32 bits that is a number of single precision: 2^31 - 128.
pub(super) const LARGEST: i32 = i32::MAX - 127;

/// The bits of a negative zero in f16.
pub(super) const NEGATIVE_ZERO: u32 = 1 << 15;

/// The alignment and the rounding of a sum.
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
        Self {
            least,
            fraction,
            kept,
            is_half: how.result == Element::F16,
        }
    }

    /// Returns `true` if any sum of this number of aligned products fits 32 bits. Products are below 4.
    pub(super) fn fits_words(self, products: usize) -> bool {
        products << (self.fraction + 2) <= 1 << 31
    }

    /// Returns the bits of a sum of single precision that are not kept.
    pub(super) const fn lost(self) -> i32 {
        (1 << (23 - self.kept)) - 1
    }

    /// Returns the bits of rounded sums, given in units that are powers of two. The results are zero or normal numbers of single precision.
    /// The sums are at most [`LARGEST`]; others have arbitrary results.
    #[inline(always)]
    pub(super) fn round_aligned(
        self,
        sums: &[i32; TOGETHER],
        units: &[f32; TOGETHER],
    ) -> [u32; TOGETHER] {
        let mut bits = [0; TOGETHER];
        for lane in 0..TOGETHER {
            let size = sums[lane].wrapping_abs().min(LARGEST);
            let nearest = size as f32;
            // SAFETY: `LARGEST` is a number of single precision, so the nearest number is no larger.
            let integer = unsafe { nearest.to_int_unchecked::<i32>() };
            let truncated = nearest.to_bits() - u32::from(integer > size);
            // A sum that is rounded to odd can be rounded again, to the f16 nearest to the exact sum.
            let odd = truncated | u32::from(integer != size);
            let cut = if self.is_half {
                odd
            } else {
                truncated & !self.lost().cast_unsigned()
            };
            let sign = sums[lane].cast_unsigned() & 1 << 31;
            bits[lane] = (f32::from_bits(cut | sign) * units[lane]).to_bits();
        }
        if self.is_half {
            for bits in &mut bits {
                let half = u32::from(Half::from_f32(f32::from_bits(*bits)).0);
                *bits = if half == NEGATIVE_ZERO { 0 } else { half };
            }
        }
        bits
    }

    /// Computes the bits of rounded sums into an empty buffer.
    fn round(self, sums: &[f64], bits: &mut Numbers<u32>) {
        bits.extend(sums.iter().map(|&sum| {
            if self.is_half {
                half(sum)
            } else {
                self.truncated(sum)
            }
        }));
    }

    /// Returns the bits of the next number of single precision towards zero.
    fn truncated(self, sum: f64) -> u32 {
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

/// Returns the bits of the nearest f16. A negative zero becomes a positive one.
fn half(sum: f64) -> u32 {
    match Half::nearest(sum) as u32 {
        NEGATIVE_ZERO => 0,
        bits => bits,
    }
}

/// Returns the least exponent of an element's normal numbers.
fn least_exponent(element: Element) -> i32 {
    match element {
        Element::F16 | Element::E5m2 => -14,
        Element::E4m3 => -6,
        _ => -126,
    }
}

/// Computes the rounded sums of some products and addends into an empty buffer.
#[inline(always)]
pub(super) fn aligned<const WIDE: bool>(
    problem: &Problem<f32>,
    addends: &[f32],
    part: Part,
    how: Rounding,
    bits: &mut Numbers<u32>,
) {
    if !fixed_point::add::<WIDE>(problem, addends, part, how, bits) {
        add_widely(problem, addends, part, how, bits);
    }
}

/// Computes the rounded sums in double precision, for numbers with any exponents.
#[inline(never)]
pub(super) fn add_widely(
    problem: &Problem<f32>,
    addends: &[f32],
    part: Part,
    how: Rounding,
    bits: &mut Numbers<u32>,
) {
    let columns = problem.b.columns;
    let mut sums: Numbers<f64> = addends.iter().map(|&addend| addend.into()).collect();
    let left = exponents(&problem.a.values, how.least[0]);
    let right = exponents(&problem.b.values, how.least[1]);
    for (row, sums) in sums.chunks_exact_mut(columns).enumerate() {
        let (blocks, rest) = sums.as_chunks_mut::<TOGETHER>();
        let begin = blocks.len() * TOGETHER;
        for (block, sums) in blocks.iter_mut().enumerate() {
            add(
                problem,
                [&left, &right],
                (row, block * TOGETHER),
                part,
                how,
                sums,
            );
        }
        for (column, sum) in rest.iter_mut().enumerate() {
            add(
                problem,
                [&left, &right],
                (row, begin + column),
                part,
                how,
                std::array::from_mut(sum),
            );
        }
    }
    how.round(&sums, bits);
}

#[inline(always)]
fn exponents(values: &[f32], least: i32) -> Vec<i32> {
    values
        .iter()
        .map(|&value| exponent(value.into(), least))
        .collect()
}

/// Columns that are computed together.
pub(super) const TOGETHER: usize = 8;

/// Adds to the sums of neighboring columns of a row. Plain loops are compiled with the vector features of the handler.
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
            && let Some(others) =
                right[problem.place(at, number) * columns + column..].first_chunk::<N>()
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
            && let Some(b) =
                problem.b.values[problem.place(at, number) * columns + column..].first_chunk::<N>()
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

/// Returns a sum with an infinite or NaN term.
#[cold]
fn special(problem: &Problem<f32>, (row, column): (usize, usize), part: Part, addend: f64) -> f64 {
    let each = problem.a.columns;
    (0..each)
        .filter(|number| part.has(*number))
        .fold(addend, |sum, number| {
            let at = row * each + number;
            let b = problem.b.values[problem.place(at, number) * problem.b.columns + column];
            f64::from(problem.a.values[at]) * f64::from(b) + sum
        })
}

/// Returns the exponent of a number, at least that of the least normal one. Infinities and NaN have an exponent above all others, and zeros
/// one below.
#[inline(always)]
fn exponent(value: f64, least: i32) -> i32 {
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    if value == 0.0 {
        LOWEST
    } else {
        exponent.max(least)
    }
}

/// Returns a power of two. It has no effect on infinities and NaN.
#[inline(always)]
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(LOWEST, HIGHEST) + 1023) as u64) << 52)
}
