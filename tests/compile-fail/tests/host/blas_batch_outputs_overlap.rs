//! The results of a batch do not overlap.

use curium_blas::{Blas, Matrix, MatrixMut};
use curium_memory::DeviceBuffer;

fn twice(blas: &mut Blas, factor: Matrix<'_, f32>, mut buffer: DeviceBuffer<f32>) {
    let one = MatrixMut::column_major(&mut buffer, 2, 2).unwrap();
    let other = MatrixMut::column_major(&mut buffer, 2, 2).unwrap();
    blas.gemm_batched(1.0, &[factor; 2], &[factor; 2], 0.0, &mut [one, other]).unwrap();
}

fn main() {}
