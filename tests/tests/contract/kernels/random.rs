//! Counter-based random numbers.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::{assert_near, bits, buffer, integers, launch, values};

/// Threefry-2x32 with twenty rounds.
fn threefry(counter: [u32; 2], key: [u32; 2]) -> [u32; 2] {
    let keys = [key[0], key[1], 0x1bd1_1bda ^ key[0] ^ key[1]];
    let [mut x, mut y] = [
        counter[0].wrapping_add(keys[0]),
        counter[1].wrapping_add(keys[1]),
    ];
    for round in 0..20 {
        x = x.wrapping_add(y);
        y = y.rotate_left([13, 15, 26, 6, 17, 29, 16, 24][round % 8]) ^ x;
        if round % 4 == 3 {
            let injected = round / 4 + 1;
            x = x.wrapping_add(keys[injected % 3]);
            y = y
                .wrapping_add(keys[(injected + 1) % 3])
                .wrapping_add(injected as u32);
        }
    }
    [x, y]
}

const SEED: u32 = 20_260;

/// Returns the two uniform numbers from 0 to 1 of a thread.
fn uniform(index: u32) -> [f32; 2] {
    threefry([index, 0], [SEED, 0]).map(|word| (word >> 8) as f32 / 16_777_216.0)
}

/// Numbers of Threefry are those of the published generator.
#[test]
fn threefry_is_as_published() -> TestResult {
    let pi = [[0x243f_6a88, 0x85a3_08d3], [0x1319_8a2e, 0x0370_7344]];
    let published = [
        ([0, 0], [0, 0], [0x6b20_0159, 0x99ba_4efe]),
        ([u32::MAX; 2], [u32::MAX; 2], [0x1cb9_96fc, 0xbb00_2be7]),
        (pi[0], pi[1], [0xc492_3a9c, 0x483d_f7a0]),
    ];
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut counters: Vec<u32> = published
            .iter()
            .flat_map(|(counter, ..)| *counter)
            .collect();
        let mut keys: Vec<u32> = published.iter().flat_map(|(_, key, _)| *key).collect();
        counters.extend(integers(1, 200));
        keys.extend(integers(2, 200));
        let source = buffer(&stream, &counters);
        let key = buffer(&stream, &keys);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, counters.len())?;
        launch!(test, &stream, RANDOM::"random_threefry", (&[u32], &[u32], &mut [u32], u32), LaunchConfig::for_elements(103),
            (&source, &key, &mut output, 103));
        let actual = values(&output);
        assert_eq!(actual[..6], published.map(|(.., result)| result).concat());
        let counters = counters.as_chunks::<2>().0;
        let keys = keys.as_chunks::<2>().0;
        let expected: Vec<u32> = counters
            .iter()
            .zip(keys)
            .flat_map(|(counter, key)| threefry(*counter, *key))
            .collect();
        assert_eq!(actual, expected);
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn numbers_from_0_to_1_equal_the_cpu_bit_for_bit(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut output = DeviceBuffer::<f32>::zeroed(&stream, 2 * 3000)?;
    launch!(test, &stream, RANDOM::"random_uniform", (&mut [f32], u32, u32), LaunchConfig::for_elements(3000),
            (&mut output, SEED, 3000));
    let actual = values(&output);
    assert_eq!(
        bits(&actual),
        bits(&(0..3000).flat_map(uniform).collect::<Vec<_>>())
    );
    let mean = actual.iter().copied().map(f64::from).sum::<f64>() / 6000.0;
    assert!(
        (mean - 0.5).abs() < 0.02 && actual.iter().all(|value| (0.0..1.0).contains(value)),
        "{mean}"
    );
    Ok(())
}

#[driver_test]
fn normal_numbers_are_near_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut output = DeviceBuffer::<f32>::zeroed(&stream, 2 * 3000)?;
    launch!(test, &stream, RANDOM::"random_normal", (&mut [f32], u32, u32), LaunchConfig::for_elements(3000),
            (&mut output, SEED, 3000));
    let expected: Vec<f64> = (0..3000)
        .flat_map(|index| {
            let [first, second] = uniform(index).map(f64::from);
            let radius = (-2.0 * (1.0 - first).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * second).sin_cos();
            [radius * cosine, radius * sine]
        })
        .collect();
    // The CPU's angle is rounded: near a zero the sine has an error of about 1e-15.
    assert_near(&values(&output), &expected, 6e-7, 1e-14, "normal");
    let deviation = (expected.iter().map(|value| value * value).sum::<f64>() / 6000.0).sqrt();
    assert!((deviation - 1.0).abs() < 0.05, "{deviation}");
    Ok(())
}

#[driver_test]
fn points_in_a_circle_are_counted_as_on_the_cpu(test: &TestDriver) {
    let stream = test.stream();
    let mut inside = buffer(&stream, &[0_u64]);
    launch!(test, &stream, RANDOM::"random_circle", (&mut [u64], u32, u32), LaunchConfig::new(5, 64),
            (&mut inside, SEED, 20_000));
    let expected = (0..20_000)
        .filter(|index: &u32| {
            let [x, y] = threefry([*index, 0], [SEED, 0]).map(|word| u64::from(word >> 1));
            x * x + y * y < 1 << 62
        })
        .count() as u64;
    assert_eq!(values(&inside), [expected]);
    assert!(
        (expected as f64 / 5000.0 - std::f64::consts::PI).abs() < 0.05,
        "{expected}"
    );
}

#[driver_test]
fn permutation_has_every_number_once(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in [1_u32, 2, 5, 1000, 4096] {
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, count as usize)?;
        launch!(test, &stream, RANDOM::"random_permutation", (&mut [u32], u32, u32), LaunchConfig::for_elements(output.len()),
                (&mut output, SEED, count));
        let mut actual = values(&output);
        let moved = actual
            .iter()
            .zip(0..)
            .filter(|(value, index)| *value != index)
            .count();
        assert!(
            count < 1000 || moved > 900,
            "only {moved} of {count} have moved"
        );
        actual.sort_unstable();
        assert_eq!(actual, (0..count).collect::<Vec<_>>());
    }
    Ok(())
}
