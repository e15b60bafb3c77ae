//! Matrix products of `f64`, `f16` and `i8`.

use curium_driver::LaunchConfig;
use curium_memory::{AnyBitPattern, DeviceBuffer, NoUninit};
use curium_tests::{Fused as _, TestDriver, TestResult, driver_test, kernels};

use super::sixteen_bits::{F16, fused};
use super::{buffer, floats, integers, kernel, values};

/// Rows, depth and columns.
type Shape = (usize, usize, usize);

const SHAPES: [Shape; 3] = [(1, 1, 1), (17, 5, 33), (20, 50, 18)];

/// Returns the product computed by a kernel, with elements of one type.
fn product<T: AnyBitPattern + NoUninit>(
    test: &TestDriver,
    name: &str,
    shape: Shape,
    left: &[T],
    right: &[T],
) -> TestResult<Vec<T>> {
    let stream = test.stream();
    let (rows, depth, columns) = shape;
    let mut product = DeviceBuffer::<T>::zeroed(&stream, rows * columns)?;
    let grid = (columns.div_ceil(16) as u32, rows.div_ceil(16) as u32);
    let left = buffer(&stream, left);
    let right = buffer(&stream, right);
    let kernel = kernel::<(&[T], &[T], &mut [T], u32, u32, u32)>(test, kernels::PRODUCTS, name);
    let arguments = (
        &left,
        &right,
        &mut product,
        rows as u32,
        depth as u32,
        columns as u32,
    );
    // SAFETY: the kernel compares its indices with the sizes, which are those of the buffers.
    unsafe { kernel.launch(&stream, LaunchConfig::new(grid, (16, 16)), arguments) }?;
    Ok(values(&product))
}

/// Returns each element, accumulated along the depth by `step`, which receives the sum and the
/// indices of both factors.
fn summed<S>(
    (rows, depth, columns): Shape,
    zero: impl Fn() -> S,
    step: impl Fn(S, usize, usize) -> S,
) -> Vec<S> {
    let element = |at: usize| {
        let row = at / columns;
        let column = at % columns;
        (0..depth).fold(zero(), |sum, k| {
            step(sum, row * depth + k, k * columns + column)
        })
    };
    (0..rows * columns).map(element).collect()
}

fn halves(seed: u32, count: usize) -> Vec<u16> {
    floats(seed, count)
        .into_iter()
        .map(|value| F16.bits(f64::from(value) * 0.04))
        .collect()
}

#[driver_test]
fn double_product_equals_the_cpu_bit_for_bit(test: &TestDriver) -> TestResult {
    for shape @ (rows, depth, columns) in SHAPES {
        let doubles = |seed, count| {
            floats(seed, count)
                .into_iter()
                .map(|value| f64::from(value) / 3.0)
                .collect()
        };
        let left: Vec<f64> = doubles(1, rows * depth);
        let right: Vec<f64> = doubles(2, depth * columns);
        let actual = product(test, "matmul_f64", shape, &left, &right)?;
        let expected = summed(shape, || 0.0_f64, |sum, a, b| left[a].fused(right[b], sum));
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(actual), bits(expected), "{shape:?}");
    }
    Ok(())
}

#[driver_test]
fn half_product_is_summed_in_single_precision(test: &TestDriver) -> TestResult {
    for shape @ (rows, depth, columns) in SHAPES {
        let left = halves(3, rows * depth);
        let right = halves(4, depth * columns);
        let actual = product(test, "matmul_f16", shape, &left, &right)?;
        fn widen(bits: u16) -> f32 {
            F16.value(bits) as f32
        }

        let expected = summed(
            shape,
            || 0.0_f32,
            |sum, a, b| widen(left[a]).fused(widen(right[b]), sum),
        );
        assert_eq!(
            actual,
            expected
                .into_iter()
                .map(|sum| F16.bits(sum.into()))
                .collect::<Vec<_>>(),
            "{shape:?}"
        );
    }
    Ok(())
}

/// A product of halves is rounded to a half at each step.
#[driver_test]
fn half_product_is_rounded_at_each_step(test: &TestDriver) -> TestResult {
    for shape @ (rows, depth, columns) in SHAPES {
        let left = halves(5, rows * depth);
        let right = halves(6, depth * columns);
        let actual = product(test, "matmul_f16_steps", shape, &left, &right)?;
        let expected = summed(
            shape,
            || 0.0_f64,
            |sum, a: usize, b: usize| {
                F16.round(fused(F16.value(left[a]), F16.value(right[b]), sum))
            },
        );
        assert_eq!(
            actual,
            expected
                .into_iter()
                .map(|sum| F16.bits(sum))
                .collect::<Vec<_>>(),
            "{shape:?}"
        );
    }
    Ok(())
}

#[driver_test]
fn byte_product_equals_the_cpu(test: &TestDriver) -> TestResult {
    for shape @ (rows, depth, columns) in SHAPES {
        let words = |seed, count| {
            integers(seed, count)
                .into_iter()
                .map(u32::cast_signed)
                .collect()
        };
        let left: Vec<i32> = words(7, rows * depth);
        let right: Vec<i32> = words(8, depth * columns);
        let actual = product(test, "matmul_i8", shape, &left, &right)?;
        let bytes = |word: i32| word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
        let dot = |a: i32, b: i32| {
            bytes(a)
                .into_iter()
                .zip(bytes(b))
                .map(|(a, b)| a * b)
                .sum::<i32>()
        };
        assert_eq!(
            actual,
            summed(shape, || 0, |sum, a, b| sum + dot(left[a], right[b])),
            "{shape:?}"
        );
    }
    Ok(())
}
