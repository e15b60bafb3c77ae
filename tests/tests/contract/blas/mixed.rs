//! Products of matrices of 8 and 16 bits.

use std::collections::BTreeSet;

use bytemuck::Pod;
use curium_blas::{
    Blas, DeviceScalar, Error, Matrix, MatrixLayout, MatrixMut, Mixed, ScalarArgument,
};
use curium_memory::DeviceBuffer;
use curium_sim::Simulator;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, simulator_test};
use half::{bf16, f16};

use super::blas_on;
use super::coverage::without;
use super::hostile::assert_refused;
use super::random::Random;

/// Multiplies random matrices of small integers, whose products every type holds exactly.
fn check<T: Mixed<C>, C: Pod + PartialEq + std::fmt::Debug>(
    alpha: T::Scale,
    beta: T::Scale,
    of: impl Fn(i32) -> T,
    result: impl Fn(i32) -> C,
) -> TestResult
where
    T::Scale: ScalarArgument<T::Scale>,
{
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let mut random = Random::new(11);
        for _ in 0..8 {
            let m = 4 * (1 + random.below(3));
            let n = 4 * (1 + random.below(3));
            let k = 4 * (1 + random.below(3));
            let mut numbers =
                |len: usize| -> Vec<i32> { (0..len).map(|_| random.below(7) as i32 - 3).collect() };
            let left = numbers(m * k);
            let right = numbers(k * n);
            let before = numbers(m * n);
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
            let a = a?;
            let b = b?;
            let mut c = c?;
            let a = Matrix::row_major(&a, m, k)?;
            let b = Matrix::row_major(&b, k, n)?;
            let to = &mut MatrixMut::row_major(&mut c, m, n)?;
            blas.gemm_mixed(alpha, a, b, beta, to)?;
            let product = |row: usize, column: usize| -> i32 {
                (0..k)
                    .map(|inner| left[row * k + inner] * right[inner * n + column])
                    .sum()
            };
            // alpha is 2, and beta is 1.
            let expected: Vec<C> = (0..m * n)
                .map(|index| result(2 * product(index / n, index % n) + before[index]))
                .collect();
            assert_eq!(c.to_vec()?, expected);
        }
        Ok(())
    })
}

/// Multiplies a batch of random matrices of small integers, whose factors are stored by columns and
/// whose results are stored by rows, or the other way around. All left factors but the first are
/// the same matrix.
fn check_batch<T: Mixed<C>, C: Pod + PartialEq + std::fmt::Debug>(
    alpha: T::Scale,
    beta: T::Scale,
    of: impl Fn(i32) -> T,
    result: impl Fn(i32) -> C,
) -> TestResult
where
    T::Scale: ScalarArgument<T::Scale>,
{
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let mut random = Random::new(13);
        for round in 0..8 {
            // Matrices begin at multiples of 16 bytes.
            let m = 16 * (1 + random.below(2));
            let n = 16 * (1 + random.below(2));
            let k = 16 * (1 + random.below(2));
            let is_by_rows = round % 2 == 0;
            let count = 1 + random.below(4);
            let mut numbers =
                |len: usize| -> Vec<i32> { (0..len).map(|_| random.below(7) as i32 - 3).collect() };
            let left = numbers(2 * m * k);
            let right = numbers(count * k * n);
            let before = numbers(count * m * n);
            let upload = |numbers: &[i32]| {
                let values: Vec<T> = numbers.iter().map(|value| of(*value)).collect();
                DeviceBuffer::from_slice(&stream, &values)
            };
            let a = upload(&left)?;
            let b = upload(&right)?;
            let values: Vec<C> = before.iter().map(|value| result(*value)).collect();
            let mut c = DeviceBuffer::from_slice(&stream, &values)?;

            let factors: Vec<_> = a.chunks(m * k)?.collect();
            let lefts: Vec<_> = (0..count)
                .map(|index: usize| Matrix::column_major(&factors[index.min(1)], m, k))
                .collect::<Result<_, _>>()?;
            let factors: Vec<_> = b.chunks(k * n)?.collect();
            let rights: Vec<_> = factors
                .iter()
                .map(|factor| Matrix::column_major(factor, k, n))
                .collect::<Result<_, _>>()?;
            let layout = if is_by_rows {
                MatrixLayout::row_major(m, n)
            } else {
                MatrixLayout::column_major(m, n)
            };
            let mut results: Vec<_> = c.chunks_mut(m * n)?.collect();
            let mut to: Vec<_> = results
                .iter_mut()
                .map(|result| MatrixMut::new(result, layout))
                .collect::<Result<_, _>>()?;
            blas.gemm_mixed_batched(alpha, &lefts, &rights, beta, &mut to)?;

            let expected = |at: usize| {
                let index = at / (m * n);
                let position = at % (m * n);
                let (row, column) = if is_by_rows {
                    (position / n, position % n)
                } else {
                    (position % m, position / m)
                };
                let left = &left[index.min(1) * m * k..];
                let right = &right[index * k * n..];
                let product: i32 = (0..k)
                    .map(|inner| left[inner * m + row] * right[column * k + inner])
                    .sum();
                // alpha is 2, and beta is 1.
                result(2 * product + before[at])
            };
            let expected: Vec<C> = (0..count * m * n).map(expected).collect();
            assert_eq!(c.to_vec()?, expected);
        }
        Ok(())
    })
}

#[test]
fn batches_with_16_bits_are_summed_in_32_bits() -> TestResult {
    check_batch::<f16, f16>(
        2.0,
        1.0,
        |value| f16::from_f32(value as f32),
        |value| f16::from_f32(value as f32),
    )?;
    check_batch::<f16, f32>(
        2.0,
        1.0,
        |value| f16::from_f32(value as f32),
        |value| value as f32,
    )?;
    check_batch::<bf16, f32>(
        2.0,
        1.0,
        |value| bf16::from_f32(value as f32),
        |value| value as f32,
    )?;
    check_batch::<bf16, bf16>(
        2.0,
        1.0,
        |value| bf16::from_f32(value as f32),
        |value| bf16::from_f32(value as f32),
    )?;
    Ok(())
}

#[test]
fn batches_with_8_bits_are_summed_in_32_bits() -> TestResult {
    check_batch::<i8, i32>(2, 1, |value| value as i8, |value| value)?;
    Ok(())
}

/// A batch with factors in device memory and no former result.
#[driver_test]
fn batch_takes_factors_in_device_memory(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let a = DeviceBuffer::filled(&stream, 64, bf16::from_f32(0.5))?;
    let three = DeviceBuffer::from_slice(&stream, &[3.0_f32])?;
    let zero = DeviceBuffer::from_slice(&stream, &[0.0_f32])?;
    let mut c = DeviceBuffer::filled(&stream, 64, f32::NAN)?;
    let matrix = [Matrix::row_major(&a, 8, 8)?];
    let mut to = [MatrixMut::row_major(&mut c, 8, 8)?];
    let [alpha, beta] =
        [&three, &zero].map(|number| DeviceScalar::new(number).expect("it has an element"));
    blas.gemm_mixed_batched(alpha, &matrix, &matrix, beta, &mut to)?;
    assert_eq!(c.to_vec()?, [6.0; 64]);
    Ok(())
}

#[driver_test]
fn batches_that_the_types_do_not_allow_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let a = DeviceBuffer::<i8>::zeroed(&stream, 64)?;
    let mut c = DeviceBuffer::<i32>::zeroed(&stream, 64)?;
    let layout = MatrixLayout::column_major(4, 4);
    let shifted = a.slice(4..)?;
    let square = Matrix::new(&a, layout)?;
    let wide = Matrix::new(&a, layout.with_leading_dimension(6))?;
    let misaligned = Matrix::new(&shifted, layout)?;
    let mut to = [MatrixMut::column_major(&mut c, 4, 4)?];
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
        let actual = blas.gemm_mixed_batched(1, &left, &right, 0, &mut to);
        assert_refused(actual, &["Blas::gemm_mixed_batched", part]);
    }
    blas.gemm_mixed_batched::<i8, i32, i32>(1, &[], &[], 0, &mut [])?;
    Ok(())
}

/// Sizes beyond 32 bits call the functions with 64 bit sizes.
#[simulator_test]
fn large_sizes_call_64_bit_functions(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let lacking = ["cublasGemmEx_64", "cublasGemmBatchedEx_64"];
    let mut blas = Blas::new(&without(&BTreeSet::from(lacking))?, &stream)?;
    let a = DeviceBuffer::from_slice(&stream, &[f16::from_f32(3.0)])?;
    let mut c = DeviceBuffer::<f32>::zeroed(&stream, 1)?;
    let layout = MatrixLayout::column_major(1, 1).with_leading_dimension(1 << 32);
    let matrix = Matrix::new(&a, layout)?;
    let mut to = [MatrixMut::column_major(&mut c, 1, 1)?];
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
    blas.gemm_mixed_batched(1.0, &[matrix], &[matrix], 0.0, &mut to)?;
    assert_eq!(c.to_vec()?, [9.0]);
    Ok(())
}

#[test]
fn products_with_16_bits_are_summed_in_32_bits() -> TestResult {
    check::<f16, f16>(
        2.0,
        1.0,
        |value| f16::from_f32(value as f32),
        |value| f16::from_f32(value as f32),
    )?;
    check::<f16, f32>(
        2.0,
        1.0,
        |value| f16::from_f32(value as f32),
        |value| value as f32,
    )?;
    check::<bf16, bf16>(
        2.0,
        1.0,
        |value| bf16::from_f32(value as f32),
        |value| bf16::from_f32(value as f32),
    )?;
    check::<bf16, f32>(
        2.0,
        1.0,
        |value| bf16::from_f32(value as f32),
        |value| value as f32,
    )?;
    Ok(())
}

#[test]
fn products_with_8_bits_are_summed_in_32_bits() -> TestResult {
    check::<i8, i32>(2, 1, |value| value as i8, |value| value)?;
    Ok(())
}

/// A leading dimension that the type does not allow is refused.
#[driver_test]
fn unsupported_leading_dimension_is_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let a = DeviceBuffer::<i8>::zeroed(&stream, 64)?;
    let mut c = DeviceBuffer::<i32>::zeroed(&stream, 64)?;
    let matrix = Matrix::new(
        &a,
        MatrixLayout::column_major(4, 4).with_leading_dimension(6),
    )?;
    let result = &mut MatrixMut::column_major(&mut c, 4, 4)?;
    let Err(Error::Shape(error)) = blas.gemm_mixed(1, matrix, matrix, 0, result) else {
        panic!("it is not refused")
    };
    assert!(error.to_string().contains("leading dimension 6"), "{error}");
    Ok(())
}
