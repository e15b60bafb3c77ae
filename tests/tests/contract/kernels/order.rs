//! Prefix sums, compaction and sorting.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::on_driver;

use super::{COUNTS, buffer, floats, integers, launch, values};

#[test]
fn inclusive_sums_equal_the_cpu_across_blocks() {
    on_driver(|test| {
        let stream = test.stream();
        for count in COUNTS {
            let input = integers(1, count);
            let blocks = count.div_ceil(128) as u32;
            let source = buffer(&stream, &input);
            let mut output = DeviceBuffer::<u32>::zeroed(&stream, count).expect("memory suffices");
            let mut totals = DeviceBuffer::<u32>::zeroed(&stream, blocks as usize).expect("memory suffices");
            let config = LaunchConfig::new(blocks, 128);
            launch!(test, &stream, SCAN::"scan_inclusive", (&[u32], &mut [u32], &mut [u32], u32), config,
                (&source, &mut output, &mut totals, count as u32));
            launch!(test, &stream, SCAN::"scan_add_totals", (&mut [u32], &[u32], u32), config,
                (&mut output, &totals, count as u32));
            let mut sum = 0_u32;
            let expected: Vec<u32> = input
                .iter()
                .map(|value| {
                    sum = sum.wrapping_add(*value);
                    sum
                })
                .collect();
            assert_eq!(values(&output), expected, "{count} values");
        }
    });
}

#[test]
fn exclusive_sums_of_a_block_equal_the_cpu() {
    on_driver(|test| {
        let stream = test.stream();
        let input = integers(2, 512);
        let mut data = buffer(&stream, &input);
        let config = LaunchConfig::new(1, 256).with_shared_bytes(512 * 4);
        launch!(test, &stream, SCAN::"scan_exclusive", (&mut [u32],), config, (&mut data,));
        let mut sum = 0_u32;
        let expected: Vec<u32> = input
            .iter()
            .map(|value| {
                let before = sum;
                sum = sum.wrapping_add(*value);
                before
            })
            .collect();
        assert_eq!(values(&data), expected);
    });
}

#[test]
fn odd_values_are_kept_in_their_order() {
    on_driver(|test| {
        let stream = test.stream();
        for count in [1, 32, 100, 1000] {
            let input = integers(3, count);
            let source = buffer(&stream, &input);
            let mut kept = DeviceBuffer::<u32>::zeroed(&stream, count).expect("memory suffices");
            let mut number = buffer(&stream, &[u32::MAX]);
            launch!(test, &stream, SCAN::"compact_odd", (&[u32], &mut [u32], &mut [u32], u32), LaunchConfig::new(1, 32),
                (&source, &mut kept, &mut number, count as u32));
            let expected: Vec<u32> = input.into_iter().filter(|value| value % 2 == 1).collect();
            assert_eq!(values(&number), [expected.len() as u32]);
            assert_eq!(values(&kept)[..expected.len()], expected);
        }
    });
}

#[test]
fn networks_and_radix_sort_as_the_cpu_does() {
    on_driver(|test| {
        let stream = test.stream();
        let mut keys: Vec<i32> = integers(4, 1024).into_iter().map(u32::cast_signed).collect();
        let mut sorted = buffer(&stream, &keys);
        launch!(test, &stream, SORT::"sort_bitonic", (&mut [i32],), LaunchConfig::new(1, 512), (&mut sorted,));
        keys.sort_unstable();
        assert_eq!(values(&sorted), keys);

        let mut keys = integers(5, 256);
        let mut sorted = buffer(&stream, &keys);
        launch!(test, &stream, SORT::"sort_radix", (&mut [u32],), LaunchConfig::new(1, 256), (&mut sorted,));
        keys.sort_unstable();
        assert_eq!(values(&sorted), keys);

        let mut keys = integers(6, 192);
        let mut sorted = buffer(&stream, &keys);
        launch!(test, &stream, SORT::"sort_warp", (&mut [u32],), LaunchConfig::new(3, 64), (&mut sorted,));
        keys.chunks_mut(32).for_each(<[u32]>::sort_unstable);
        assert_eq!(values(&sorted), keys);
    });
}

#[test]
fn rows_are_sorted_in_arrays_of_each_thread() {
    on_driver(|test| {
        let stream = test.stream();
        let mut rows = floats(7, 70 * 40);
        let mut sorted = buffer(&stream, &rows);
        launch!(test, &stream, SORT::"sort_insertion", (&mut [f32], u32, u32), LaunchConfig::for_elements(70),
            (&mut sorted, 70, 40));
        rows.chunks_mut(40).for_each(|row| row.sort_unstable_by(f32::total_cmp));
        assert_eq!(values(&sorted), rows);
    });
}
