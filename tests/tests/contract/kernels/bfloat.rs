//! The `bf16` format.

use curium_driver::LaunchConfig;
use curium_tests::{TestDriver, TestResult, driver_test};

use curium_memory::DeviceBuffer;
use curium_tests::Fused as _;

use super::sixteen_bits::{BF16, fused};
use super::tensor::{on_compute_capability, small};
use super::{bits, buffer, floats, integers, launch, values};

/// The canonical NaN.
const NAN: u16 = 0x7fff;

/// Returns random bit patterns of every class, including zeros, infinities and NaN.
fn every_kind(seed: u32, count: usize) -> Vec<u16> {
    let special = [
        0, 0x8000, 1, 0x8001, 0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f7f, 0x3f80,
    ];
    let random = integers(seed, count).into_iter();
    random
        .map(|word| {
            if word % 4 == 0 {
                special[word as usize / 4 % 10]
            } else {
                (word >> 16) as u16
            }
        })
        .collect()
}

fn is_nan(bits: u16) -> bool {
    bits & 0x7fff > 0x7f80
}

fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[test]
fn bf16_rounds_to_nearest() -> TestResult {
    let nearest = |bits: u32| {
        let value = f32::from_bits(bits);
        if value.is_nan() {
            NAN
        } else {
            ((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) >> 16) as u16
        }
    };
    on_compute_capability(8, |test| -> TestResult {
        let stream = test.stream();
        let edges = [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -f32::NAN,
            f32::MAX,
            f32::MIN_POSITIVE,
        ];
        let ties = (0..200_u32).map(|index| index << 24 | index << 16 | 0x8000);
        let edges = edges.iter().map(|value| value.to_bits()).chain([
            1,
            0x7fff,
            0x8000,
            0x8001,
            0x7f80_0001,
        ]);
        let input: Vec<u32> = edges.chain(ties).chain(integers(1, 2000)).collect();
        let source = buffer(&stream, &input);
        let count = input.len() as u32;
        let mut output = DeviceBuffer::<u16>::zeroed(&stream, input.len())?;
        launch!(test, &stream, BFLOAT::"bf16_round", (&[u32], &mut [u16], u32), LaunchConfig::for_elements(input.len()),
            (&source, &mut output, count));
        for (bits, found) in input.iter().zip(values(&output)) {
            assert_eq!(found, nearest(*bits), "{bits:#010x}");
        }
        Ok(())
    })?;
    Ok(())
}

/// Pairs of BF16 are multiplied and added with one rounding.
#[driver_test(on_compute_capability(8))]
fn bf16_pairs_are_fused_with_one_rounding(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let narrow = |values: Vec<f32>| {
        values
            .into_iter()
            .map(|value| BF16.bits(value.into()))
            .collect::<Vec<_>>()
    };
    let x = narrow(floats(2, 1000));
    let y = narrow(floats(3, 1000));
    let a = [BF16.bits(1.1719), BF16.bits(-0.003_006)];
    let left = buffer(&stream, &x);
    let mut right = buffer(&stream, &y);
    let factors = u32::from(a[1]) << 16 | u32::from(a[0]);
    launch!(test, &stream, BFLOAT::"bf16_axpy", (u32, &[u16], &mut [u16], u32), LaunchConfig::for_elements(500),
            (factors, &left, &mut right, 500));
    let each = |(at, (x, y)): (usize, (&u16, &u16))| {
        BF16.bits(fused(BF16.value(a[at % 2]), BF16.value(*x), BF16.value(*y)))
    };
    assert_eq!(
        values(&right),
        x.iter().zip(&y).enumerate().map(each).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn bf16_min_and_max() -> TestResult {
    // Orders -0 before +0. A NaN yields the other operand.
    let pick = |a: u16, b: u16, larger: bool| {
        let key = |bits: u16| {
            if bits >> 15 == 0 {
                i32::from(bits)
            } else {
                -1 - i32::from(bits & 0x7fff)
            }
        };
        match (is_nan(a), is_nan(b)) {
            (true, true) => NAN,
            (true, false) => b,
            (false, true) => a,
            (false, false) if (key(a) > key(b)) == larger => a,
            (false, false) => b,
        }
    };
    on_compute_capability(8, |test| -> TestResult {
        let stream = test.stream();
        let a = every_kind(4, 2000);
        let b = every_kind(5, 2000);
        let left = buffer(&stream, &a);
        let right = buffer(&stream, &b);
        let mut output = DeviceBuffer::<u16>::zeroed(&stream, 5 * 2000)?;
        launch!(test, &stream, BFLOAT::"bf16_extremes", (&[u16], &[u16], &mut [u16], u32), LaunchConfig::for_elements(1000),
            (&left, &right, &mut output, 1000));
        let actual = values(&output);
        for (at, (a, b)) in a.into_iter().zip(b).enumerate() {
            let result = |form: usize| actual[at / 2 * 10 + 2 * form + at % 2];
            assert_eq!(result(0), pick(a, b, false), "min {a:#06x} {b:#06x}");
            assert_eq!(result(1), pick(a, b, true), "max {a:#06x} {b:#06x}");
            let strict = if is_nan(a) || is_nan(b) {
                NAN
            } else {
                pick(a, b, true)
            };
            assert_eq!(result(2), strict, "max.NaN {a:#06x} {b:#06x}");
            // The payload of a resulting NaN is unspecified.
            for (form, expected) in [(3, a & 0x7fff), (4, a ^ 0x8000)] {
                assert!(
                    result(form) == expected || is_nan(a) && is_nan(result(form)),
                    "{form}: {a:#06x}"
                );
            }
        }
        Ok(())
    })?;
    Ok(())
}

#[driver_test(on_compute_capability(8))]
fn bf16_product_is_summed_in_single_precision(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for (rows, depth, columns) in [(1, 1, 1), (17, 5, 33), (20, 50, 18)] {
        let narrow = |seed, count| -> Vec<u16> {
            floats(seed, count)
                .into_iter()
                .map(|value| BF16.bits(value.into()))
                .collect()
        };
        let left = narrow(6, rows * depth);
        let right = narrow(7, depth * columns);
        let mut product = DeviceBuffer::<u16>::zeroed(&stream, rows * columns)?;
        let grid = (columns.div_ceil(16) as u32, rows.div_ceil(16) as u32);
        let a = buffer(&stream, &left);
        let b = buffer(&stream, &right);
        launch!(test, &stream, BFLOAT::"bf16_product", (&[u16], &[u16], &mut [u16], u32, u32, u32),
                LaunchConfig::new(grid, (16, 16)), (&a, &b, &mut product, rows as u32, depth as u32, columns as u32));
        let element = |at: usize| {
            let row = at / columns;
            let column = at % columns;
            BF16.bits(
                (0..depth)
                    .fold(0.0_f32, |sum: f32, k| {
                        widen(left[row * depth + k]).fused(widen(right[k * columns + column]), sum)
                    })
                    .into(),
            )
        };
        let expected: Vec<_> = (0..rows * columns).map(element).collect();
        assert_eq!(values(&product), expected, "{rows}×{depth}×{columns}");
    }
    Ok(())
}

/// Sums of BF16 are those of the CPU in the order of the lanes.
#[driver_test(on_compute_capability(8))]
fn bf16_sums_equal_the_cpu_in_lane_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let rows = 5;
    let pairs = 75;
    let input: Vec<u16> = floats(8, rows * pairs * 2)
        .into_iter()
        .map(|value| BF16.bits(value.into()))
        .collect();
    let source = buffer(&stream, &input);
    let mut sums = DeviceBuffer::<f32>::zeroed(&stream, rows)?;
    launch!(test, &stream, BFLOAT::"bf16_sum", (&[u16], &mut [f32], u32), LaunchConfig::new(rows as u32, 32),
            (&source, &mut sums, pairs as u32));
    let each = |row: &[u16]| {
        let lane = |lane: usize| {
            row.chunks(2)
                .skip(lane)
                .step_by(32)
                .flatten()
                .fold(0.0_f32, |sum, bits| sum + widen(*bits))
        };
        let mut lanes: Vec<f32> = (0..32).map(lane).collect();
        while lanes.len() > 1 {
            let (near, far) = lanes.split_at(lanes.len() / 2);
            lanes = near.iter().zip(far).map(|(near, far)| near + far).collect();
        }
        lanes[0]
    };
    assert_eq!(
        bits(&values(&sums)),
        bits(&input.chunks(2 * pairs).map(each).collect::<Vec<_>>())
    );
    Ok(())
}

/// A product of BF16 by tensor cores is exact for small integers.
#[driver_test(on_compute_capability(8))]
fn bf16_tensor_core_product_is_exact(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = small(9, 256);
    let b = small(10, 128);
    let narrow = |values: &[i32]| {
        values
            .iter()
            .map(|value| BF16.bits((*value).into()))
            .collect::<Vec<_>>()
    };
    let left = buffer(&stream, &narrow(&a));
    let right = buffer(&stream, &narrow(&b));
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 128)?;
    launch!(test, &stream, BFLOAT::"bf16_tensor_product", (&[u16], &[u16], &mut [f32]), LaunchConfig::new(1, 32),
            (&left, &right, &mut result));
    let element = |at: usize| {
        (0..16)
            .map(|k| a[at / 8 * 16 + k] * b[at % 8 * 16 + k])
            .sum::<i32>() as f32
    };
    assert_eq!(values(&result), (0..128).map(element).collect::<Vec<_>>());
    Ok(())
}
