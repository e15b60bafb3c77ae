//! Products of matrices, and the rounding of their sums.

use smallvec::smallvec;

use super::number::Number;
use super::rounding::{Rounding, aligned};
use super::{Accumulation, Element, Numbers};
use crate::exec::float::canonical;
use crate::exec::frame::InFile;
use crate::exec::fused::Fused as _;
use crate::exec::narrow::Half;

/// A matrix by rows.
#[derive(Debug, Default)]
pub(crate) struct Matrix<T> {
    pub(crate) values: Numbers<T>,
    pub(crate) columns: usize,
}

impl<T: Number> Matrix<T> {
    /// Creates a matrix of zeros.
    pub(crate) fn zeroes(rows: usize, columns: usize) -> Self {
        Self {
            values: smallvec![T::default(); rows * columns],
            columns,
        }
    }

    /// Negates all elements.
    pub(crate) fn negate(&mut self) {
        self.values
            .iter_mut()
            .for_each(|value| *value = value.negative());
    }
}

/// The operands of a product.
#[derive(Debug, Default)]
pub(crate) struct Problem<T> {
    /// The elements of A: all, or the selected ones if A is sparse.
    pub(crate) a: Matrix<T>,
    pub(crate) b: Matrix<T>,
    pub(crate) addend: Matrix<T>,
    /// The column of each element of A, if A is sparse.
    pub(crate) places: Option<Vec<u16>>,
}

impl<T: Number> Problem<T> {
    /// Returns the column of an element of A, from its index in A and in its row.
    #[inline(always)]
    pub(super) fn place(&self, at: usize, number: usize) -> usize {
        match &self.places {
            Some(places) => usize::from(places[at]),
            None => number,
        }
    }

    /// Adds the products to sums.
    #[inline(always)]
    fn add(&self, sums: &mut [T], step: impl Fn(T, T, T) -> T) {
        for (row, sums) in sums.chunks_exact_mut(self.b.columns).enumerate() {
            for number in 0..self.a.columns {
                let at = row * self.a.columns + number;
                let (a, place) = (self.a.values[at], self.place(at, number));
                for (sum, &b) in sums
                    .iter_mut()
                    .zip(&self.b.values[place * self.b.columns..])
                {
                    *sum = step(*sum, a, b);
                }
            }
        }
    }
}

/// A part of the elements of A's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// The first two of every four.
    First,
    /// The last two.
    Last,
}

impl Part {
    #[inline(always)]
    pub(super) fn has(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::First => number % 4 < 2,
            Self::Last => number % 4 >= 2,
        }
    }
}

/// The kind of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The formats of A and B.
    pub(crate) factors: [Element; 2],
    pub(crate) result: Element,
    pub(crate) accumulation: Accumulation,
    pub(crate) saturates: bool,
    pub(crate) maker: Maker,
}

/// The unit that computes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    QuadPair,
    Warp,
    Warpgroup,
}

/// Computes products, rounded to the bits of the result.
pub(crate) trait Multiply {
    /// The bits of a result.
    type Bits: InFile;
    /// Computes the bits of the results, row by row, into an empty buffer. Use [`Problem::multiply`], which is not inlined.
    fn compute<const WIDE: bool>(&self, how: Manner, bits: &mut Numbers<Self::Bits>);
}

impl<T> Problem<T>
where
    Self: Multiply,
{
    /// Computes the bits of the results, row by row, into an empty buffer. The functions are not inlined, because they are long and serve
    /// the products of warps and of warpgroups. `WIDE` requires AVX2, FMA and F16C.
    #[inline(always)]
    pub(crate) fn multiply<const WIDE: bool>(
        &self,
        how: Manner,
        bits: &mut Numbers<<Self as Multiply>::Bits>,
    ) {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        #[inline(never)]
        fn compute_wide<P: Multiply>(problem: &P, how: Manner, bits: &mut Numbers<P::Bits>) {
            problem.compute::<true>(how, bits);
        }

        #[inline(never)]
        fn compute_base<P: Multiply>(problem: &P, how: Manner, bits: &mut Numbers<P::Bits>) {
            problem.compute::<false>(how, bits);
        }

        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: `WIDE` requires the features; only handlers selected for them pass it.
            return unsafe { compute_wide(self, how, bits) };
        }
        compute_base(self, how, bits);
    }
}

impl Multiply for Problem<f64> {
    type Bits = u64;

    #[inline(always)]
    fn compute<const WIDE: bool>(&self, _how: Manner, bits: &mut Numbers<u64>) {
        let mut sums = self.addend.values.clone();
        self.add(&mut sums, |sum, a, b| a.fused(b, sum));
        bits.extend(sums.into_iter().map(f64::to_bits));
    }
}

impl Multiply for Problem<f32> {
    type Bits = u32;

    #[inline(always)]
    fn compute<const WIDE: bool>(&self, how: Manner, bits: &mut Numbers<u32>) {
        match how.maker {
            Maker::QuadPair => return self.multiply_in_steps(how, bits),
            Maker::Warp if how.factors[0].bits() == 8 => {
                return self.multiply_in_parts::<WIDE>(how, bits);
            }
            _ => {}
        }
        aligned::<WIDE>(
            self,
            &self.addend.values,
            Part::All,
            Rounding::of(how),
            bits,
        );
    }
}

impl Problem<f32> {
    /// Computes `mma` of 8-bit numbers as the driver compiles it: a product in f16 of the first two of every four elements of A, a product
    /// of the others, and last the sum with the addend.
    #[inline(always)]
    fn multiply_in_parts<const WIDE: bool>(&self, how: Manner, bits: &mut Numbers<u32>) {
        let rounding = Rounding::of(Manner {
            factors: [Element::F16; 2],
            ..how
        });
        let mut rounded: Numbers<f32> = smallvec![0.0; self.addend.values.len()];
        for part in [Part::First, Part::Last] {
            aligned::<WIDE>(self, &rounded, part, rounding, bits);
            for (rounded, bits) in rounded.iter_mut().zip(bits.drain(..)) {
                *rounded = f32::read(how.result, bits.into());
            }
        }
        let total = |(&sum, &addend): (&f32, &f32)| match how.result {
            // The sum of two halves is exact, and rounded once.
            Element::F16 => Half::nearest(f64::from(sum) + f64::from(addend)) as u32,
            _ => canonical(sum + addend).to_bits(),
        };
        bits.extend(rounded.iter().zip(&self.addend.values).map(total));
    }

    /// Computes `mma.m8n8k4` as the driver compiles it: sums in single precision, to which the addend is added last.
    #[inline(always)]
    fn multiply_in_steps(&self, how: Manner, bits: &mut Numbers<u32>) {
        let columns = self.b.columns;
        let product = |row: usize, column: usize, place: usize, sum: f32| {
            let (a, b) = (
                self.a.values[row * self.a.columns + place],
                self.b.values[place * columns + column],
            );
            a.fused(b, sum)
        };
        let element = |(at, &addend): (usize, &f32)| {
            let step = |place, sum| product(at / columns, at % columns, place, sum);
            if how.result == Element::F16 {
                // The first product keeps the sign of a zero.
                let sum = step(1, step(0, -0.0)) + step(3, step(2, -0.0));
                return Half::nearest(f64::from(sum) + f64::from(addend)) as u32;
            }
            let sum = (0..self.a.columns).fold(0.0, |sum, place| step(place, sum));
            canonical(sum + addend).to_bits()
        };
        bits.extend(self.addend.values.iter().enumerate().map(element));
    }
}

impl Multiply for Problem<i32> {
    type Bits = u32;

    #[inline(always)]
    fn compute<const WIDE: bool>(&self, how: Manner, bits: &mut Numbers<u32>) {
        // Every sum of products fits in 32 bits.
        let mut sums: Numbers<i32> = smallvec![0; self.addend.values.len()];
        match how.accumulation {
            Accumulation::Sum => self.add(&mut sums, |sum: i32, a, b| sum + a * b),
            Accumulation::PopulationOfAnd => self.add(&mut sums, |sum: i32, a, b| sum + (a & b)),
            Accumulation::PopulationOfXor => self.add(&mut sums, |sum: i32, a, b| sum + (a ^ b)),
        }
        let total = |(sum, addend): (i32, &i32)| {
            if how.saturates {
                sum.saturating_add(*addend)
            } else {
                sum.wrapping_add(*addend)
            }
        };
        bits.extend(
            sums.into_iter()
                .zip(&self.addend.values)
                .map(|it| total(it).cast_unsigned()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manner(element: Element, result: Element) -> Manner {
        let accumulation = Accumulation::Sum;
        Manner {
            factors: [element; 2],
            result,
            accumulation,
            saturates: false,
            maker: Maker::Warp,
        }
    }

    fn results<T>(problem: &Problem<T>, how: Manner) -> Numbers<<Problem<T> as Multiply>::Bits>
    where
        Problem<T>: Multiply,
    {
        let mut bits = Numbers::new();
        problem.multiply::<false>(how, &mut bits);
        bits
    }

    #[test]
    fn integer_sums_wrap_or_saturate() {
        let matrix = |value| Matrix {
            values: smallvec![value],
            columns: 1,
        };
        let problem = Problem {
            a: matrix(127),
            b: matrix(127),
            addend: matrix(i32::MAX),
            places: None,
        };
        let result = |saturates| {
            results(
                &problem,
                Manner {
                    saturates,
                    ..manner(Element::S8, Element::S32)
                },
            )[0] as i32
        };
        assert_eq!(
            [result(true), result(false)],
            [i32::MAX, i32::MIN + 127 * 127 - 1]
        );
    }

    #[test]
    fn absent_elements_of_a_sparse_matrix_are_not_multiplied() {
        let problem = Problem {
            a: Matrix {
                values: smallvec![2.0_f32, 3.0],
                columns: 2,
            },
            b: Matrix {
                values: smallvec![f32::NAN, 10.0, f32::INFINITY, 1.0],
                columns: 1,
            },
            addend: Matrix {
                values: smallvec![0.5],
                columns: 1,
            },
            places: Some(vec![1, 3]),
        };
        assert_eq!(
            results(&problem, manner(Element::F16, Element::F32))[..],
            [23.5_f32.to_bits()]
        );
    }
}
