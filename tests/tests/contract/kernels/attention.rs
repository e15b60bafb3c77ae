//! Attention, and the one-pass softmax it uses.

use curium_driver::LaunchConfig;
use curium_memory::{AnyBitPattern, DeviceBuffer, NoUninit};
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

use super::sixteen_bits::F16;
use super::{assert_near, buffer, floats, kernel, launch, values};

const DEPTH: usize = 32;
const HEADS: usize = 2;
const QUERIES: usize = 75;

/// Returns random queries, keys and values.
fn inputs() -> [Vec<f64>; 3] {
    [(1, 0.02), (2, 0.02), (3, 0.01)].map(|(seed, scale)| {
        floats(seed, HEADS * QUERIES * DEPTH)
            .into_iter()
            .map(|value| f64::from(value) * scale)
            .collect()
    })
}

/// Returns each result with the sum of the magnitudes of its terms.
fn attention([queries, keys, values]: &[Vec<f64>; 3], causal: bool) -> Vec<(f64, f64)> {
    let heads = queries
        .chunks(QUERIES * DEPTH)
        .zip(keys.chunks(QUERIES * DEPTH))
        .zip(values.chunks(QUERIES * DEPTH));
    let mut results = Vec::new();
    for ((queries, keys), values) in heads {
        for (row, query) in queries.chunks(DEPTH).enumerate() {
            let seen = if causal { row + 1 } else { QUERIES };
            let dot = |key: &[f64]| {
                query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() / (DEPTH as f64).sqrt()
            };
            let weights: Vec<f64> = keys
                .chunks(DEPTH)
                .take(seen)
                .map(|key| dot(key).exp())
                .collect();
            let sum: f64 = weights.iter().sum();
            results.extend((0..DEPTH).map(|index| {
                let parts = weights
                    .iter()
                    .zip(values.chunks(DEPTH))
                    .map(|(weight, value)| weight / sum * value[index]);
                parts.fold((0.0, 0.0), |(total, size), part| {
                    (total + part, size + part.abs())
                })
            }));
        }
    }
    results
}

/// Returns the result of the kernel for inputs converted to its element type by `narrow`.
fn attend<T: AnyBitPattern + NoUninit>(
    test: &TestDriver,
    name: &str,
    inputs: &[Vec<f64>; 3],
    narrow: fn(f64) -> T,
) -> TestResult<Vec<T>> {
    let stream = test.stream();
    let [queries, keys, values_of] = inputs.each_ref().map(|input| {
        buffer(
            &stream,
            &input.iter().map(|value| narrow(*value)).collect::<Vec<_>>(),
        )
    });
    let mut output = DeviceBuffer::<T>::zeroed(&stream, HEADS * QUERIES * DEPTH)?;
    let kernel = kernel::<(&[T], &[T], &[T], &mut [T], u32)>(test, kernels::ATTENTION, name);
    let config = LaunchConfig::new((QUERIES.div_ceil(32) as u32, HEADS as u32), 32);
    let arguments = (&queries, &keys, &values_of, &mut output, QUERIES as u32);
    // SAFETY: the buffers have a row for each query of each head, and the kernel compares its index
    // with their number.
    unsafe { kernel.launch(&stream, config, arguments) }?;
    Ok(values(&output))
}

/// Asserts that results have the error of single-precision sums, plus a relative error and the
/// smallest number of their type.
#[track_caller]
fn assert_attention(found: &[f64], expected: &[(f64, f64)], own: f64, least: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, (expected, size))) in found.iter().zip(expected).enumerate() {
        let bound = 4e-6 * size + own * expected.abs() + least;
        assert!(
            (found - expected).abs() <= bound,
            "{at}: {found} {expected}"
        );
    }
}

#[driver_test]
fn attention_is_near_the_cpu(test: &TestDriver) -> TestResult {
    let inputs = inputs().map(|input| {
        input
            .into_iter()
            .map(|value| f64::from(value as f32))
            .collect::<Vec<_>>()
    });
    for (name, causal) in [("attention", false), ("attention_causal", true)] {
        let actual: Vec<f64> = attend(test, name, &inputs, |value| value as f32)?
            .into_iter()
            .map(f64::from)
            .collect();
        assert_attention(&actual, &attention(&inputs, causal), 0.0, 0.0);
    }
    Ok(())
}

#[driver_test]
fn half_attention_is_near_the_cpu(test: &TestDriver) -> TestResult {
    let inputs = inputs().map(|input| {
        input
            .into_iter()
            .map(|value| F16.round(value))
            .collect::<Vec<_>>()
    });
    let actual = attend(test, "attention_f16", &inputs, |value| F16.bits(value))?;
    let actual: Vec<f64> = actual.into_iter().map(|bits| F16.value(bits)).collect();
    assert_attention(
        &actual,
        &attention(&inputs, false),
        2.0_f64.powi(-11),
        2.0_f64.powi(-25),
    );
    Ok(())
}

#[driver_test]
fn softmax_in_one_pass_is_near_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for columns in [1, 33, 300] {
        let input: Vec<f32> = floats(4, 6 * columns)
            .into_iter()
            .map(|value| value * 0.2)
            .collect();
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<f32>::zeroed(&stream, input.len())?;
        launch!(test, &stream, ATTENTION::"softmax_online", (&[f32], &mut [f32], u32), LaunchConfig::new(6, 32),
                (&source, &mut output, columns as u32));
        let each = |row: &[f32]| {
            let powers: Vec<f64> = row.iter().map(|value| f64::from(*value).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers
                .into_iter()
                .map(move |power| power / sum)
                .collect::<Vec<_>>()
        };
        let expected: Vec<f64> = input.chunks(columns).flat_map(each).collect();
        assert_near(&values(&output), &expected, 6e-6, 0.0, "softmax");
    }
    Ok(())
}
