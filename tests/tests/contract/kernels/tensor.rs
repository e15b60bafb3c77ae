//! Tensor cores, asynchronous copies, barrier objects and clusters.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::sixteen_bits::F16;
use super::{buffer, integers, launch, values};

/// Runs a test on devices of at least the given compute capability.
pub(super) fn on_compute_capability(
    major: u32,
    test: impl FnOnce(&TestDriver) -> TestResult,
) -> TestResult {
    on_driver(|driver| {
        let capability = driver.device().compute_capability()?;
        if capability.major >= major {
            test(driver)?;
        }
        Ok(())
    })
}

/// Returns random integers from -20 to 20.
pub(super) fn small(seed: u32, count: usize) -> Vec<i32> {
    integers(seed, count)
        .into_iter()
        .map(|value| (value % 41).cast_signed() - 20)
        .collect()
}

/// Returns the product of small matrices, the first in row-major and the second in column-major
/// order.
fn product(a: &[i32], b: &[i32], depth: usize, columns: usize) -> Vec<i32> {
    (0..a.len() / depth * columns)
        .map(|at: usize| {
            (0..depth)
                .map(|k| a[at / columns * depth + k] * b[at % columns * depth + k])
                .sum::<i32>()
        })
        .collect()
}

/// A product of halves by tensor cores is exact for small integers.
#[driver_test(on_compute_capability(8))]
fn half_tensor_core_product_is_exact(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = small(1, 256);
    let b = small(2, 128);
    let halves = |values: &[i32]| {
        values
            .iter()
            .map(|value| F16.bits((*value).into()))
            .collect::<Vec<_>>()
    };
    let left = buffer(&stream, &halves(&a));
    let right = buffer(&stream, &halves(&b));
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 128)?;
    launch!(test, &stream, TENSOR::"tensor_product", (&[u16], &[u16], &mut [f32]), LaunchConfig::new(1, 32),
            (&left, &right, &mut result));
    let expected = product(&a, &b, 16, 8);
    assert_eq!(
        values(&result),
        expected
            .iter()
            .map(|value| *value as f32)
            .collect::<Vec<_>>()
    );
    Ok(())
}

/// A product with fewer digits by tensor cores is exact for small integers.
#[driver_test(on_compute_capability(8))]
fn tf32_tensor_core_product_is_exact(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = small(6, 128);
    let b = small(7, 64);
    let floats = |values: &[i32]| values.iter().map(|value| *value as f32).collect::<Vec<_>>();
    let left = buffer(&stream, &floats(&a));
    let right = buffer(&stream, &floats(&b));
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 128)?;
    launch!(test, &stream, TENSOR::"tensor_product_tf32", (&[f32], &[f32], &mut [f32]), LaunchConfig::new(1, 32),
            (&left, &right, &mut result));
    assert_eq!(values(&result), floats(&product(&a, &b, 8, 8)));
    Ok(())
}

/// A product of doubles by tensor cores is exact for integers.
#[driver_test(on_compute_capability(8))]
fn double_tensor_core_product_is_exact(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = small(8, 32);
    let b = small(9, 32);
    let doubles = |values: &[i32]| {
        values
            .iter()
            .map(|value| f64::from(*value) * 1e6)
            .collect::<Vec<_>>()
    };
    let left = buffer(&stream, &doubles(&a));
    let right = buffer(&stream, &doubles(&b));
    let mut result = buffer(&stream, &[0.5; 64]);
    launch!(test, &stream, TENSOR::"tensor_product_f64", (&[f64], &[f64], &mut [f64]), LaunchConfig::new(1, 32),
            (&left, &right, &mut result));
    let expected = product(&a, &b, 4, 8);
    assert_eq!(
        values(&result),
        expected
            .iter()
            .map(|value| f64::from(*value) * 1e12 + 0.5)
            .collect::<Vec<_>>()
    );
    Ok(())
}

#[driver_test(on_compute_capability(8))]
fn byte_tensor_core_product_equals_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let bytes = |seed, count| {
        integers(seed, count)
            .into_iter()
            .map(|value| value as i8)
            .collect::<Vec<_>>()
    };
    let a = bytes(10, 16 * 32);
    let b = bytes(11, 32 * 8);
    let left = buffer(&stream, &a);
    let right = buffer(&stream, &b);
    let mut result = DeviceBuffer::<i32>::zeroed(&stream, 128)?;
    launch!(test, &stream, TENSOR::"tensor_product_i8", (&[i8], &[i8], &mut [i32]), LaunchConfig::new(1, 32),
            (&left, &right, &mut result));
    let wide = |values: &[i8]| values.iter().copied().map(i32::from).collect::<Vec<_>>();
    assert_eq!(values(&result), product(&wide(&a), &wide(&b), 32, 8));
    Ok(())
}

/// Tiles copied ahead are complete when they are summed.
#[driver_test(on_compute_capability(8))]
fn prefetched_tiles_are_complete_when_summed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input = integers(3, 10 * 128);
    let source = buffer(&stream, &input);
    let mut sums = DeviceBuffer::<u32>::zeroed(&stream, 10)?;
    launch!(test, &stream, TENSOR::"copied_ahead", (&[u32], &mut [u32], u32), LaunchConfig::new(1, 32),
            (&source, &mut sums, 10));
    let sum = |tile: &[u32]| {
        tile.iter()
            .fold(0_u32, |sum, value| sum.wrapping_add(*value))
    };
    assert_eq!(
        values(&sums),
        input.chunks(128).map(sum).collect::<Vec<_>>()
    );
    Ok(())
}

/// Blocks of a cluster count in each other's shared memory.
#[driver_test(on_compute_capability(9))]
fn cluster_blocks_count_in_remote_shared_memory(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let data: Vec<u8> = integers(4, 5000)
        .into_iter()
        .map(|value| value as u8)
        .collect();
    let source = buffer(&stream, &data);
    let mut bins = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
    launch!(test, &stream, CLUSTER::"cluster_histogram", (&[u8], &mut [u32], u32), LaunchConfig::new(4, 64),
            (&source, &mut bins, 5000));
    let mut expected = [0_u32; 256];
    data.iter()
        .for_each(|byte| expected[usize::from(*byte)] += 1);
    assert_eq!(values(&bins), expected);
    Ok(())
}

#[driver_test(on_compute_capability(9))]
fn consumers_wait_at_a_barrier_object_for_producers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input = integers(5, 64);
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
    launch!(test, &stream, CLUSTER::"barrier_object", (&[u32], &mut [u32]), LaunchConfig::new(1, 128),
            (&source, &mut output));
    assert_eq!(values(&output), input.into_iter().rev().collect::<Vec<_>>());
    Ok(())
}
