//! Aligned sums in fixed point, for factors with moderate exponents.
//!
//! A product of two factors of up to eleven bits is exact in single precision, and so is its multiple by a power of two. Aligned to the
//! largest exponent it is an integer of 27 bits and a fraction, which is dropped. Sixteen such integers add up within 32 bits. The results
//! are those of double precision, in a quarter of the time.

use std::ops::RangeInclusive;

use smallvec::SmallVec;

use super::Numbers;
use super::multiply::{Part, Problem};
use super::rounding::{LOWEST, Rounding, TOGETHER, power, special};

/// The exponents that nonzero factors may have. Products of them are normal numbers of single precision.
const MODERATE: RangeInclusive<i16> = -50..=60;

/// The exponent of infinities and NaN of single precision, more than that of any product.
const SPECIAL: i16 = 128;

/// Products that are added up in 32 bits.
const CHUNK: usize = 16;

/// Computes the sums of some products and addends, without rounding them. Returns `false`, with nothing done, if the exponents of the
/// factors are not moderate.
#[inline(always)]
pub(super) fn add(problem: &Problem<f32>, addends: &[f32], sums: &mut [f64], part: Part, how: Rounding) -> bool {
    let (mut left, mut right, mut tops) = (Numbers::new(), Numbers::new(), Numbers::new());
    if !problem.b.columns.is_multiple_of(TOGETHER)
        || !exponents(&problem.a.values, how.least[0], &mut left)
        || !exponents(&problem.b.values, how.least[1], &mut right)
    {
        return false;
    }
    exponents(addends, how.least[2], &mut tops);
    let sides = [&left[..], &right[..]];
    let (addends, tops) = (addends.as_chunks().0, tops.as_chunks().0);
    let sums = sums.as_chunks_mut().0;
    if part == Part::All && problem.places.is_none() {
        add_dense(problem, sides, addends, tops, sums, how);
    } else {
        add_selected(problem, sides, addends, tops, sums, part, how);
    }
    for (at, tops) in tops.iter().enumerate() {
        if tops.iter().fold(false, |any, top| any | (*top == SPECIAL)) {
            for lane in (0..TOGETHER).filter(|lane| tops[*lane] == SPECIAL) {
                let at = at * TOGETHER + lane;
                let place = (at / problem.b.columns, at % problem.b.columns);
                sums[at / TOGETHER][lane] = special(problem, place, part, addends[at / TOGETHER][lane].into());
            }
        }
    }
    true
}

/// Neighboring numbers in a row.
type Block<T> = [T; TOGETHER];

/// Neighboring columns of some rows of B: the factors and their exponents.
#[derive(Default)]
struct Columns {
    factors: SmallVec<[Block<f32>; LONGEST]>,
    exponents: SmallVec<[Block<i16>; LONGEST]>,
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
    fn push(&mut self, problem: &Problem<f32>, exponents: &[i16], block: usize) {
        self.factors.push(problem.b.values.as_chunks().0[block]);
        self.exponents.push(exponents.as_chunks().0[block]);
    }
}

/// Computes all sums of a product of whole matrices.
#[inline(always)]
fn add_dense(
    problem: &Problem<f32>,
    [left, right]: [&[i16]; 2],
    addends: &[Block<f32>],
    tops: &[Block<i16>],
    sums: &mut [Block<f64>],
    how: Rounding,
) {
    let (inner, blocks) = (problem.a.columns, problem.b.columns / TOGETHER);
    let mut columns = Columns::default();
    for block in 0..blocks {
        columns.clear();
        for number in 0..inner {
            columns.push(problem, right, number * blocks + block);
        }
        let rows = problem.a.values.chunks_exact(inner).zip(left.chunks_exact(inner));
        for (row, (a, left)) in rows.enumerate() {
            let at = row * blocks + block;
            add_row(a, left, &columns, &addends[at], &tops[at], &mut sums[at], how);
        }
    }
}

/// Computes all sums of some elements of A.
#[inline(always)]
fn add_selected(
    problem: &Problem<f32>,
    [left, right]: [&[i16]; 2],
    addends: &[Block<f32>],
    tops: &[Block<i16>],
    sums: &mut [Block<f64>],
    part: Part,
    how: Rounding,
) {
    let (held, blocks) = (problem.a.columns, problem.b.columns / TOGETHER);
    let mut columns = Columns::default();
    let (mut a, mut exponents) = (Numbers::new(), Numbers::new());
    for (at, ((sums, addends), tops)) in sums.iter_mut().zip(addends).zip(tops).enumerate() {
        let (row, block) = (at / blocks, at % blocks);
        columns.clear();
        a.clear();
        exponents.clear();
        for number in (0..held).filter(|number| part.has(*number)) {
            let at = row * held + number;
            a.push(problem.a.values[at]);
            exponents.push(left[at]);
            columns.push(problem, right, problem.place(at, number) * blocks + block);
        }
        add_row(&a, &exponents, &columns, addends, tops, sums, how);
    }
}

/// Computes the sums of neighboring columns of a row. `tops` are the exponents of the addends.
#[inline(always)]
fn add_row(
    a: &[f32],
    left: &[i16],
    columns: &Columns,
    addends: &Block<f32>,
    tops: &Block<i16>,
    sums: &mut Block<f64>,
    how: Rounding,
) {
    let mut tops = *tops;
    for (&left, right) in left.iter().zip(&columns.exponents) {
        for lane in 0..TOGETHER {
            tops[lane] = tops[lane].max(left.wrapping_add(right[lane]));
        }
    }
    let mut scales = [0.0_f32; TOGETHER];
    for lane in 0..TOGETHER {
        // Where the exponent would be more than 127, all products are zero.
        let exponent = (how.fraction - i32::from(tops[lane])).clamp(-126, 127);
        scales[lane] = f32::from_bits(((exponent + 127) as u32) << 23);
    }
    let mut totals = [0.0; TOGETHER];
    for lane in 0..TOGETHER {
        totals[lane] = (f64::from(addends[lane]) * power(how.fraction - i32::from(tops[lane]))).trunc();
    }
    for (a, factors) in a.chunks(CHUNK).zip(columns.factors.chunks(CHUNK)) {
        let mut integers = [0_i32; TOGETHER];
        for (&a, b) in a.iter().zip(factors) {
            for lane in 0..TOGETHER {
                // SAFETY: the value is finite and below 2^27: the factors are finite, and the scale is at most 2^25 divided by the
                // power of two of the highest exponent, which is no less than the sum of theirs.
                let integer = unsafe { (a * b[lane] * scales[lane]).to_int_unchecked::<i32>() };
                integers[lane] = integers[lane].wrapping_add(integer);
            }
        }
        for lane in 0..TOGETHER {
            totals[lane] += f64::from(integers[lane]);
        }
    }
    for lane in 0..TOGETHER {
        sums[lane] = totals[lane] * power(i32::from(tops[lane]) - how.fraction);
    }
}

/// Computes exponents into an empty buffer, at least those of the least normal numbers. Returns `true` if all are moderate.
#[inline(always)]
fn exponents(values: &[f32], least: i32, exponents: &mut Numbers<i16>) -> bool {
    exponents.resize(values.len(), 0);
    let mut are_moderate = true;
    for (result, value) in exponents.iter_mut().zip(values) {
        let bits = value.to_bits() & 0x7fff_ffff;
        let exponent = ((bits >> 23) as i32 - 127).max(least) as i16;
        are_moderate &= (bits == 0) | (exponent >= *MODERATE.start()) & (exponent <= *MODERATE.end());
        *result = if bits == 0 { LOWEST as i16 } else { exponent };
    }
    are_moderate
}

#[cfg(test)]
mod tests {
    use super::super::multiply::{Maker, Manner, Matrix};
    use super::super::number::Number;
    use super::super::rounding::add_widely;
    use super::super::{Accumulation, Element};
    use super::*;

    /// Bits of elements, in several of which all are alike or of one exponent.
    fn matrix(element: Element, [rows, columns]: [usize; 2], random: &mut impl FnMut() -> u32) -> Matrix<f32> {
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
            f32::read(element, if random() % 8 == 0 { 0 } else { bits }.into())
        };
        Matrix { values: std::iter::repeat_with(next).take(rows * columns).collect(), columns }
    }

    #[test]
    fn sums_are_those_of_double_precision() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let mut added = 0;
        for turn in 0..6000 {
            let element = [Element::F16, Element::Bf16, Element::Tf32][turn % 3];
            let result = if turn % 2 == 0 || element != Element::F16 { Element::F32 } else { Element::F16 };
            let (inner, columns) = ([4, 8, 16, 32][turn / 3 % 4], [8, 16][turn / 12 % 2]);
            let (is_sparse, rows) = (turn % 5 == 0, [2, 4, 8][turn % 11 % 3]);
            let problem = Problem {
                a: matrix(element, [rows, inner], &mut random),
                b: matrix(element, [2 * inner, columns], &mut random),
                addend: matrix(result, [rows, columns], &mut random),
                places: is_sparse.then(|| (0..rows * inner).map(|at| ((at % inner) * 2 + at % 2) as u16).collect()),
            };
            let how = Rounding::of(Manner {
                factors: [element; 2],
                result,
                accumulation: Accumulation::Sum,
                saturates: false,
                maker: Maker::Warp,
            });
            let part = [Part::All, Part::First, Part::Last][turn % 7 % 3];
            let mut found = vec![0.0; rows * columns];
            if !add(&problem, &problem.addend.values, &mut found, part, how) {
                continue;
            }
            added += 1;
            let mut expected = vec![0.0; rows * columns];
            add_widely(&problem, &problem.addend.values, &mut expected, part, how);
            for (found, expected) in found.iter().zip(&expected) {
                let alike = found == expected || found.is_nan() && expected.is_nan();
                assert!(alike, "{found} is not {expected}: {problem:?} {part:?}");
            }
        }
        assert!(added > 2000, "{added}");
    }

    #[test]
    fn extreme_exponents_are_left_to_double_precision() {
        let factors = |value| Matrix { values: smallvec::smallvec![value; 8], columns: 8 };
        let result = |value| {
            let a = Matrix { values: smallvec::smallvec![value], columns: 1 };
            let problem = Problem { a, b: factors(1.0), addend: factors(0.0), places: None };
            let how = Rounding { least: [-126; 3], fraction: 25, kept: 23, is_half: false };
            let mut sums = [0.0; 8];
            add(&problem, &problem.addend.values, &mut sums, Part::All, how).then_some(sums[3])
        };
        let moderate = [0.0, 1.5, -2_f32.powi(-50), 2_f32.powi(60)];
        assert_eq!(moderate.map(result), moderate.map(|value| Some(value.into())));
        let extreme = [2_f32.powi(-51), 2_f32.powi(61), f32::INFINITY, f32::NAN, f32::from_bits(1)];
        assert_eq!(extreme.map(result), [None; 5]);
    }
}
