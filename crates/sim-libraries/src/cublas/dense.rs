//! Matrices by columns, without gaps.

use curium_sys::cublas::cublasOperation_t;

use super::operand::Shape;
use super::{INVALID, Number, Result};

/// A matrix by columns, without gaps.
#[derive(Clone, Debug)]
pub(super) struct Dense<T> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) elements: Vec<T>,
}

impl<T: Number> Dense<T> {
    pub(super) fn new(shape: Shape, elements: Vec<T>) -> Self {
        let Shape { rows, columns } = shape;
        assert_eq!(
            elements.len(),
            rows * columns,
            "the elements fill the matrix"
        );
        Self {
            rows,
            columns,
            elements,
        }
    }

    /// Returns the matrix whose elements `element` returns by row and column.
    pub(super) fn from_fn(
        rows: usize,
        columns: usize,
        element: impl Fn(usize, usize) -> T,
    ) -> Self {
        let mut elements = Vec::with_capacity(rows * columns);
        for column in 0..columns {
            elements.extend((0..rows).map(|row| element(row, column)));
        }
        Self {
            rows,
            columns,
            elements,
        }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> T {
        self.elements[column * self.rows + row]
    }

    pub(super) fn at_mut(&mut self, row: usize, column: usize) -> &mut T {
        &mut self.elements[column * self.rows + row]
    }

    /// Returns the matrix as cuBLAS's operation uses it.
    pub(super) fn transformed(self, transform: Transform) -> Self {
        match transform {
            Transform::None => self,
            Transform::Transposition => {
                Self::from_fn(self.columns, self.rows, |row, column| self.at(column, row))
            }
            Transform::Adjoint => Self::from_fn(self.columns, self.rows, |row, column| {
                self.at(column, row).conj()
            }),
        }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let elements = T::product(
            &self.elements,
            &other.elements,
            self.rows,
            self.columns,
            other.columns,
        );
        Self {
            rows: self.rows,
            columns: other.columns,
            elements,
        }
    }

    pub(super) fn scaled(mut self, factor: T) -> Self {
        for element in &mut self.elements {
            *element = *element * factor;
        }
        self
    }

    /// Adds `factor` · `other`, which is not used if the factor is 0.
    pub(super) fn plus(mut self, factor: T, other: &Self) -> Self {
        if factor != T::zero() {
            for (element, other) in self.elements.iter_mut().zip(&other.elements) {
                *element += factor * *other;
            }
        }
        self
    }

    /// Solves `self` · x = `right` for a triangular matrix.
    pub(super) fn solve(&self, is_upper: bool, mut right: Self) -> Self {
        let n = self.rows;
        for column in 0..right.columns {
            for step in 0..n {
                let row = if is_upper { n - 1 - step } else { step };
                let solved = if is_upper { row + 1..n } else { 0..row };
                let sum = solved.fold(T::zero(), |sum, other| {
                    sum + self.at(row, other) * right.at(other, column)
                });
                *right.at_mut(row, column) = (right.at(row, column) - sum) / self.at(row, row);
            }
        }
        right
    }
}

/// The transformation of a matrix before an operation uses it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Transform {
    None,
    Transposition,
    Adjoint,
}

impl Transform {
    pub(super) fn from_raw(operation: cublasOperation_t) -> Result<Self> {
        match operation {
            cublasOperation_t::CUBLAS_OP_N => Ok(Self::None),
            cublasOperation_t::CUBLAS_OP_T => Ok(Self::Transposition),
            cublasOperation_t::CUBLAS_OP_C => Ok(Self::Adjoint),
            _ => Err(INVALID),
        }
    }

    /// Returns the shape in memory of a matrix that has these sizes after the transformation.
    pub(super) fn stored(self, rows: usize, columns: usize) -> Shape {
        if self == Self::None {
            Shape::new(rows, columns)
        } else {
            Shape::new(columns, rows)
        }
    }

    pub(super) fn flips(self) -> bool {
        self != Self::None
    }
}
