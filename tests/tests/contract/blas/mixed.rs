//! Products of matrices of 8 and 16 bits.

use bytemuck::Pod;
use curium_blas::{Error, Matrix, MatrixLayout, MatrixMut, Mixed, ScalarArgument};
use curium_memory::DeviceBuffer;
use curium_tests::on_driver;
use half::{bf16, f16};

use super::blas_on;
use super::random::Random;

/// Multiplies random matrices of small integers, whose products every type holds exactly.
fn check<T: Mixed<C>, C: Pod + PartialEq + std::fmt::Debug>(
    (alpha, beta): (T::Scale, T::Scale),
    of: impl Fn(i32) -> T,
    result: impl Fn(i32) -> C,
) where
    T::Scale: ScalarArgument<T::Scale>,
{
    on_driver(|test| {
        let stream = test.stream();
        let (mut blas, mut random) = (blas_on(&stream), Random::new(11));
        for _ in 0..8 {
            let (m, n, k) = (4 * (1 + random.below(3)), 4 * (1 + random.below(3)), 4 * (1 + random.below(3)));
            let mut numbers = |len: usize| -> Vec<i32> { (0..len).map(|_| random.below(7) as i32 - 3).collect() };
            let (left, right, before) = (numbers(m * k), numbers(k * n), numbers(m * n));
            let a = DeviceBuffer::from_slice(&stream, &left.iter().map(|value| of(*value)).collect::<Vec<_>>());
            let b = DeviceBuffer::from_slice(&stream, &right.iter().map(|value| of(*value)).collect::<Vec<_>>());
            let c = DeviceBuffer::from_slice(&stream, &before.iter().map(|value| result(*value)).collect::<Vec<_>>());
            let (a, b, mut c) = (a.expect("memory suffices"), b.expect("memory suffices"), c.expect("memory suffices"));
            let (a, b) = (Matrix::row_major(&a, m, k).expect("it fits"), Matrix::row_major(&b, k, n).expect("it fits"));
            let to = &mut MatrixMut::row_major(&mut c, m, n).expect("it fits");
            blas.gemm_mixed(alpha, a, b, beta, to).expect("the shapes agree");
            let product = |row: usize, column: usize| -> i32 {
                (0..k).map(|inner| left[row * k + inner] * right[inner * n + column]).sum()
            };
            // alpha is 2, and beta is 1.
            let expected: Vec<C> = (0..m * n).map(|at| result(2 * product(at / n, at % n) + before[at])).collect();
            assert_eq!(c.to_vec().expect("it can be read"), expected);
        }
    });
}

#[test]
fn products_of_16_bits_are_summed_in_32_bits() {
    check::<f16, f16>((2.0, 1.0), |value| f16::from_f32(value as f32), |value| f16::from_f32(value as f32));
    check::<f16, f32>((2.0, 1.0), |value| f16::from_f32(value as f32), |value| value as f32);
    check::<bf16, bf16>((2.0, 1.0), |value| bf16::from_f32(value as f32), |value| bf16::from_f32(value as f32));
    check::<bf16, f32>((2.0, 1.0), |value| bf16::from_f32(value as f32), |value| value as f32);
}

#[test]
fn products_of_8_bits_are_summed_in_32_bits() {
    check::<i8, i32>((2, 1), |value| value as i8, |value| value);
}

#[test]
fn leading_dimension_that_the_type_does_not_allow_is_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let a = DeviceBuffer::<i8>::zeroed(&stream, 64).expect("memory suffices");
        let mut c = DeviceBuffer::<i32>::zeroed(&stream, 64).expect("memory suffices");
        let matrix = Matrix::new(&a, MatrixLayout::column_major(4, 4).with_leading_dimension(6)).expect("it fits");
        let result = &mut MatrixMut::column_major(&mut c, 4, 4).expect("it fits");
        let Err(Error::Shape(error)) = blas.gemm_mixed(1, matrix, matrix, 0, result) else {
            panic!("it is not refused")
        };
        assert!(error.to_string().contains("leading dimension 6"), "{error}");
    });
}
