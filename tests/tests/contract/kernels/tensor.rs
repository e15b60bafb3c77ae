//! Tensor cores, asynchronous copies, barrier objects and clusters.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, on_driver};

use super::{buffer, integers, launch, values};

/// Runs a test on devices of a compute capability or newer.
fn on_device_of(major: u32, test: impl FnOnce(&TestDriver)) {
    on_driver(|driver| {
        let capability = driver.device().compute_capability().expect("the device has one");
        if capability.major >= major {
            test(driver);
        }
    });
}

/// The bits of a small integer as a half.
fn half(value: i32) -> u16 {
    let bits = (value as f32).to_bits();
    if value == 0 { 0 } else { ((bits >> 16 & 0x8000) | ((bits & 0x7fff_ffff) - (112 << 23)) >> 13) as u16 }
}

#[test]
fn product_of_halves_by_tensor_cores_is_exact_for_small_integers() {
    on_device_of(8, |test| {
        let stream = test.stream();
        let small = |seed, count| -> Vec<i32> {
            integers(seed, count).into_iter().map(|value| (value % 41).cast_signed() - 20).collect()
        };
        let (a, b) = (small(1, 256), small(2, 128));
        let halves = |values: &[i32]| values.iter().map(|value| half(*value)).collect::<Vec<_>>();
        let (left, right) = (buffer(&stream, &halves(&a)), buffer(&stream, &halves(&b)));
        let mut result = DeviceBuffer::<f32>::zeroed(&stream, 128).expect("memory suffices");
        launch!(test, &stream, TENSOR::"tensor_product", (&[u16], &[u16], &mut [f32]), LaunchConfig::new(1, 32),
            (&left, &right, &mut result));
        let element = |at: usize| (0..16).map(|k| a[at / 8 * 16 + k] * b[at % 8 * 16 + k]).sum::<i32>() as f32;
        assert_eq!(values(&result), (0..128).map(element).collect::<Vec<_>>());
    });
}

#[test]
fn tiles_copied_ahead_are_complete_when_they_are_summed() {
    on_device_of(8, |test| {
        let stream = test.stream();
        let input = integers(3, 10 * 128);
        let source = buffer(&stream, &input);
        let mut sums = DeviceBuffer::<u32>::zeroed(&stream, 10).expect("memory suffices");
        launch!(test, &stream, TENSOR::"copied_ahead", (&[u32], &mut [u32], u32), LaunchConfig::new(1, 32),
            (&source, &mut sums, 10));
        let sum = |tile: &[u32]| tile.iter().fold(0_u32, |sum, value| sum.wrapping_add(*value));
        assert_eq!(values(&sums), input.chunks(128).map(sum).collect::<Vec<_>>());
    });
}

#[test]
fn blocks_of_a_cluster_count_in_each_others_shared_memory() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let data: Vec<u8> = integers(4, 5000).into_iter().map(|value| value as u8).collect();
        let source = buffer(&stream, &data);
        let mut bins = DeviceBuffer::<u32>::zeroed(&stream, 256).expect("memory suffices");
        launch!(test, &stream, CLUSTER::"cluster_histogram", (&[u8], &mut [u32], u32), LaunchConfig::new(4, 64),
            (&source, &mut bins, 5000));
        let mut expected = [0_u32; 256];
        data.iter().for_each(|byte| expected[usize::from(*byte)] += 1);
        assert_eq!(values(&bins), expected);
    });
}

#[test]
fn consumers_wait_at_a_barrier_object_for_producers() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let input = integers(5, 64);
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 64).expect("memory suffices");
        launch!(test, &stream, CLUSTER::"barrier_object", (&[u32], &mut [u32]), LaunchConfig::new(1, 128),
            (&source, &mut output));
        assert_eq!(values(&output), input.into_iter().rev().collect::<Vec<_>>());
    });
}
