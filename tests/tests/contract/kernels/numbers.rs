//! Hashes, random numbers and wide arithmetic.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::{buffer, integers, launch, values};

#[test]
fn sha256_equals_a_known_digest() -> TestResult {
    // The example of the standard: "abc", padded to one block.
    let mut message = [0_u32; 16];
    (message[0], message[15]) = (0x6162_6380, 24);
    let digest = [
        0xba78_16bf,
        0x8f01_cfea,
        0x4141_40de,
        0x5dae_2223,
        0xb003_61a3,
        0x9617_7a9c,
        0xb410_ff61,
        0xf200_15ad_u32,
    ];
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let source = buffer(&stream, &message.repeat(40));
        let mut digests = DeviceBuffer::<u32>::zeroed(&stream, 40 * 8)?;
        launch!(test, &stream, NUMBERS::"sha256", (&[u32], &mut [u32], u32), LaunchConfig::for_elements(40),
            (&source, &mut digests, 40));
        assert_eq!(values(&digests), digest.repeat(40));
        Ok(())
    })?;
    Ok(())
}

/// Random numbers are those of the published generator.
#[test]
fn random_numbers_are_published() -> TestResult {
    let round = |counter: [u32; 4], key: [u32; 2]| {
        let [a, b] = [(counter[0], 0xD251_1F53_u64), (counter[2], 0xCD9E_8D57)]
            .map(|term| u64::from(term.0) * term.1);
        fn high(product: u64) -> u32 {
            (product >> 32) as u32
        }

        [
            high(b) ^ counter[1] ^ key[0],
            b as u32,
            high(a) ^ counter[3] ^ key[1],
            a as u32,
        ]
    };
    let philox = |index: u32, seed: u32| {
        let mut counter = [index, 0, 0, 0];
        let mut key = [seed, !seed];
        for _ in 0..10 {
            counter = round(counter, key);
            key = [
                key[0].wrapping_add(0x9E37_79B9),
                key[1].wrapping_add(0xBB67_AE85),
            ];
        }
        counter
    };
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut numbers = DeviceBuffer::<u32>::zeroed(&stream, 400)?;
        launch!(test, &stream, NUMBERS::"philox", (&mut [u32], u32, u32), LaunchConfig::for_elements(100),
            (&mut numbers, 12345, 100));
        assert_eq!(
            values(&numbers),
            (0..100)
                .flat_map(|index| philox(index, 12345))
                .collect::<Vec<_>>()
        );
        Ok(())
    })?;
    Ok(())
}

#[test]
fn products_with_128_bits_carry() -> TestResult {
    let multiply = |a: &[u32], b: &[u32]| {
        let mut words = [0_u32; 8];
        for (i, x) in a.iter().enumerate() {
            let mut carry = 0;
            for (j, y) in b.iter().enumerate() {
                let sum = u64::from(*x) * u64::from(*y) + u64::from(words[i + j]) + carry;
                (words[i + j], carry) = (sum as u32, sum >> 32);
            }
            words[i + b.len()] = carry as u32;
        }
        words
    };
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut left = integers(1, 400);
        let mut right = integers(2, 400);
        left[..4].fill(u32::MAX);
        right[..4].fill(u32::MAX);
        let a = buffer(&stream, &left);
        let b = buffer(&stream, &right);
        let mut products = DeviceBuffer::<u32>::zeroed(&stream, 800)?;
        launch!(test, &stream, NUMBERS::"wide_product", (&[u32], &[u32], &mut [u32], u32),
            LaunchConfig::for_elements(100), (&a, &b, &mut products, 100));
        let expected: Vec<u32> = left
            .chunks(4)
            .zip(right.chunks(4))
            .flat_map(|(a, b)| multiply(a, b))
            .collect();
        assert_eq!(values(&products), expected);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn bit_operations_match_the_cpu() -> TestResult {
    let each = |a: u32, b: u32| {
        let both = u64::from(a) << 32 | u64::from(b);
        let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
        let permuted = [0, 4, 1, 5].map(|index: usize| bytes[index]);
        let funnel = u64::from(b) << 32 | u64::from(a);
        let dot = a
            .to_le_bytes()
            .iter()
            .zip(b.to_le_bytes())
            .map(|(a, b)| u32::from(*a) * u32::from(b))
            .sum::<u32>();
        [
            a.count_ones(),
            a.leading_zeros(),
            a.reverse_bits(),
            if b == 0 { 0 } else { b.trailing_zeros() + 1 },
            u32::from_le_bytes(permuted),
            (funnel << (b & 31) >> 32) as u32,
            (funnel >> (b % 64).min(32)) as u32,
            both.count_ones(),
            both.leading_zeros(),
            (a.cast_signed().abs_diff(b.cast_signed())).wrapping_add(3),
            dot + 7,
            ((i64::from(a.cast_signed()) * i64::from(b.cast_signed())) >> 32) as u32,
        ]
    };
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut input = integers(3, 200);
        input[..8].copy_from_slice(&[0, 0, u32::MAX, u32::MAX, 0x8000_0000, 1, 1, 32]);
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 1200)?;
        launch!(test, &stream, NUMBERS::"bit_operations", (&[u32], &mut [u32], u32), LaunchConfig::for_elements(100),
            (&source, &mut output, 100));
        for (pair, found) in input.chunks(2).zip(values(&output).chunks(12)) {
            assert_eq!(found, each(pair[0], pair[1]), "{pair:x?}");
        }
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn quotients_with_64_bits_equal_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let wide = |seed| -> Vec<i64> {
        let words = integers(seed, 200);
        words
            .chunks(2)
            .map(|pair| i64::from(pair[0].cast_signed()) << (pair[1] % 33) | i64::from(pair[1]))
            .collect()
    };
    let left = wide(4);
    let right: Vec<i64> = wide(5)
        .into_iter()
        .map(|value| if value == 0 { 3 } else { value })
        .collect();
    let a = buffer(&stream, &left);
    let b = buffer(&stream, &right);
    let mut output = DeviceBuffer::<i64>::zeroed(&stream, 400)?;
    launch!(test, &stream, NUMBERS::"divide", (&[i64], &[i64], &mut [i64], u32), LaunchConfig::for_elements(100),
            (&a, &b, &mut output, 100));
    let each = |a: i64, b: i64| {
        let c = a.cast_unsigned();
        let d = b.cast_unsigned();
        [
            a.wrapping_div(b),
            a.wrapping_rem(b),
            (c / d).cast_signed(),
            (c % d).cast_signed(),
        ]
    };
    let expected: Vec<i64> = left
        .iter()
        .zip(&right)
        .flat_map(|(a, b)| each(*a, *b))
        .collect();
    assert_eq!(values(&output), expected);
    Ok(())
}

#[driver_test]
fn checksum_equals_a_known_value(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let source = buffer(&stream, &b"123456789".repeat(50));
    let mut sums = DeviceBuffer::<u32>::zeroed(&stream, 50)?;
    launch!(test, &stream, NUMBERS::"crc32", (&[u8], &mut [u32], u32, u32), LaunchConfig::for_elements(50),
            (&source, &mut sums, 9, 50));
    assert_eq!(values(&sums), [0xcbf4_3926; 50]);
    Ok(())
}

#[driver_test]
fn every_text_occurrence_is_counted(test: &TestDriver) {
    let stream = test.stream();
    let text = "abracadabra abra ".repeat(60);
    let source = buffer(&stream, text.as_bytes());
    let pattern = buffer(&stream, b"abra");
    let mut count = buffer(&stream, &[0_u32]);
    launch!(test, &stream, NUMBERS::"find_text", (&[u8], u32, &[u8], u32, &mut [u32]), LaunchConfig::new(2, 96),
            (&source, text.len() as u32, &pattern, 4, &mut count));
    assert_eq!(values(&count), [180]);
}

#[test]
fn divergent_loops_match_the_cpu() -> TestResult {
    let steps = |start: u64| {
        let mut value = start;
        let mut count = 0;
        while value != 1 {
            value = if value.is_multiple_of(2) {
                value / 2
            } else {
                3 * value + 1
            };
            count += 1;
        }
        count
    };
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut counts = DeviceBuffer::<u32>::zeroed(&stream, 500)?;
        launch!(test, &stream, NUMBERS::"collatz", (&mut [u32], u32), LaunchConfig::for_elements(500),
            (&mut counts, 500));
        assert_eq!(values(&counts), (1..=500).map(steps).collect::<Vec<u32>>());
        Ok(())
    })?;
    Ok(())
}
