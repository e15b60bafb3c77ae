//! Prefix sums, compaction and sorting.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::{COUNTS, buffer, floats, integers, launch, values};

#[driver_test]
fn inclusive_sums_equal_the_cpu_across_blocks(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in COUNTS {
        let input = integers(1, count);
        let blocks = count.div_ceil(128) as u32;
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, count)?;
        let mut totals = DeviceBuffer::<u32>::zeroed(&stream, blocks as usize)?;
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
    Ok(())
}

#[driver_test]
fn exclusive_block_sums_equal_the_cpu(test: &TestDriver) {
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
}

#[driver_test]
fn odd_values_are_kept_in_their_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in [1, 32, 100, 1000] {
        let input = integers(3, count);
        let source = buffer(&stream, &input);
        let mut selected = DeviceBuffer::<u32>::zeroed(&stream, count)?;
        let mut number = buffer(&stream, &[u32::MAX]);
        launch!(test, &stream, SCAN::"compact_odd", (&[u32], &mut [u32], &mut [u32], u32), LaunchConfig::new(1, 32),
                (&source, &mut selected, &mut number, count as u32));
        let expected: Vec<u32> = input.into_iter().filter(|value| value % 2 == 1).collect();
        assert_eq!(values(&number), [expected.len() as u32]);
        assert_eq!(values(&selected)[..expected.len()], expected);
    }
    Ok(())
}

/// Returns the inclusive prefix sums.
fn sums(input: &[u32]) -> Vec<u32> {
    input
        .iter()
        .scan(0, |sum: &mut u32, value: &u32| {
            *sum = sum.wrapping_add(*value);
            Some(*sum)
        })
        .collect()
}

#[driver_test]
fn sums_in_one_pass_look_back_to_the_parts_before(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in COUNTS {
        let input: Vec<u32> = integers(8, count)
            .into_iter()
            .map(|value| value & 0xffff)
            .collect();
        let blocks = count.div_ceil(128);
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, count)?;
        let mut states = DeviceBuffer::<u32>::zeroed(&stream, blocks)?;
        let mut next = buffer(&stream, &[0_u32]);
        launch!(test, &stream, SCAN::"scan_look_back", (&[u32], &mut [u32], &mut [u32], &mut [u32], u32),
                LaunchConfig::new(blocks as u32, 128), (&source, &mut output, &mut states, &mut next, count as u32));
        assert_eq!(values(&output), sums(&input), "{count} values");
    }
    Ok(())
}

#[driver_test]
fn sums_restart_at_each_flag(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in [1_usize, 100, 1000, 1024] {
        let input = integers(9, count);
        let flags: Vec<u8> = integers(10, count)
            .into_iter()
            .map(|value| u8::from(value % 9 == 0))
            .collect();
        let source = buffer(&stream, &input);
        let begins = buffer(&stream, &flags);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, count)?;
        launch!(test, &stream, SCAN::"scan_segments", (&[u32], &[u8], &mut [u32], u32), LaunchConfig::new(1, 1024),
                (&source, &begins, &mut output, count as u32));
        let mut expected = sums(&input);
        let mut before = 0;
        for ((sum, value), flag) in expected.iter_mut().zip(&input).zip(&flags) {
            if *flag == 1 {
                before = sum.wrapping_sub(*value);
            }
            *sum = sum.wrapping_sub(before);
        }
        assert_eq!(values(&output), expected, "{count} values");
    }
    Ok(())
}

#[driver_test]
fn networks_and_radix_sort_as_the_cpu_does(test: &TestDriver) {
    let stream = test.stream();
    let mut keys: Vec<i32> = integers(4, 1024)
        .into_iter()
        .map(u32::cast_signed)
        .collect();
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
}

#[driver_test]
fn rows_are_sorted_in_thread_local_arrays(test: &TestDriver) {
    let stream = test.stream();
    let mut rows = floats(7, 70 * 40);
    let mut sorted = buffer(&stream, &rows);
    launch!(test, &stream, SORT::"sort_insertion", (&mut [f32], u32, u32), LaunchConfig::for_elements(70),
            (&mut sorted, 70, 40));
    rows.chunks_mut(40)
        .for_each(|row| row.sort_unstable_by(f32::total_cmp));
    assert_eq!(values(&sorted), rows);
}

#[driver_test]
fn sorted_runs_are_merged_step_by_step(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in [1_usize, 2, 33, 1000] {
        // A few distinct keys, so that many are equal.
        let mut keys: Vec<u32> = integers(11, count)
            .into_iter()
            .map(|value| value % 50)
            .collect();
        let mut from = buffer(&stream, &keys);
        let mut to = DeviceBuffer::<u32>::zeroed(&stream, count)?;
        let mut run = 1;
        while run < count {
            launch!(test, &stream, SORT::"sort_merge", (&[u32], &mut [u32], u32, u32),
                    LaunchConfig::for_elements(count), (&from, &mut to, run as u32, count as u32));
            std::mem::swap(&mut from, &mut to);
            run *= 2;
            keys.chunks_mut(run).for_each(<[u32]>::sort_unstable);
            assert_eq!(values(&from), keys, "runs of {run} of {count}");
        }
    }
    Ok(())
}

#[driver_test]
fn keys_are_sorted_digit_by_digit_across_blocks(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut keys = integers(12, 1000);
    let mut from = buffer(&stream, &keys);
    let mut to = DeviceBuffer::<u32>::zeroed(&stream, 1000)?;
    let mut counts = DeviceBuffer::<u32>::zeroed(&stream, 16 * 8)?;
    let config = LaunchConfig::new(8, 128);
    for shift in (0..32).step_by(4) {
        launch!(test, &stream, SORT::"sort_digit_count", (&[u32], &mut [u32], u32, u32), config,
                (&from, &mut counts, shift, 1000));
        let counted = values(&counts);
        let starts: Vec<u32> = sums(&counted)
            .iter()
            .zip(&counted)
            .map(|(sum, count)| sum - count)
            .collect();
        assert_eq!(counted.iter().sum::<u32>(), 1000);
        let starts = buffer(&stream, &starts);
        launch!(test, &stream, SORT::"sort_digit_scatter", (&[u32], &mut [u32], &[u32], u32, u32), config,
                (&from, &mut to, &starts, shift, 1000));
        std::mem::swap(&mut from, &mut to);
    }
    keys.sort_unstable();
    assert_eq!(values(&from), keys);
    Ok(())
}
