//! Aligned sums in fixed point, for factors and addends with moderate exponents.
//!
//! A product of two factors of up to eleven bits is exact in single precision, and so is its multiple by a power of two. Aligned to the
//! largest exponent it is an integer of 27 bits and a fraction, which is dropped. Sixteen such integers add up within 32 bits. The results
//! are those of double precision, in a tenth of the time.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::RangeInclusive;

use smallvec::SmallVec;

use super::Numbers;
use super::multiply::{Part, Problem};
use super::rounding::{LARGEST, Rounding, TOGETHER};

/// The exponents that nonzero factors may have.
pub(super) const OF_FACTORS: RangeInclusive<i32> = -50..=60;

/// The exponents that nonzero addends may have: those of products. Sums and the units of their terms are normal numbers of single
/// precision.
const OF_ADDENDS: RangeInclusive<i32> = -100..=120;

/// The exponent of zeros. That of a product with a zero is below all others. It alone is negative.
const OF_ZEROS: i32 = -1000;

/// The difference between the exponent of a number and the bits that represent it.
const BIAS: i32 = 127;

/// The largest sum of aligned products to which every addend can be added without exceeding [`LARGEST`].
const OF_PRODUCTS: i32 = LARGEST - (1 << 26);

/// The number of rows of A that are computed together.
pub(super) const ROWS_TOGETHER: usize = 4;

/// Neighboring numbers in a row.
pub(super) type Block<T> = [T; TOGETHER];

/// Computes the rounded sums of some products and addends into an empty buffer. Returns `false`, with nothing done, if exponents are not
/// moderate or sums may exceed 32 bits.
#[inline(always)]
pub(super) fn add<const WIDE: bool>(
    problem: &Problem<f32>,
    addends: &[f32],
    part: Part,
    how: Rounding,
    bits: &mut Numbers<u32>,
) -> bool {
    let Problem { a, b, .. } = problem;
    let terms = if part == Part::All {
        a.columns
    } else {
        a.columns / 2
    };
    if !how.fits_words(terms) || !b.columns.is_multiple_of(TOGETHER) {
        return false;
    }
    let mut left = Numbers::from_elem(0, a.values.len());
    let mut right = Numbers::from_elem(0, b.values.len());
    if !exponents(&a.values, how.least[0], OF_FACTORS, &mut left)
        || !exponents(&b.values, how.least[1], OF_FACTORS, &mut right)
    {
        return false;
    }
    bits.resize(addends.len(), 0);
    let sides = [&left[..], &right[..]];
    let (addends, results) = (addends.as_chunks().0, bits.as_chunks_mut().0);
    let is_done = if part == Part::All && problem.places.is_none() {
        add_all::<WIDE>(problem, sides, addends, how, results)
    } else {
        add_selected::<WIDE>(problem, sides, addends, part, how, results)
    };
    if !is_done {
        bits.clear();
    }
    is_done
}

/// Neighboring columns of some rows of B: the factors and their exponents.
#[derive(Default)]
struct Columns {
    factors: SmallVec<[Block<f32>; LONGEST]>,
    exponents: SmallVec<[Block<i32>; LONGEST]>,
}

/// The longest inner extent of a product of 16-bit numbers by a warp.
const LONGEST: usize = 16;

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

/// Computes all sums of whole matrices. Returns `false` if an addend's exponent is not moderate, or if a sum may
/// exceed 32 bits.
#[inline(always)]
fn add_all<const WIDE: bool>(
    problem: &Problem<f32>,
    [left, right]: [&[i32]; 2],
    addends: &[Block<f32>],
    how: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    let (inner, blocks) = (problem.a.columns, problem.b.columns / TOGETHER);
    let a = Terms {
        factors: &problem.a.values[..],
        exponents: left,
    };
    let rows = a.factors.len() / inner;
    let together = rows - rows % ROWS_TOGETHER;
    let mut columns = Columns::default();
    for block in 0..blocks {
        columns.clear();
        for number in 0..inner {
            columns.push(problem, right, number * blocks + block);
        }
        for row in (0..together).step_by(ROWS_TOGETHER) {
            let at = row * blocks + block;
            let (addends, results) = (&addends[at..], &mut results[at..]);
            let a = a.part(row * inner, ROWS_TOGETHER * inner);
            if !add_rows::<ROWS_TOGETHER, WIDE>(a, columns.terms(), addends, blocks, how, results) {
                return false;
            }
        }
        for row in together..rows {
            let at = row * blocks + block;
            let (addends, results) = (&addends[at..], &mut results[at..]);
            if !add_rows::<1, WIDE>(
                a.part(row * inner, inner),
                columns.terms(),
                addends,
                blocks,
                how,
                results,
            ) {
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
    how: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    let (held, blocks) = (problem.a.columns, problem.b.columns / TOGETHER);
    let mut columns = Columns::default();
    let (mut factors, mut exponents) = (Numbers::new(), Numbers::new());
    for at in 0..results.len() {
        let (row, block) = (at / blocks, at % blocks);
        columns.clear();
        factors.clear();
        exponents.clear();
        for number in (0..held).filter(|number| part.has(*number)) {
            let at = row * held + number;
            factors.push(problem.a.values[at]);
            exponents.push(left[at]);
            columns.push(problem, right, problem.place(at, number) * blocks + block);
        }
        let row = Terms {
            factors: &factors[..],
            exponents: &exponents[..],
        };
        if !add_rows::<1, WIDE>(
            row,
            columns.terms(),
            &addends[at..],
            blocks,
            how,
            &mut results[at..],
        ) {
            return false;
        }
    }
    true
}

/// The factors of sums on one side, and their exponents.
#[derive(Clone, Copy)]
pub(super) struct Terms<'t, T, E> {
    pub(super) factors: &'t [T],
    pub(super) exponents: &'t [E],
}

impl<'t, T, E> Terms<'t, T, E> {
    #[inline(always)]
    pub(super) fn part(self, first: usize, count: usize) -> Self {
        Self {
            factors: &self.factors[first..][..count],
            exponents: &self.exponents[first..][..count],
        }
    }
}

/// Computes the rounded sums of `N` rows of A, one after the other in `a`, with neighboring columns of B. The addends and results of
/// consecutive rows are `step` blocks apart. Returns `false` as [`add_all`] does.
#[inline(always)]
pub(super) fn add_rows<const N: usize, const WIDE: bool>(
    a: Terms<'_, f32, i32>,
    b: Terms<'_, Block<f32>, Block<i32>>,
    addends: &[Block<f32>],
    step: usize,
    how: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only handlers selected for AVX2, FMA and F16C call it.
        return unsafe { avx2::add_rows::<N>(a, b, addends, step, how, results) };
    }
    let inner = b.factors.len();
    (0..N).all(|row| {
        let at = row * step;
        let sums = add_row(a.part(row * inner, inner), b, &addends[at], how);
        results[at] = sums.unwrap_or_default();
        sums.is_some()
    })
}

/// Computes the rounded sums of a row of A. Returns `None` if an addend's exponent is not moderate, or if a sum may exceed 32 bits.
#[inline(always)]
fn add_row(
    a: Terms<'_, f32, i32>,
    b: Terms<'_, Block<f32>, Block<i32>>,
    addends: &Block<f32>,
    how: Rounding,
) -> Option<Block<u32>> {
    let mut tops = [0; TOGETHER];
    if !exponents(addends, how.least[2], OF_ADDENDS, &mut tops) {
        return None;
    }
    for top in &mut tops {
        // The bits of a product's exponent have twice the bias. If all terms are zero, the scale has no effect.
        *top = (*top + BIAS).max(LOWEST);
    }
    for (&left, right) in a.exponents.iter().zip(b.exponents) {
        for lane in 0..TOGETHER {
            tops[lane] = tops[lane].max(left + right[lane]);
        }
    }
    let (mut scales, mut units) = ([0.0; TOGETHER], [0.0; TOGETHER]);
    for lane in 0..TOGETHER {
        let shift = how.fraction + 2 * BIAS - tops[lane];
        (scales[lane], units[lane]) = (power(shift), power(-shift));
    }
    let mut sums = [0_i32; TOGETHER];
    for (&a, b) in a.factors.iter().zip(b.factors) {
        for lane in 0..TOGETHER {
            // SAFETY: the value is finite and below 2^27: the factors are finite, and the scale is at most 2^25 divided by the power of
            // two of the highest exponent, which is no less than the sum of theirs.
            let integer = unsafe { (a * b[lane] * scales[lane]).to_int_unchecked::<i32>() };
            sums[lane] = sums[lane].wrapping_add(integer);
        }
    }
    let mut are_small = true;
    for lane in 0..TOGETHER {
        are_small &= sums[lane].unsigned_abs() <= OF_PRODUCTS.cast_unsigned();
        // SAFETY: the value is finite and below 2^26: the exponent of the addend is at most the highest one.
        let addend = unsafe { (addends[lane] * scales[lane]).to_int_unchecked::<i32>() };
        sums[lane] = sums[lane].wrapping_add(addend);
    }
    are_small.then(|| how.round_aligned(&sums, &units))
}

/// The bits of the lowest exponent of a product.
const LOWEST: i32 = *OF_ADDENDS.start() + 2 * BIAS;

/// Computes the bits that represent the exponents of numbers. Those of subnormal numbers are those of `least`. Returns `true` if the
/// exponents of nonzero numbers are in `moderate`.
#[inline(always)]
pub(super) fn exponents(
    values: &[f32],
    least: i32,
    moderate: RangeInclusive<i32>,
    exponents: &mut [i32],
) -> bool {
    // As an unsigned number, that of zeros is above all others.
    let (mut lowest, mut highest) = (u32::MAX, OF_ZEROS);
    for (result, value) in exponents.iter_mut().zip(values) {
        let bits = value.to_bits() << 1;
        let exponent = ((bits >> 24) as i32).max(least + BIAS);
        let exponent = if bits == 0 { OF_ZEROS } else { exponent };
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
    use smallvec::smallvec;

    use super::super::multiply::{Maker, Manner, Matrix};
    use super::super::number::Number;
    use super::super::rounding::{add_widely, aligned};
    use super::super::{Accumulation, Element};
    use super::*;
    use crate::exec::handler::wide_vectors;

    /// Returns a random matrix. In one of four, elements have any bits; in the others, they have one exponent or a few.
    fn matrix(
        element: Element,
        [rows, columns]: [usize; 2],
        random: &mut impl FnMut() -> u32,
    ) -> Matrix<f32> {
        let kind = random() % 4;
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
        let next = || {
            let bits = random() & mask;
            let bits = if kind == 0 { bits } else { bits ^ one };
            f32::read(
                element,
                if random().is_multiple_of(8) { 0 } else { bits }.into(),
            )
        };
        Matrix {
            values: std::iter::repeat_with(next).take(rows * columns).collect(),
            columns,
        }
    }

    fn rounded<const WIDE: bool>(
        problem: &Problem<f32>,
        part: Part,
        how: Rounding,
    ) -> Option<Numbers<u32>> {
        let mut bits = Numbers::new();
        add::<WIDE>(problem, &problem.addend.values, part, how, &mut bits).then_some(bits)
    }

    #[test]
    fn sums_are_those_of_double_precision() {
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let mut added = 0;
        for turn in 0..6000 {
            let element = [Element::F16, Element::Bf16, Element::Tf32][turn % 3];
            let result = if turn % 2 == 0 || element != Element::F16 {
                Element::F32
            } else {
                Element::F16
            };
            let (inner, columns) = ([4, 8, 16, 32][turn / 3 % 4], [8, 16][turn / 12 % 2]);
            let (is_sparse, rows) = (turn % 5 == 0, [2, 4, 8][turn % 11 % 3]);
            let problem = Problem {
                a: matrix(element, [rows, inner], &mut random),
                b: matrix(element, [2 * inner, columns], &mut random),
                addend: matrix(result, [rows, columns], &mut random),
                places: is_sparse.then(|| {
                    (0..rows * inner)
                        .map(|at| ((at % inner) * 2 + at % 2) as u16)
                        .collect()
                }),
            };
            let how = Rounding::of(Manner {
                factors: [element; 2],
                result,
                accumulation: Accumulation::Sum,
                saturates: false,
                maker: Maker::Warp,
            });
            let part = [Part::All, Part::First, Part::Last][turn % 7 % 3];
            let Some(found) = rounded::<false>(&problem, part, how) else {
                if wide_vectors() {
                    assert_eq!(
                        rounded::<true>(&problem, part, how),
                        None,
                        "{problem:?} {part:?}"
                    );
                }
                continue;
            };
            added += 1;
            let mut expected = Numbers::new();
            add_widely(&problem, &problem.addend.values, part, how, &mut expected);
            assert_eq!(found, expected, "{problem:?} {part:?}");
            if wide_vectors() {
                assert_eq!(
                    rounded::<true>(&problem, part, how),
                    Some(expected),
                    "{problem:?} {part:?}"
                );
            }
        }
        assert!(added > 2000, "{added}");
    }

    #[test]
    fn sums_that_may_exceed_32_bits_are_left_to_double_precision() {
        let sums = |factor: f32| {
            let a = Matrix {
                values: smallvec![factor; 16],
                columns: 16,
            };
            let b = Matrix {
                values: smallvec![factor; 16 * 8],
                columns: 8,
            };
            let addend = Matrix {
                values: smallvec![factor; 8],
                columns: 8,
            };
            let problem = Problem {
                a,
                b,
                addend,
                places: None,
            };
            let how = Rounding {
                least: [-14, -14, -126],
                fraction: 25,
                kept: 23,
                is_half: false,
            };
            let mut expected = Numbers::new();
            add_widely(
                &problem,
                &problem.addend.values,
                Part::All,
                how,
                &mut expected,
            );
            let found = rounded::<false>(&problem, Part::All, how);
            assert!(
                found.iter().all(|found| *found == expected),
                "{found:?} is not {expected:?}"
            );
            if wide_vectors() {
                assert_eq!(rounded::<true>(&problem, Part::All, how), found);
            }
            let mut bits = Numbers::new();
            aligned::<false>(&problem, &problem.addend.values, Part::All, how, &mut bits);
            assert_eq!(bits, expected);
            found.is_some()
        };
        assert_eq!(
            [1.5, -1.9375, 1.96875, -1.9990234].map(sums),
            [true, true, false, false]
        );
    }

    #[test]
    fn extreme_exponents_are_left_to_double_precision() {
        let factors = |value| Matrix {
            values: smallvec![value; 8],
            columns: 8,
        };
        let result = |value| {
            let a = Matrix {
                values: smallvec![value],
                columns: 1,
            };
            let problem = Problem {
                a,
                b: factors(1.0),
                addend: factors(0.0),
                places: None,
            };
            let how = Rounding {
                least: [-126; 3],
                fraction: 25,
                kept: 23,
                is_half: false,
            };
            rounded::<false>(&problem, Part::All, how).map(|bits| bits[3])
        };
        let moderate = [0.0, 1.5, -2_f32.powi(-50), 2_f32.powi(60)];
        assert_eq!(
            moderate.map(result),
            moderate.map(|value| Some(value.to_bits()))
        );
        let extreme = [
            2_f32.powi(-51),
            2_f32.powi(61),
            f32::INFINITY,
            f32::NAN,
            f32::from_bits(1),
        ];
        assert_eq!(extreme.map(result), [None; 5]);
    }
}
