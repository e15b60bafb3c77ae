//! Building blocks of neural networks. Elementary functions have the errors documented by the
//! device library.

use curium_driver::LaunchConfig;
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::{assert_near, bits, buffer, floats, launch, values};

#[driver_test]
fn row_softmax_is_near_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let rows = 5;
    let columns = 300;
    let input: Vec<f32> = floats(1, rows * columns)
        .into_iter()
        .map(|value| value * 0.05)
        .collect();
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<f32>::zeroed(&stream, input.len())?;
    launch!(test, &stream, NETWORK::"softmax", (&[f32], &mut [f32], u32), LaunchConfig::new(rows as u32, 128),
            (&source, &mut output, columns as u32));
    let each = |row: &[f32]| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = row
            .iter()
            .map(|value| f64::from(value - largest).exp())
            .collect();
        let sum: f64 = powers.iter().sum();
        powers
            .into_iter()
            .map(move |power| power / sum)
            .collect::<Vec<_>>()
    };
    let expected: Vec<f64> = input.chunks(columns).flat_map(each).collect();
    assert_near(&values(&output), &expected, 2e-6, 0.0, "softmax");
    Ok(())
}

/// A normalized layers have the mean and deviation of the CPU.
#[driver_test]
fn layer_normalization_is_near_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let rows = 9;
    let columns = 100;
    let input = floats(2, rows * columns);
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<f32>::zeroed(&stream, input.len())?;
    launch!(test, &stream, NETWORK::"layer_norm", (&[f32], &mut [f32], u32, u32), LaunchConfig::new(3, 96),
            (&source, &mut output, rows as u32, columns as u32));
    let each = |row: &[f32]| {
        let mean = row.iter().copied().map(f64::from).sum::<f64>() / columns as f64;
        let squares: f64 = row
            .iter()
            .map(|value| (f64::from(*value) - mean).powi(2))
            .sum();
        let deviation = (squares / columns as f64 + 1e-5).sqrt();
        row.iter()
            .map(move |value| (f64::from(*value) - mean) / deviation)
            .collect::<Vec<_>>()
    };
    let expected: Vec<f64> = input.chunks(columns).flat_map(each).collect();
    assert_near(&values(&output), &expected, 1e-5, 1e-5, "layer_norm");
    Ok(())
}

#[test]
fn elementary_functions() -> TestResult {
    // The error function is tested only for oddness and at known points.
    let points = [
        (0.0, 0.0),
        (0.5, 0.520_499_877_8),
        (1.0, 0.842_700_792_9),
        (2.0, 0.995_322_265_0),
    ];
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut input: Vec<f32> = floats(3, 500)
            .into_iter()
            .map(|value| value * 0.3)
            .collect();
        for (slot, (point, _)) in input.iter_mut().zip(points) {
            *slot = point as f32;
        }
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<f32>::zeroed(&stream, 8 * 500)?;
        launch!(test, &stream, NETWORK::"functions", (&[f32], &mut [f32], u32), LaunchConfig::for_elements(500),
            (&source, &mut output, 500));
        let actual = values(&output);
        let column = |at: usize| {
            actual
                .iter()
                .skip(at)
                .step_by(8)
                .copied()
                .collect::<Vec<f32>>()
        };
        let expected =
            |f: fn(f64) -> f64| input.iter().map(|x| f(f64::from(*x))).collect::<Vec<f64>>();
        assert_near(&column(0), &expected(f64::exp), 4e-7, 0.0, "exp");
        assert_near(
            &column(1),
            &expected(|x| (f64::from(x.abs() as f32 + 1.0)).ln()),
            3e-7,
            1e-9,
            "log",
        );
        assert_near(&column(2), &expected(f64::sin), 3e-7, 1e-8, "sin");
        assert_near(&column(3), &expected(f64::cos), 3e-7, 1e-8, "cos");
        assert_near(&column(4), &expected(f64::tanh), 4e-7, 0.0, "tanh");
        assert_near(
            &column(5),
            &expected(|x| x.abs().powf(1.5)),
            1e-6,
            0.0,
            "pow",
        );
        assert_near(&column(6), &expected(f64::atan), 4e-7, 0.0, "atan");
        let errors: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
        assert_near(&column(7)[..4], &errors, 4e-7, 0.0, "erf");
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn double_functions_are_near_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input: Vec<f64> = floats(4, 400)
        .into_iter()
        .map(|value| f64::from(value) * 0.11)
        .collect();
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<f64>::zeroed(&stream, 6 * 400)?;
    launch!(test, &stream, NETWORK::"double_functions", (&[f64], &mut [f64], u32), LaunchConfig::for_elements(400),
            (&source, &mut output, 400));
    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= expected.abs() * 1e-15
    }

    for (x, found) in input.iter().zip(values(&output).chunks(6)) {
        assert!(near(found[0], x.exp()), "exp {x}: {found:?}");
        assert!(near(found[1], (x.abs() + 1.0).ln()), "log {x}: {found:?}");
        assert!(near(found[2], x.sin()), "sin {x}: {found:?}");
        assert_eq!(found[3].to_bits(), x.abs().sqrt().to_bits(), "sqrt {x}");
        assert!(near(found[4], x.cbrt()), "cbrt {x}: {found:?}");
        assert_eq!(found[5], x % 0.7, "fmod {x}");
    }
    Ok(())
}

#[driver_test]
fn directed_results_enclose_the_exact_one(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input = floats(5, 2000);
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<f32>::zeroed(&stream, 12_000)?;
    launch!(test, &stream, NETWORK::"roundings", (&[f32], &mut [f32], u32), LaunchConfig::for_elements(1000),
            (&source, &mut output, 1000));
    for (pair, found) in input.chunks(2).zip(values(&output).chunks(12)) {
        let a = f64::from(pair[0]);
        let b = f64::from(pair[1]);
        // Sums and products of `f32` of similar magnitude are exact in `f64`; quotients are checked
        // by multiplication.
        for (results, exact) in [
            (&found[..4], a + b),
            (&found[4..8], a * b),
            (&found[8..], a / b),
        ] {
            let [nearest, zero, up, down] = [results[0], results[1], results[2], results[3]];
            assert_eq!(nearest, exact as f32, "{pair:?}");
            assert!(
                f64::from(down) <= exact && exact <= f64::from(up),
                "{pair:?} {results:?}"
            );
            assert!(up == down || up == down.next_up(), "{pair:?} {results:?}");
            assert_eq!(zero, if exact < 0.0 { up } else { down }, "{pair:?}");
        }
    }
    Ok(())
}

#[test]
fn halves_round_to_the_nearest() -> TestResult {
    // Small multiples of a quarter: every half and every result is exact.
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let input: Vec<f32> = floats(6, 200)
            .into_iter()
            .map(|value| (value * 0.16).round() * 0.25)
            .collect();
        let source = buffer(&stream, &input);
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 400)?;
        launch!(test, &stream, NETWORK::"halves", (&[f32], &mut [u32], u32), LaunchConfig::for_elements(100),
            (&source, &mut output, 100));
        let widen = |half: u32| {
            let magnitude = (half & 0x7fff) << 13;
            let value = if magnitude == 0 {
                0.0
            } else {
                f32::from_bits(magnitude + (112 << 23))
            };
            if half & 0x8000 == 0 { value } else { -value }
        };
        let pair = |word: u32| [widen(word & 0xffff), widen(word >> 16)];
        for (operands, found) in input.chunks(2).zip(values(&output).chunks(4)) {
            let a = operands[0];
            let b = operands[1];
            assert_eq!(pair(found[0]), [a, b]);
            assert_eq!(pair(found[1]), [a + b, a + b]);
            assert_eq!(pair(found[2]), [a * b, a * b]);
            assert_eq!(bits(&pair(found[3])), bits(&[a * b + a, a * b + b]));
        }
        Ok(())
    })?;
    Ok(())
}
