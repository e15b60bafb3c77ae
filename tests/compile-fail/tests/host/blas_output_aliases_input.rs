//! The result of a product is not one of its factors.

use curium_blas::{Blas, Matrix, MatrixMut};
use curium_memory::DeviceBuffer;

fn square(blas: &mut Blas, mut buffer: DeviceBuffer<f32>) {
    let matrix = Matrix::column_major(&buffer, 2, 2).unwrap();
    let mut result = MatrixMut::column_major(&mut buffer, 2, 2).unwrap();
    blas.gemm(1.0, matrix, matrix, 0.0, &mut result).unwrap();
}

fn main() {}
