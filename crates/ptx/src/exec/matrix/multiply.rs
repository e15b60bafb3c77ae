//! Products of matrices, and the rounding of their sums.

use std::ops::Range;

use smallvec::smallvec;

use super::number::Number;
use super::rounding::{Rounding, aligned};
use super::{Accumulation, Element, Numbers};
use crate::exec::frame::InFile;
use crate::exec::values::float::canonical;
use crate::exec::values::fused::Fused as _;
use crate::exec::values::narrow::Half;

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
        for value in &mut self.values {
            *value = value.negative();
        }
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
    pub(crate) sparse_columns: Option<Vec<u16>>,
}

impl<T: Number> Problem<T> {
    /// Returns the row of B that belongs to an element of A, from the element's index in A and in
    /// its row.
    #[inline(always)]
    pub(super) fn b_row(&self, index: usize, number: usize) -> usize {
        match &self.sparse_columns {
            Some(columns) => usize::from(columns[index]),
            None => number,
        }
    }

    /// Adds the products to sums.
    #[inline(always)]
    fn add(&self, sums: &mut [T], step: impl Fn(T, T, T) -> T) {
        for (row, sums) in sums.chunks_exact_mut(self.b.columns).enumerate() {
            for number in 0..self.a.columns {
                let index = row * self.a.columns + number;
                let a = self.a.values[index];
                let b_row = &self.b.values[self.b_row(index, number) * self.b.columns..];
                for (sum, &b) in sums.iter_mut().zip(b_row) {
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
pub(crate) struct ProductKind {
    /// The formats of A and B.
    pub(crate) factors: [Element; 2],
    pub(crate) result: Element,
    pub(crate) accumulation: Accumulation,
    pub(crate) saturates: bool,
    pub(crate) unit: ComputeUnit,
}

/// The unit that computes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComputeUnit {
    QuadPair,
    Warp,
    Warpgroup,
    /// Tensor cores with tensor memory (`tcgen05`).
    TensorMemory,
}

/// Computes products, rounded to the bits of the result.
pub(crate) trait Multiply {
    /// The bits of a result.
    type Bits: InFile;
    /// Computes the bits of the results, row by row, into an empty buffer. Use
    /// [`Problem::multiply`], which is not inlined.
    fn compute<const WIDE: bool>(&self, kind: ProductKind, bits: &mut Numbers<Self::Bits>);
}

impl<T> Problem<T>
where
    Self: Multiply,
{
    /// Computes the bits of the results, row by row, into an empty buffer. The functions are not
    /// inlined, because they are long and serve the products of warps and of warpgroups. `WIDE`
    /// requires AVX2, FMA and F16C.
    #[inline(always)]
    pub(crate) fn multiply<const WIDE: bool>(
        &self,
        kind: ProductKind,
        bits: &mut Numbers<<Self as Multiply>::Bits>,
    ) {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        #[inline(never)]
        fn compute_wide<P: Multiply>(problem: &P, kind: ProductKind, bits: &mut Numbers<P::Bits>) {
            problem.compute::<true>(kind, bits);
        }

        #[inline(never)]
        fn compute_base<P: Multiply>(problem: &P, kind: ProductKind, bits: &mut Numbers<P::Bits>) {
            problem.compute::<false>(kind, bits);
        }

        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: `WIDE` requires the features; only handlers selected for them pass it.
            return unsafe { compute_wide(self, kind, bits) };
        }
        compute_base(self, kind, bits);
    }
}

impl Multiply for Problem<f64> {
    type Bits = u64;

    #[inline(always)]
    fn compute<const WIDE: bool>(&self, _kind: ProductKind, bits: &mut Numbers<u64>) {
        let mut sums = self.addend.values.clone();
        self.add(&mut sums, |sum, a, b| a.fused(b, sum));
        bits.extend(sums.into_iter().map(f64::to_bits));
    }
}

impl Multiply for Problem<f32> {
    type Bits = u32;

    #[inline(always)]
    fn compute<const WIDE: bool>(&self, kind: ProductKind, bits: &mut Numbers<u32>) {
        match kind.unit {
            ComputeUnit::QuadPair => return self.multiply_in_steps(kind, bits),
            ComputeUnit::Warp if kind.factors[0].bits() == 8 => {
                return self.multiply_in_parts::<WIDE>(kind, bits);
            }
            _ => {}
        }
        aligned::<WIDE>(
            self,
            &self.addend.values,
            Part::All,
            Rounding::new(kind),
            bits,
        );
    }
}

impl Problem<f32> {
    /// Computes `mma` of 8-bit numbers as the driver compiles it: a product in f16 of the first two
    /// of every four elements of A, a product of the others, and last the sum with the addend.
    #[inline(always)]
    fn multiply_in_parts<const WIDE: bool>(&self, kind: ProductKind, bits: &mut Numbers<u32>) {
        let rounding = Rounding::new(ProductKind {
            factors: [Element::F16; 2],
            ..kind
        });
        let mut rounded: Numbers<f32> = smallvec![0.0; self.addend.values.len()];
        for part in [Part::First, Part::Last] {
            aligned::<WIDE>(self, &rounded, part, rounding, bits);
            for (rounded, bits) in rounded.iter_mut().zip(bits.drain(..)) {
                *rounded = f32::read(kind.result, bits.into());
            }
        }
        let terms = rounded.iter().zip(&self.addend.values);
        bits.extend(terms.map(|(&sum, &addend)| {
            if kind.result == Element::F16 {
                // The sum of two halves is exact, and rounded once.
                Half::nearest(f64::from(sum) + f64::from(addend)) as u32
            } else {
                canonical(sum + addend).to_bits()
            }
        }));
    }

    /// Computes `mma.m8n8k4` as the driver compiles it: sums in single precision, to which the
    /// addend is added last.
    #[inline(always)]
    fn multiply_in_steps(&self, kind: ProductKind, bits: &mut Numbers<u32>) {
        let columns = self.b.columns;
        for (index, &addend) in self.addend.values.iter().enumerate() {
            let row = index / columns;
            let column = index % columns;
            if kind.result == Element::F16 {
                // The first product keeps the sign of a zero.
                let sum = self.add_products(row, column, 0..2, -0.0)
                    + self.add_products(row, column, 2..4, -0.0);
                bits.push(Half::nearest(f64::from(sum) + f64::from(addend)) as u32);
            } else {
                let sum = self.add_products(row, column, 0..self.a.columns, 0.0);
                bits.push(canonical(sum + addend).to_bits());
            }
        }
    }

    /// Adds some of the products of a row of A and a column of B to a sum.
    #[inline(always)]
    fn add_products(&self, row: usize, column: usize, inner: Range<usize>, mut sum: f32) -> f32 {
        for number in inner {
            let a = self.a.values[row * self.a.columns + number];
            let b = self.b.values[number * self.b.columns + column];
            sum = a.fused(b, sum);
        }
        sum
    }
}

impl Multiply for Problem<i32> {
    type Bits = u32;

    #[inline(always)]
    fn compute<const WIDE: bool>(&self, kind: ProductKind, bits: &mut Numbers<u32>) {
        // Every sum of products fits in 32 bits.
        let mut sums: Numbers<i32> = smallvec![0; self.addend.values.len()];
        match kind.accumulation {
            Accumulation::Sum => self.add(&mut sums, |sum: i32, a, b| sum + a * b),
            Accumulation::PopulationOfAnd => self.add(&mut sums, |sum: i32, a, b| sum + (a & b)),
            Accumulation::PopulationOfXor => self.add(&mut sums, |sum: i32, a, b| sum + (a ^ b)),
        }
        bits.extend(
            sums.into_iter()
                .zip(&self.addend.values)
                .map(|(sum, addend)| {
                    let total = if kind.saturates {
                        sum.saturating_add(*addend)
                    } else {
                        sum.wrapping_add(*addend)
                    };
                    total.cast_unsigned()
                }),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::matrix::multiply::*;

    fn product_kind(element: Element, result: Element) -> ProductKind {
        let accumulation = Accumulation::Sum;
        ProductKind {
            factors: [element; 2],
            result,
            accumulation,
            saturates: false,
            unit: ComputeUnit::Warp,
        }
    }

    fn results<T>(
        problem: &Problem<T>,
        kind: ProductKind,
    ) -> Numbers<<Problem<T> as Multiply>::Bits>
    where
        Problem<T>: Multiply,
    {
        let mut bits = Numbers::new();
        problem.multiply::<false>(kind, &mut bits);
        bits
    }

    #[test]
    fn integer_sums_wrap_or_saturate() {
        let [a, b, addend] = [127, 127, i32::MAX].map(|value| Matrix {
            values: smallvec![value],
            columns: 1,
        });
        let problem = Problem {
            a,
            b,
            addend,
            sparse_columns: None,
        };
        for (saturates, expected) in [(true, i32::MAX), (false, i32::MIN + 127 * 127 - 1)] {
            let kind = ProductKind {
                saturates,
                ..product_kind(Element::S8, Element::S32)
            };
            assert_eq!(results(&problem, kind)[..], [expected.cast_unsigned()]);
        }
    }

    #[test]
    fn absent_elements_are_not_multiplied() {
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
            sparse_columns: Some(vec![1, 3]),
        };
        assert_eq!(
            results(&problem, product_kind(Element::F16, Element::F32))[..],
            [23.5_f32.to_bits()]
        );
    }
}
