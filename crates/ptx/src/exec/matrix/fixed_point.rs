//! Aligned sums in fixed point, for factors and addends with moderate exponents.
//!
//! A product of two factors of up to eleven bits is exact in single precision, and so is its
//! multiple by a power of two. Aligned to the largest exponent it is an integer of 27 bits and a
//! fraction, which is dropped. Sixteen such integers add up within 32 bits. The results are those
//! of double precision, in a tenth of the time.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::RangeInclusive;

use smallvec::SmallVec;

use super::Numbers;
use super::multiply::{Part, Problem};
use super::rounding::{BLOCK_COLUMNS, MAX_EXACT_I32, Rounding};

/// The exponents that nonzero factors may have.
pub(crate) const FACTOR_EXPONENTS: RangeInclusive<i32> = -50..=60;

/// The exponents that nonzero addends may have: those of products. Sums and the units of their
/// terms are normal numbers of single precision.
const ADDEND_EXPONENTS: RangeInclusive<i32> = -100..=120;

/// The exponent of zeros. The exponent of a product with a zero is below all others, and the only
/// negative one.
const ZERO_EXPONENT: i32 = -1000;

/// The difference between the exponent of a number and the bits that represent it.
const BIAS: i32 = 127;

/// The largest sum of aligned products to which every addend can be added without exceeding
/// [`MAX_EXACT_I32`].
const MAX_PRODUCT_SUM: i32 = MAX_EXACT_I32 - (1 << 26);

/// The number of rows of A that are computed together.
pub(crate) const BLOCK_ROWS: usize = 4;

/// Neighboring numbers in a row.
pub(crate) type Block<T> = [T; BLOCK_COLUMNS];

/// Computes the rounded sums of some products and addends into an empty buffer. Returns `false`,
/// with nothing done, if exponents are not moderate or sums may exceed 32 bits.
#[inline(always)]
pub(super) fn add<const WIDE: bool>(
    problem: &Problem<f32>,
    addends: &[f32],
    part: Part,
    rounding: Rounding,
    bits: &mut Numbers<u32>,
) -> bool {
    let Problem { a, b, .. } = problem;
    let terms = if part == Part::All {
        a.columns
    } else {
        a.columns / 2
    };
    if !rounding.fits_words(terms) || !b.columns.is_multiple_of(BLOCK_COLUMNS) {
        return false;
    }
    let mut left = Numbers::from_elem(0, a.values.len());
    let mut right = Numbers::from_elem(0, b.values.len());
    if !exponents(&a.values, rounding.least[0], FACTOR_EXPONENTS, &mut left)
        || !exponents(&b.values, rounding.least[1], FACTOR_EXPONENTS, &mut right)
    {
        return false;
    }
    bits.resize(addends.len(), 0);
    let sides = [&left[..], &right[..]];
    let addends = addends.as_chunks().0;
    let results = bits.as_chunks_mut().0;
    let is_done = if part == Part::All && problem.sparse_columns.is_none() {
        add_all::<WIDE>(problem, sides, addends, rounding, results)
    } else {
        add_selected::<WIDE>(problem, sides, addends, part, rounding, results)
    };
    if !is_done {
        bits.clear();
    }
    is_done
}

/// Neighboring columns of some rows of B: the factors and their exponents.
#[derive(Default)]
struct Columns {
    factors: SmallVec<[Block<f32>; MAX_INNER]>,
    exponents: SmallVec<[Block<i32>; MAX_INNER]>,
}

/// The maximum inner extent of a product of 16-bit numbers by a warp.
const MAX_INNER: usize = 16;

impl Columns {
    fn clear(&mut self) {
        self.factors.clear();
        self.exponents.clear();
    }

    /// Appends a row, given by the number of its block.
    #[inline(always)]
    fn push(&mut self, problem: &Problem<f32>, exponents: &[i32], block: usize) {
        self.factors.push(problem.b.values.as_chunks().0[block]);
        self.exponents.push(exponents.as_chunks().0[block]);
    }

    fn terms(&self) -> Terms<'_, Block<f32>, Block<i32>> {
        Terms {
            factors: &self.factors,
            exponents: &self.exponents,
        }
    }
}

/// Computes all sums of whole matrices. Returns `false` if an addend's exponent is not moderate, or
/// if a sum may exceed 32 bits.
#[inline(always)]
fn add_all<const WIDE: bool>(
    problem: &Problem<f32>,
    [left, right]: [&[i32]; 2],
    addends: &[Block<f32>],
    rounding: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    let inner = problem.a.columns;
    let blocks = problem.b.columns / BLOCK_COLUMNS;
    let a = Terms {
        factors: &problem.a.values[..],
        exponents: left,
    };
    let rows = a.factors.len() / inner;
    let blocked_rows = rows - rows % BLOCK_ROWS;
    let mut columns = Columns::default();
    for block in 0..blocks {
        columns.clear();
        for number in 0..inner {
            columns.push(problem, right, number * blocks + block);
        }
        for row in (0..blocked_rows).step_by(BLOCK_ROWS) {
            let index = row * blocks + block;
            let is_done = add_rows::<BLOCK_ROWS, WIDE>(
                a.part(row * inner, BLOCK_ROWS * inner),
                columns.terms(),
                &addends[index..],
                blocks,
                rounding,
                &mut results[index..],
            );
            if !is_done {
                return false;
            }
        }
        for row in blocked_rows..rows {
            let index = row * blocks + block;
            let is_done = add_rows::<1, WIDE>(
                a.part(row * inner, inner),
                columns.terms(),
                &addends[index..],
                blocks,
                rounding,
                &mut results[index..],
            );
            if !is_done {
                return false;
            }
        }
    }
    true
}

/// Computes all sums of some elements of A. Returns `false` as [`add_all`] does.
#[inline(always)]
fn add_selected<const WIDE: bool>(
    problem: &Problem<f32>,
    [left, right]: [&[i32]; 2],
    addends: &[Block<f32>],
    part: Part,
    rounding: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    let inner = problem.a.columns;
    let blocks = problem.b.columns / BLOCK_COLUMNS;
    let mut columns = Columns::default();
    let mut factors = Numbers::new();
    let mut exponents = Numbers::new();
    for result in 0..results.len() {
        let row = result / blocks;
        let block = result % blocks;
        columns.clear();
        factors.clear();
        exponents.clear();
        for number in (0..inner).filter(|number| part.has(*number)) {
            let index = row * inner + number;
            factors.push(problem.a.values[index]);
            exponents.push(left[index]);
            let b_row = problem.b_row(index, number);
            columns.push(problem, right, b_row * blocks + block);
        }
        let row = Terms {
            factors: &factors[..],
            exponents: &exponents[..],
        };
        let is_done = add_rows::<1, WIDE>(
            row,
            columns.terms(),
            &addends[result..],
            blocks,
            rounding,
            &mut results[result..],
        );
        if !is_done {
            return false;
        }
    }
    true
}

/// The factors of sums on one side, and their exponents.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'t, T, E> {
    pub(crate) factors: &'t [T],
    pub(crate) exponents: &'t [E],
}

impl<'t, T, E> Terms<'t, T, E> {
    #[inline(always)]
    pub(crate) fn part(self, first: usize, count: usize) -> Self {
        Self {
            factors: &self.factors[first..][..count],
            exponents: &self.exponents[first..][..count],
        }
    }
}

/// Computes the rounded sums of `N` rows of A, one after the other in `a`, with neighboring columns
/// of B. The addends and results of consecutive rows are `step` blocks apart. Returns `false` as
/// [`add_all`] does.
#[inline(always)]
pub(crate) fn add_rows<const N: usize, const WIDE: bool>(
    a: Terms<'_, f32, i32>,
    b: Terms<'_, Block<f32>, Block<i32>>,
    addends: &[Block<f32>],
    step: usize,
    rounding: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only handlers selected for AVX2, FMA and F16C call it.
        return unsafe { avx2::add_rows::<N>(a, b, addends, step, rounding, results) };
    }
    let inner = b.factors.len();
    (0..N).all(|row| {
        let block = row * step;
        let sums = add_row(a.part(row * inner, inner), b, &addends[block], rounding);
        results[block] = sums.unwrap_or_default();
        sums.is_some()
    })
}

/// Computes the rounded sums of a row of A. Returns `None` if an addend's exponent is not moderate,
/// or if a sum may exceed 32 bits.
#[inline(always)]
fn add_row(
    a: Terms<'_, f32, i32>,
    b: Terms<'_, Block<f32>, Block<i32>>,
    addends: &Block<f32>,
    rounding: Rounding,
) -> Option<Block<u32>> {
    let mut tops = [0; BLOCK_COLUMNS];
    if !exponents(addends, rounding.least[2], ADDEND_EXPONENTS, &mut tops) {
        return None;
    }
    for top in &mut tops {
        // The bits of a product's exponent have twice the bias. If all terms are zero, the scale
        // has no effect.
        *top = (*top + BIAS).max(LOWEST);
    }
    for (&left, right) in a.exponents.iter().zip(b.exponents) {
        for lane in 0..BLOCK_COLUMNS {
            tops[lane] = tops[lane].max(left + right[lane]);
        }
    }
    let mut scales = [0.0; BLOCK_COLUMNS];
    let mut units = [0.0; BLOCK_COLUMNS];
    for lane in 0..BLOCK_COLUMNS {
        let shift = rounding.fraction + 2 * BIAS - tops[lane];
        scales[lane] = power(shift);
        units[lane] = power(-shift);
    }
    let mut sums = [0_i32; BLOCK_COLUMNS];
    for (&a, b) in a.factors.iter().zip(b.factors) {
        for lane in 0..BLOCK_COLUMNS {
            // SAFETY: the value is finite and below 2^27: the factors are finite, and the scale is
            // at most 2^25 divided by the power of two of the highest exponent, which is no less
            // than the sum of theirs.
            let integer = unsafe { (a * b[lane] * scales[lane]).to_int_unchecked::<i32>() };
            sums[lane] = sums[lane].wrapping_add(integer);
        }
    }
    let mut are_small = true;
    for lane in 0..BLOCK_COLUMNS {
        are_small &= sums[lane].unsigned_abs() <= MAX_PRODUCT_SUM.cast_unsigned();
        // SAFETY: the value is finite and below 2^26: the exponent of the addend is at most the
        // highest one.
        let addend = unsafe { (addends[lane] * scales[lane]).to_int_unchecked::<i32>() };
        sums[lane] = sums[lane].wrapping_add(addend);
    }
    are_small.then(|| rounding.round_aligned(&sums, &units))
}

/// The bits of the lowest exponent of a product.
const LOWEST: i32 = *ADDEND_EXPONENTS.start() + 2 * BIAS;

/// Computes the bits that represent the exponents of numbers. Those of subnormal numbers are those
/// of `least`. Returns `true` if the exponents of nonzero numbers are in `moderate`.
#[inline(always)]
pub(crate) fn exponents(
    values: &[f32],
    least: i32,
    moderate: RangeInclusive<i32>,
    exponents: &mut [i32],
) -> bool {
    // As an unsigned number, that of zeros is above all others.
    let mut lowest = u32::MAX;
    let mut highest = ZERO_EXPONENT;
    for (result, value) in exponents.iter_mut().zip(values) {
        let bits = value.to_bits() << 1;
        let exponent = ((bits >> 24) as i32).max(least + BIAS);
        let exponent = if bits == 0 { ZERO_EXPONENT } else { exponent };
        lowest = lowest.min(exponent.cast_unsigned());
        highest = highest.max(exponent);
        *result = exponent;
    }
    lowest >= (moderate.start() + BIAS).cast_unsigned() && highest <= moderate.end() + BIAS
}

/// Returns a power of two that is a normal number of single precision.
#[inline(always)]
fn power(exponent: i32) -> f32 {
    f32::from_bits((exponent + BIAS).cast_unsigned() << 23)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use smallvec::smallvec;

    use super::super::{Accumulation, Element};
    use crate::exec::matrix::fixed_point::*;
    use crate::exec::matrix::multiply::{ComputeUnit, Matrix, ProductKind};
    use crate::exec::matrix::number::Number;
    use crate::exec::matrix::rounding::{add_in_f64, aligned};
    use crate::exec::ops::handler::wide_vectors;

    /// Returns a random matrix. In one of four, elements have any bits; in the others, they have
    /// one exponent or a few.
    fn matrix(element: Element, [rows, columns]: [usize; 2], random: &mut Rng) -> Matrix<f32> {
        let kind = random.u32(..4);
        let mask = match (kind, element) {
            (0, _) => u32::MAX,
            (1, Element::F16) => 0x83ff,
            (_, Element::F16) => 0x8fff,
            (1, Element::Bf16) => 0x807f,
            (_, Element::Bf16) => 0x83ff,
            (1, _) => 0x807f_ffff,
            _ => 0x81ff_ffff,
        };
        let one = [0x3800, 0x3f80, 0x3f80_0000]
            [usize::from(element == Element::Bf16) + 2 * usize::from(element.bits() == 32)];
        let mut values = Numbers::new();
        for _ in 0..rows * columns {
            let mut bits = random.u32(..) & mask;
            if kind != 0 {
                bits ^= one;
            }
            if random.u32(..8) == 0 {
                bits = 0;
            }
            values.push(f32::read(element, bits.into()));
        }
        Matrix { values, columns }
    }

    fn rounded<const WIDE: bool>(
        problem: &Problem<f32>,
        part: Part,
        rounding: Rounding,
    ) -> Option<Numbers<u32>> {
        let mut bits = Numbers::new();
        add::<WIDE>(problem, &problem.addend.values, part, rounding, &mut bits).then_some(bits)
    }

    #[test]
    fn sums_equal_those_in_double_precision() {
        let mut random = Rng::with_seed(7);
        let mut added = 0;
        for turn in 0..6000 {
            let element = [Element::F16, Element::Bf16, Element::Tf32][turn % 3];
            let result = if turn % 2 == 0 || element != Element::F16 {
                Element::F32
            } else {
                Element::F16
            };
            let rows = [2, 4, 8][turn % 11 % 3];
            let inner = [4, 8, 16, 32][turn / 3 % 4];
            let columns = [8, 16][turn / 12 % 2];
            let is_sparse = turn % 5 == 0;
            let problem = Problem {
                a: matrix(element, [rows, inner], &mut random),
                b: matrix(element, [2 * inner, columns], &mut random),
                addend: matrix(result, [rows, columns], &mut random),
                sparse_columns: is_sparse.then(|| {
                    (0..rows * inner)
                        .map(|index| ((index % inner) * 2 + index % 2) as u16)
                        .collect()
                }),
            };
            let rounding = Rounding::new(ProductKind {
                factors: [element; 2],
                result,
                accumulation: Accumulation::Sum,
                saturates: false,
                unit: ComputeUnit::Warp,
            });
            let part = [Part::All, Part::First, Part::Last][turn % 7 % 3];
            let Some(sums) = rounded::<false>(&problem, part, rounding) else {
                if wide_vectors() {
                    assert_eq!(
                        rounded::<true>(&problem, part, rounding),
                        None,
                        "{problem:?} {part:?}"
                    );
                }
                continue;
            };
            added += 1;
            let mut expected = Numbers::new();
            add_in_f64(
                &problem,
                &problem.addend.values,
                part,
                rounding,
                &mut expected,
            );
            assert_eq!(sums, expected, "{problem:?} {part:?}");
            if wide_vectors() {
                assert_eq!(
                    rounded::<true>(&problem, part, rounding),
                    Some(expected),
                    "{problem:?} {part:?}"
                );
            }
        }
        assert!(added > 2000, "{added}");
    }

    /// Returns a matrix whose elements all have one value.
    fn uniform(value: f32, rows: usize, columns: usize) -> Matrix<f32> {
        Matrix {
            values: smallvec![value; rows * columns],
            columns,
        }
    }

    /// Sums that may exceed 32 bits are computed in double precision.
    #[test]
    fn large_sums_are_left_to_double_precision() {
        for (factor, fits) in [
            (1.5, true),
            (-1.9375, true),
            (1.96875, false),
            (-1.9990234, false),
        ] {
            let problem = Problem {
                a: uniform(factor, 1, 16),
                b: uniform(factor, 16, 8),
                addend: uniform(factor, 1, 8),
                sparse_columns: None,
            };
            let rounding = Rounding {
                least: [-14, -14, -126],
                fraction: 25,
                result_bits: 23,
                is_half: false,
            };
            let addends = &problem.addend.values;
            let mut expected = Numbers::new();
            add_in_f64(&problem, addends, Part::All, rounding, &mut expected);
            let mut bits = Numbers::new();
            aligned::<false>(&problem, addends, Part::All, rounding, &mut bits);
            assert_eq!(bits, expected, "{factor}");
            let expected = fits.then_some(expected);
            assert_eq!(rounded::<false>(&problem, Part::All, rounding), expected);
            if wide_vectors() {
                assert_eq!(rounded::<true>(&problem, Part::All, rounding), expected);
            }
        }
    }

    #[test]
    fn extreme_exponents_are_left_to_double_precision() {
        let rounding = Rounding {
            least: [-126; 3],
            fraction: 25,
            result_bits: 23,
            is_half: false,
        };
        for (value, is_moderate) in [
            (0.0, true),
            (1.5, true),
            (-2_f32.powi(-50), true),
            (2_f32.powi(60), true),
            (2_f32.powi(-51), false),
            (2_f32.powi(61), false),
            (f32::INFINITY, false),
            (f32::NAN, false),
            (f32::from_bits(1), false),
        ] {
            let problem = Problem {
                a: uniform(value, 1, 1),
                b: uniform(1.0, 1, 8),
                addend: uniform(0.0, 1, 8),
                sparse_columns: None,
            };
            let result = rounded::<false>(&problem, Part::All, rounding).map(|bits| bits[3]);
            let expected = is_moderate.then_some(value.to_bits());
            assert_eq!(result, expected, "{value}");
        }
    }
}
