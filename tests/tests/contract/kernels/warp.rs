//! Warp-level operations and atomics.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::{buffer, integers, launch, values};

#[driver_test]
fn votes_matches_and_shuffles_use_the_whole_warp(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input: Vec<u32> = integers(1, 96)
        .into_iter()
        .map(|value| value % 256)
        .collect();
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, 96 * 8)?;
    launch!(test, &stream, WARP::"warp_operations", (&[u32], &mut [u32]), LaunchConfig::new(1, 96),
            (&source, &mut output));
    let actual = values(&output);
    for (index, value) in input.iter().enumerate() {
        let warp = &input[index / 32 * 32..][..32];
        let lane = index % 32;
        let mask = |test: &dyn Fn(u32) -> bool| {
            warp.iter().enumerate().fold(0_u32, |mask, (lane, value)| {
                mask | u32::from(test(*value)) << lane
            })
        };
        let down = if lane % 8 + 3 < 8 { lane + 3 } else { lane };
        let up = if lane % 16 >= 2 { lane - 2 } else { lane };
        let expected = [
            mask(&|value| value & 1 == 1),
            u32::from(warp.iter().any(|value| *value > 200))
                + 2 * u32::from(warp.iter().all(|value| *value < 250)),
            mask(&|other| other % 4 == value % 4),
            // All quotients are zero, so all lanes agree.
            0xffff_ffff_u32.wrapping_add(1),
            warp[lane ^ 5],
            warp[down],
            warp[up],
            warp[lane * 7 % 32],
        ];
        assert_eq!(actual[8 * index..][..8], expected, "thread {index}");
    }
    Ok(())
}

#[driver_test]
fn active_lanes_took_the_branch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
    launch!(test, &stream, WARP::"active_lanes", (&mut [u32],), LaunchConfig::new(1, 64), (&mut output,));
    let each = |index: usize| {
        let taken = (index / 32 * 32..index / 32 * 32 + 32)
            .filter(|thread| thread % 3 == 0)
            .count() as u32;
        if index.is_multiple_of(3) {
            taken
        } else {
            132 - taken
        }
    };
    assert_eq!(values(&output), (0..64).map(each).collect::<Vec<_>>());
    Ok(())
}

#[driver_test]
fn every_atomic_is_atomic(test: &TestDriver) {
    let stream = test.stream();
    let threads = 5 * 96_u32;
    let initial = [
        7,
        1000,
        50,
        3,
        0,
        (-3_i32).cast_unsigned(),
        u32::MAX,
        0,
        0,
        0,
        0,
        5,
    ];
    let mut words = buffer(&stream, &initial);
    let mut wide = buffer(&stream, &[1_u64, 9]);
    let mut single = buffer(&stream, &[1.0_f32]);
    let mut double = buffer(&stream, &[1.0_f64]);
    launch!(test, &stream, WARP::"atomics", (&mut [u32], &mut [u64], &mut [f32], &mut [f64]), LaunchConfig::new(5, 96),
            (&mut words, &mut wide, &mut single, &mut double));
    let least = -(threads.cast_signed() - 1);
    let expected = [
        7 + threads * (threads - 1) / 2,
        1000 - threads,
        0,
        threads - 1,
        least.cast_unsigned(),
        0,
        0,
        u32::MAX,
        // Each of eight bits changes sixty times.
        0,
        threads % 10,
        // The counter goes from 0 to 9 and down again.
        0,
        5 + 2 * threads,
    ];
    assert_eq!(values(&words), expected);
    assert_eq!(
        values(&wide),
        [1 + (u64::from(threads) << 32), u64::from(threads - 1) << 40]
    );
    assert_eq!(values(&single), [1.0 + threads as f32 * 0.5]);
    assert_eq!(values(&double), [1.0 + f64::from(threads) * 0.25]);
}

#[driver_test]
fn histogram_counts_each_key_once_per_lane(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let keys: Vec<u8> = integers(2, 3000)
        .into_iter()
        .map(|value| (value % 20) as u8)
        .collect();
    let source = buffer(&stream, &keys);
    let mut bins = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
    launch!(test, &stream, WARP::"aggregated_histogram", (&[u8], &mut [u32], u32), LaunchConfig::for_elements(3000),
            (&source, &mut bins, 3000));
    let mut expected = [0_u32; 256];
    keys.iter().for_each(|key| expected[usize::from(*key)] += 1);
    assert_eq!(values(&bins), expected);
    Ok(())
}

#[driver_test]
fn block_votes_are_counted_and_combined(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input: Vec<u32> = integers(3, 400)
        .into_iter()
        .map(|value| value % 256)
        .collect();
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<i32>::zeroed(&stream, 12)?;
    launch!(test, &stream, WARP::"block_votes", (&[u32], &mut [i32]), LaunchConfig::new(4, 100), (&source, &mut output));
    let each = |block: &[u32]| {
        let count = block.iter().filter(|value| **value > 100).count() as i32;
        let every = block.iter().all(|value| *value > 0);
        let some = block.iter().any(|value| *value > 250);
        [count, i32::from(every), i32::from(some)]
    };
    assert_eq!(
        values(&output),
        input.chunks(100).flat_map(each).collect::<Vec<_>>()
    );
    Ok(())
}
