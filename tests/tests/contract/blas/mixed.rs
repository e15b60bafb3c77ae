//! Products of matrices of 8 and 16 bits.

use std::collections::BTreeSet;

use bytemuck::Pod;
use curium_blas::{
    Blas, DeviceScalar, Error, Matrix, MatrixLayout, MatrixMut, Mixed, ScalarArgument,
};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::{on_driver, on_simulator};
use half::{bf16, f16};

use super::blas_on;
use super::coverage::without;
use super::hostile::assert_refused;
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
            let (m, n, k) = (
                4 * (1 + random.below(3)),
                4 * (1 + random.below(3)),
                4 * (1 + random.below(3)),
            );
            let mut numbers =
                |len: usize| -> Vec<i32> { (0..len).map(|_| random.below(7) as i32 - 3).collect() };
            let (left, right, before) = (numbers(m * k), numbers(k * n), numbers(m * n));
            let a = DeviceBuffer::from_slice(
                &stream,
                &left.iter().map(|value| of(*value)).collect::<Vec<_>>(),
            );
            let b = DeviceBuffer::from_slice(
                &stream,
                &right.iter().map(|value| of(*value)).collect::<Vec<_>>(),
            );
            let c = DeviceBuffer::from_slice(
                &stream,
                &before
                    .iter()
                    .map(|value| result(*value))
                    .collect::<Vec<_>>(),
            );
            let (a, b, mut c) = (
                a.expect("memory suffices"),
                b.expect("memory suffices"),
                c.expect("memory suffices"),
            );
            let (a, b) = (
                Matrix::row_major(&a, m, k).expect("it fits"),
                Matrix::row_major(&b, k, n).expect("it fits"),
            );
            let to = &mut MatrixMut::row_major(&mut c, m, n).expect("it fits");
            blas.gemm_mixed(alpha, a, b, beta, to)
                .expect("the shapes agree");
            let product = |row: usize, column: usize| -> i32 {
                (0..k)
                    .map(|inner| left[row * k + inner] * right[inner * n + column])
                    .sum()
            };
            // alpha is 2, and beta is 1.
            let expected: Vec<C> = (0..m * n)
                .map(|at| result(2 * product(at / n, at % n) + before[at]))
                .collect();
            assert_eq!(c.to_vec().expect("it can be read"), expected);
        }
    });
}

/// Multiplies a batch of random matrices of small integers, whose factors are stored by columns and whose results are stored by rows, or
/// the other way around. All left factors but the first are the same matrix.
fn check_batch<T: Mixed<C>, C: Pod + PartialEq + std::fmt::Debug>(
    (alpha, beta): (T::Scale, T::Scale),
    of: impl Fn(i32) -> T,
    result: impl Fn(i32) -> C,
) where
    T::Scale: ScalarArgument<T::Scale>,
{
    on_driver(|test| {
        let stream = test.stream();
        let (mut blas, mut random) = (blas_on(&stream), Random::new(13));
        for round in 0..8 {
            // Matrices begin at multiples of 16 bytes.
            let (m, n, k) = (
                16 * (1 + random.below(2)),
                16 * (1 + random.below(2)),
                16 * (1 + random.below(2)),
            );
            let (is_by_rows, count) = (round % 2 == 0, 1 + random.below(4));
            let mut numbers =
                |len: usize| -> Vec<i32> { (0..len).map(|_| random.below(7) as i32 - 3).collect() };
            let (left, right, before) = (
                numbers(2 * m * k),
                numbers(count * k * n),
                numbers(count * m * n),
            );
            let upload = |numbers: &[i32]| {
                let values: Vec<T> = numbers.iter().map(|value| of(*value)).collect();
                DeviceBuffer::from_slice(&stream, &values).expect("memory suffices")
            };
            let (a, b) = (upload(&left), upload(&right));
            let values: Vec<C> = before.iter().map(|value| result(*value)).collect();
            let mut c = DeviceBuffer::from_slice(&stream, &values).expect("memory suffices");

            let factors: Vec<_> = a
                .as_slice()
                .chunks(m * k)
                .expect("it has elements")
                .collect();
            let view =
                |index: usize| Matrix::column_major(&factors[index.min(1)], m, k).expect("it fits");
            let lefts: Vec<_> = (0..count).map(view).collect();
            let factors: Vec<_> = b
                .as_slice()
                .chunks(k * n)
                .expect("it has elements")
                .collect();
            let view = |factor| Matrix::column_major(factor, k, n).expect("it fits");
            let rights: Vec<_> = factors.iter().map(view).collect();
            let layout = if is_by_rows {
                MatrixLayout::row_major(m, n)
            } else {
                MatrixLayout::column_major(m, n)
            };
            let mut results: Vec<_> = c
                .as_slice_mut()
                .chunks(m * n)
                .expect("it has elements")
                .collect();
            let view = |result| MatrixMut::new(result, layout).expect("it fits");
            let mut to: Vec<_> = results.iter_mut().map(view).collect();
            blas.gemm_mixed_batched(alpha, &lefts, &rights, beta, &mut to)
                .expect("the shapes agree");

            let expected = |at: usize| {
                let (index, place) = (at / (m * n), at % (m * n));
                let (row, column) = if is_by_rows {
                    (place / n, place % n)
                } else {
                    (place % m, place / m)
                };
                let (left, right) = (&left[index.min(1) * m * k..], &right[index * k * n..]);
                let product: i32 = (0..k)
                    .map(|inner| left[inner * m + row] * right[column * k + inner])
                    .sum();
                // alpha is 2, and beta is 1.
                result(2 * product + before[at])
            };
            let expected: Vec<C> = (0..count * m * n).map(expected).collect();
            assert_eq!(c.to_vec().expect("it can be read"), expected);
        }
    });
}

#[test]
fn batches_of_16_bits_are_summed_in_32_bits() {
    check_batch::<f16, f16>(
        (2.0, 1.0),
        |value| f16::from_f32(value as f32),
        |value| f16::from_f32(value as f32),
    );
    check_batch::<f16, f32>(
        (2.0, 1.0),
        |value| f16::from_f32(value as f32),
        |value| value as f32,
    );
    check_batch::<bf16, f32>(
        (2.0, 1.0),
        |value| bf16::from_f32(value as f32),
        |value| value as f32,
    );
    check_batch::<bf16, bf16>(
        (2.0, 1.0),
        |value| bf16::from_f32(value as f32),
        |value| bf16::from_f32(value as f32),
    );
}

#[test]
fn batches_of_8_bits_are_summed_in_32_bits() {
    check_batch::<i8, i32>((2, 1), |value| value as i8, |value| value);
}

#[test]
fn batch_with_factors_in_device_memory_and_no_former_result() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let a = DeviceBuffer::filled(&stream, 64, bf16::from_f32(0.5)).expect("memory suffices");
        let three = DeviceBuffer::from_slice(&stream, &[3.0_f32]).expect("memory suffices");
        let zero = DeviceBuffer::from_slice(&stream, &[0.0_f32]).expect("memory suffices");
        let mut c = DeviceBuffer::filled(&stream, 64, f32::NAN).expect("memory suffices");
        let matrix = [Matrix::row_major(&a, 8, 8).expect("it fits")];
        let mut to = [MatrixMut::row_major(&mut c, 8, 8).expect("it fits")];
        let [alpha, beta] =
            [&three, &zero].map(|number| DeviceScalar::new(number).expect("it has an element"));
        blas.gemm_mixed_batched(alpha, &matrix, &matrix, beta, &mut to)
            .expect("the shapes agree");
        assert_eq!(c.to_vec().expect("it can be read"), [6.0; 64]);
    });
}

#[test]
fn batches_that_the_types_do_not_allow_are_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let a = DeviceBuffer::<i8>::zeroed(&stream, 64).expect("memory suffices");
        let mut c = DeviceBuffer::<i32>::zeroed(&stream, 64).expect("memory suffices");
        let layout = MatrixLayout::column_major(4, 4);
        let shifted = a.slice(4..).expect("it is within");
        let square = Matrix::new(&a, layout).expect("it fits");
        let wide = Matrix::new(&a, layout.with_leading_dimension(6)).expect("it fits");
        let misaligned = Matrix::new(&shifted, layout).expect("it fits");
        let mut to = [MatrixMut::column_major(&mut c, 4, 4).expect("it fits")];
        for (left, right, part) in [
            (vec![wide], vec![square], "leading dimension 6"),
            (vec![square], vec![wide], "leading dimension 6"),
            (vec![square], vec![misaligned], "not a multiple of 16"),
            (
                vec![square; 2],
                vec![square],
                "numbers of matrices differ (a has 2, b has 1, c has 1)",
            ),
        ] {
            let found = blas.gemm_mixed_batched(1, &left, &right, 0, &mut to);
            assert_refused(found, &["Blas::gemm_mixed_batched", part]);
        }
        blas.gemm_mixed_batched::<i8, i32, i32>(1, &[], &[], 0, &mut [])
            .expect("an empty batch is valid");
    });
}

#[test]
fn sizes_beyond_32_bits_call_the_functions_with_64_bit_sizes() {
    on_simulator(Config::new(), |test, _| {
        let stream = test.stream();
        let lacking = ["cublasGemmEx_64", "cublasGemmBatchedEx_64"];
        let mut blas = Blas::new(&without(&BTreeSet::from(lacking)), &stream)
            .expect("a handle can be created");
        let a = DeviceBuffer::from_slice(&stream, &[f16::from_f32(3.0)]).expect("memory suffices");
        let mut c = DeviceBuffer::<f32>::zeroed(&stream, 1).expect("memory suffices");
        let layout = MatrixLayout::column_major(1, 1).with_leading_dimension(1 << 32);
        let matrix = Matrix::new(&a, layout).expect("it fits");
        let mut to = [MatrixMut::column_major(&mut c, 1, 1).expect("it fits")];
        let results = [
            blas.gemm_mixed(1.0, matrix, matrix, 0.0, &mut to[0]),
            blas.gemm_mixed_batched(1.0, &[matrix], &[matrix], 0.0, &mut to),
        ];
        for (found, function) in results.into_iter().zip(lacking) {
            let Err(Error::Missing(error)) = found else {
                panic!("{found:?}")
            };
            assert_eq!(error.function, function);
        }
        let mut blas = blas_on(&stream);
        blas.gemm_mixed_batched(1.0, &[matrix], &[matrix], 0.0, &mut to)
            .expect("the library has the function");
        assert_eq!(c.to_vec().expect("it can be read"), [9.0]);
    });
}

#[test]
fn products_of_16_bits_are_summed_in_32_bits() {
    check::<f16, f16>(
        (2.0, 1.0),
        |value| f16::from_f32(value as f32),
        |value| f16::from_f32(value as f32),
    );
    check::<f16, f32>(
        (2.0, 1.0),
        |value| f16::from_f32(value as f32),
        |value| value as f32,
    );
    check::<bf16, bf16>(
        (2.0, 1.0),
        |value| bf16::from_f32(value as f32),
        |value| bf16::from_f32(value as f32),
    );
    check::<bf16, f32>(
        (2.0, 1.0),
        |value| bf16::from_f32(value as f32),
        |value| value as f32,
    );
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
        let matrix = Matrix::new(
            &a,
            MatrixLayout::column_major(4, 4).with_leading_dimension(6),
        )
        .expect("it fits");
        let result = &mut MatrixMut::column_major(&mut c, 4, 4).expect("it fits");
        let Err(Error::Shape(error)) = blas.gemm_mixed(1, matrix, matrix, 0, result) else {
            panic!("it is not refused")
        };
        assert!(error.to_string().contains("leading dimension 6"), "{error}");
    });
}
