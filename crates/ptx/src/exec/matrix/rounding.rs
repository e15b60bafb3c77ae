//! The summation of tensor cores.
//!
//! Products are exact. They and the addend are aligned to the largest exponent, where the exponent
//! of a product is the sum of its factors' exponents. Bits too far below that exponent are
//! truncated, and the sum is exact. A sum in f32 is truncated, one in f16 is rounded to nearest,
//! and a zero is positive. These are the results of an H100, bit for bit. It keeps 25 bits below
//! the largest exponent. Warpgroup products of 8-bit numbers keep 13, to which sums in f32 are
//! truncated too. Products with tensor memory keep 25 bits for all formats, as published
//! measurements of a B200 show. Other generations are simulated the same way.

use super::multiply::{ComputeUnit, Part, Problem, ProductKind};
use super::{Element, Numbers, fixed_point};
use crate::exec::values::float::canonical;
use crate::exec::values::narrow::Half;

/// An exponent below those of all nonzero products.
const LOWEST: i32 = -500;
/// An exponent above those of all finite products.
const HIGHEST: i32 = 500;

/// The largest integer of 32 bits that is a number of single precision: 2^31 - 128.
pub(crate) const MAX_EXACT_I32: i32 = i32::MAX - 127;

/// The bits of a negative zero in f16.
pub(crate) const NEGATIVE_ZERO: u32 = 1 << 15;

/// The alignment and the rounding of a sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    /// The least exponents of normal numbers: of A and B, and of the addend.
    pub(crate) least: [i32; 3],
    /// The number of bits of a term below the largest exponent; lower ones are truncated.
    pub(crate) fraction: i32,
    /// The number of fraction bits of a sum of single precision; lower ones are truncated.
    pub(crate) result_bits: u32,
    pub(crate) is_half: bool,
}

impl Rounding {
    pub(crate) fn new(kind: ProductKind) -> Self {
        let [left, right] = kind.factors;
        let is_narrow = left.bits() == 8 && kind.unit != ComputeUnit::TensorMemory;
        Self {
            least: [left, right, kind.result].map(least_exponent),
            fraction: if is_narrow { 13 } else { 25 },
            result_bits: if is_narrow { 13 } else { 23 },
            is_half: kind.result == Element::F16,
        }
    }

    /// Returns `true` if any sum of this number of aligned products fits 32 bits. Products are
    /// below 4.
    pub(crate) fn fits_words(self, products: usize) -> bool {
        products << (self.fraction + 2) <= 1 << 31
    }

    /// Returns the mask of the truncated fraction bits of a sum of single precision.
    pub(crate) const fn discarded_bits(self) -> i32 {
        (1 << (23 - self.result_bits)) - 1
    }

    /// Returns the bits of rounded sums, given in units that are powers of two. The results are
    /// zero or normal numbers of single precision. The sums are at most [`MAX_EXACT_I32`]; others
    /// have arbitrary results.
    #[inline(always)]
    pub(crate) fn round_aligned(
        self,
        sums: &[i32; BLOCK_COLUMNS],
        units: &[f32; BLOCK_COLUMNS],
    ) -> [u32; BLOCK_COLUMNS] {
        let mut bits = [0; BLOCK_COLUMNS];
        for lane in 0..BLOCK_COLUMNS {
            let size = sums[lane].wrapping_abs().min(MAX_EXACT_I32);
            let nearest = size as f32;
            // SAFETY: `MAX_EXACT_I32` is a number of single precision, so the nearest number is no
            // larger.
            let integer = unsafe { nearest.to_int_unchecked::<i32>() };
            let truncated = nearest.to_bits() - u32::from(integer > size);
            // A sum that is rounded to odd can be rounded again, to the f16 nearest to the exact
            // sum.
            let odd = truncated | u32::from(integer != size);
            let cut = if self.is_half {
                odd
            } else {
                truncated & !self.discarded_bits().cast_unsigned()
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
            f64::from_bits(sum.to_bits() & u64::MAX << (52 - self.result_bits))
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
    rounding: Rounding,
    bits: &mut Numbers<u32>,
) {
    if !fixed_point::add::<WIDE>(problem, addends, part, rounding, bits) {
        add_in_f64(problem, addends, part, rounding, bits);
    }
}

/// Computes the rounded sums in double precision, for numbers with any exponents.
#[inline(never)]
pub(super) fn add_in_f64(
    problem: &Problem<f32>,
    addends: &[f32],
    part: Part,
    rounding: Rounding,
    bits: &mut Numbers<u32>,
) {
    let columns = problem.b.columns;
    let mut sums: Numbers<f64> = addends.iter().map(|&addend| addend.into()).collect();
    let left = exponents(&problem.a.values, rounding.least[0]);
    let right = exponents(&problem.b.values, rounding.least[1]);
    let terms = AlignedTerms {
        problem,
        left: &left,
        right: &right,
        part,
        rounding,
    };
    for (row, sums) in sums.chunks_exact_mut(columns).enumerate() {
        let (blocks, remainder) = sums.as_chunks_mut::<BLOCK_COLUMNS>();
        let begin = blocks.len() * BLOCK_COLUMNS;
        for (block, sums) in blocks.iter_mut().enumerate() {
            terms.add(row, block * BLOCK_COLUMNS, sums);
        }
        for (column, sum) in remainder.iter_mut().enumerate() {
            terms.add(row, begin + column, std::array::from_mut(sum));
        }
    }
    rounding.round(&sums, bits);
}

#[inline(always)]
fn exponents(values: &[f32], least: i32) -> Vec<i32> {
    values
        .iter()
        .map(|&value| exponent(value.into(), least))
        .collect()
}

/// Columns that are computed together.
pub(crate) const BLOCK_COLUMNS: usize = 8;

/// The terms of sums in double precision: the factors with their exponents.
struct AlignedTerms<'t> {
    problem: &'t Problem<f32>,
    /// The exponents of A.
    left: &'t [i32],
    /// The exponents of B.
    right: &'t [i32],
    part: Part,
    rounding: Rounding,
}

impl AlignedTerms<'_> {
    /// Adds to the sums of neighboring columns of a row. Plain loops are compiled with the vector
    /// features of the handler.
    #[inline(always)]
    fn add<const N: usize>(&self, row: usize, column: usize, sums: &mut [f64; N]) {
        let Self {
            problem,
            left,
            right,
            part,
            rounding,
        } = self;
        let inner = problem.a.columns;
        let columns = problem.b.columns;
        let addends = *sums;
        let mut tops = [0; N];
        for lane in 0..N {
            tops[lane] = exponent(addends[lane], rounding.least[2]);
        }
        for number in 0..inner {
            let index = row * inner + number;
            if part.has(number)
                && let Some(right) =
                    right[problem.b_row(index, number) * columns + column..].first_chunk::<N>()
            {
                for lane in 0..N {
                    tops[lane] = tops[lane].max(left[index] + right[lane]);
                }
            }
        }
        let mut scales = [0.0; N];
        let mut scaled = [0.0; N];
        for lane in 0..N {
            scales[lane] = power(rounding.fraction - tops[lane]);
            scaled[lane] = (addends[lane] * scales[lane]).trunc();
        }
        for number in 0..inner {
            let index = row * inner + number;
            if part.has(number)
                && let Some(b) = problem.b.values[problem.b_row(index, number) * columns + column..]
                    .first_chunk::<N>()
            {
                let a = f64::from(problem.a.values[index]);
                for lane in 0..N {
                    scaled[lane] += (a * f64::from(b[lane]) * scales[lane]).trunc();
                }
            }
        }
        for lane in 0..N {
            sums[lane] = scaled[lane] * power(tops[lane] - rounding.fraction);
            if tops[lane] >= HIGHEST {
                sums[lane] = self.special(row, column + lane, addends[lane]);
            }
        }
    }

    /// Returns a sum with an infinite or NaN term.
    #[cold]
    fn special(&self, row: usize, column: usize, addend: f64) -> f64 {
        let Problem { a, b, .. } = self.problem;
        let mut sum = addend;
        for number in (0..a.columns).filter(|number| self.part.has(*number)) {
            let index = row * a.columns + number;
            let b = b.values[self.problem.b_row(index, number) * b.columns + column];
            sum += f64::from(a.values[index]) * f64::from(b);
        }
        sum
    }
}

/// Returns the exponent of a number, at least that of the least normal one. Infinities and NaN have
/// an exponent above all others, and zeros one below.
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
