//! The bytes of the operands while an operation runs.

use bytemuck::Pod;

use super::operand::{
    BandOperand, MatrixOperand, Other, Scalar, Shape, TriangleOperand, VectorOperand,
};
use super::{Dense, Number};

/// The bytes of the operands while the operation runs.
pub(super) struct Memory<'a>(pub(super) &'a mut [Vec<u8>]);

impl Memory<'_> {
    fn get<T: Pod>(&self, index: usize) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&self.0[index])
    }

    pub(super) fn set<T: Pod>(&mut self, index: usize, values: &[T]) {
        self.0[index].copy_from_slice(bytemuck::cast_slice(values));
    }

    pub(super) fn scalar<T: Pod>(&self, scalar: Scalar<T>) -> T {
        match scalar {
            Scalar::Host(value) => value,
            Scalar::Device(index) => self.get(index)[0],
        }
    }

    pub(super) fn vector<T: Number>(&self, VectorOperand(index): VectorOperand) -> Vec<T> {
        self.get(index)
    }

    /// Returns a vector as a matrix with one column.
    pub(super) fn column<T: Number>(&self, vector: VectorOperand) -> Dense<T> {
        let elements = self.vector(vector);
        Dense::new(Shape::new(elements.len(), 1), elements)
    }

    pub(super) fn set_vector<T: Number>(
        &mut self,
        VectorOperand(index): VectorOperand,
        values: &[T],
    ) {
        self.set(index, values);
    }

    pub(super) fn matrix<T: Number>(&self, matrix: MatrixOperand) -> Dense<T> {
        Dense::new(matrix.shape, self.get(matrix.index))
    }

    /// Returns the elements of a matrix by columns.
    pub(super) fn elements<T: Pod>(&self, matrix: MatrixOperand) -> Vec<T> {
        self.get(matrix.index)
    }

    pub(super) fn set_elements<T: Pod>(&mut self, matrix: MatrixOperand, elements: &[T]) {
        self.set(matrix.index, elements);
    }

    pub(super) fn set_matrix<T: Number>(&mut self, matrix: MatrixOperand, values: &Dense<T>) {
        self.set(matrix.index, &values.elements);
    }

    /// Returns each of the matrices of an operand.
    pub(super) fn matrices<T: Number>(&self, matrix: MatrixOperand) -> Vec<Dense<T>> {
        let elements = self.get(matrix.index);
        elements
            .chunks((matrix.shape.rows * matrix.shape.columns).max(1))
            .map(|part| Dense::new(matrix.shape, part.to_vec()))
            .collect()
    }

    pub(super) fn set_matrices<T: Number>(&mut self, matrix: MatrixOperand, values: &[Dense<T>]) {
        let all: Vec<T> = values
            .iter()
            .flat_map(|part| part.elements.iter().copied())
            .collect();
        self.set(matrix.index, &all);
    }

    /// Returns the whole matrix of a band.
    pub(super) fn band<T: Number>(&self, band: BandOperand) -> Dense<T> {
        let Shape { rows, columns } = band.shape;
        let mut elements = self.get::<T>(band.index).into_iter();
        let mut whole = Dense::from_fn(rows, columns, |_, _| T::zero());
        for column in 0..columns {
            for (row, element) in band.rows(column).zip(&mut elements) {
                *whole.at_mut(row, column) = element;
            }
        }
        whole
    }

    /// Returns the whole matrix of a triangle.
    pub(super) fn triangle<T: Number>(&self, triangle: TriangleOperand, other: Other) -> Dense<T> {
        let n = triangle.size;
        let elements = self.get::<T>(triangle.index);
        let mut whole = Dense::from_fn(
            n,
            n,
            |row, column| if row == column { T::one() } else { T::zero() },
        );
        for ((row, column), element) in triangle.positions().zip(elements) {
            if row != column {
                *whole.at_mut(column, row) = match other {
                    Other::Zero => T::zero(),
                    Other::Symmetric => element,
                    Other::Hermitian => element.conj(),
                };
            }
            let is_real = row == column && other == Other::Hermitian;
            *whole.at_mut(row, column) = if is_real {
                T::from_real(element.re())
            } else {
                element
            };
        }
        whole
    }

    pub(super) fn set_triangle<T: Number>(&mut self, triangle: TriangleOperand, values: &Dense<T>) {
        let elements: Vec<T> = triangle
            .positions()
            .map(|(row, column)| values.at(row, column))
            .collect();
        self.set(triangle.index, &elements);
    }
}
