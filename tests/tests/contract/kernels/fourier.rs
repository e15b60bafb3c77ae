//! Fourier transforms of floating-point numbers and of integers modulo a prime.

use curium_driver::LaunchConfig;
use curium_memory::{AnyBitPattern, DeviceBuffer, NoUninit};
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

use super::{buffer, floats, integers, kernel, launch, values};

const POINTS: usize = 1024;
const LINES: usize = 3;

/// Returns the spectra of rows of complex numbers by the definition of the transform.
fn spectra(lines: &[f64]) -> Vec<f64> {
    let roots: Vec<(f64, f64)> = (0..POINTS)
        .map(|index| (-std::f64::consts::TAU * index as f64 / POINTS as f64).sin_cos())
        .collect();
    let each = |line: &[f64]| {
        let point = |frequency: usize| {
            let mut sum = [0.0, 0.0];
            for (index, point) in line.chunks(2).enumerate() {
                let (sine, cosine) = roots[index * frequency % POINTS];
                sum[0] += point[0] * cosine - point[1] * sine;
                sum[1] += point[0] * sine + point[1] * cosine;
            }
            sum
        };
        (0..POINTS).flat_map(point).collect::<Vec<_>>()
    };
    lines.chunks(2 * POINTS).flat_map(each).collect()
}

/// Asserts that the error of each row is at most the given part of its norm.
#[track_caller]
fn assert_near_its_length(found: &[f64], expected: &[f64], part: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.chunks(2 * POINTS).zip(expected.chunks(2 * POINTS)) {
        let length = expected
            .iter()
            .map(|value| value * value)
            .sum::<f64>()
            .sqrt();
        let distance = found
            .iter()
            .zip(expected)
            .map(|(a, b)| (a - b) * (a - b))
            .sum::<f64>()
            .sqrt();
        assert!(distance <= part * length, "{distance} of {length}");
    }
}

/// Transforms rows in place, forward or inverse.
fn transform<T: AnyBitPattern + NoUninit>(
    test: &TestDriver,
    name: &str,
    data: &mut DeviceBuffer<T>,
    backward: bool,
) -> TestResult<Vec<T>> {
    let kernel = kernel::<(&mut [T], i32)>(test, kernels::FOURIER, name);
    let config = LaunchConfig::new(LINES as u32, 512);
    // SAFETY: the buffer has one row for each block.
    unsafe { kernel.launch(&test.stream(), config, (&mut *data, i32::from(backward))) }?;
    Ok(values(data))
}

fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// A spectrum is near the definition and gives the line back.
#[driver_test]
fn spectrum_is_inverted(test: &TestDriver) -> TestResult {
    let input = floats(1, LINES * 2 * POINTS);
    let mut data = buffer(&test.stream(), &input);
    let actual = transform(test, "fourier", &mut data, false)?;
    assert_near_its_length(&widened(&actual), &spectra(&widened(&input)), 5e-7);
    let back = transform(test, "fourier", &mut data, true)?;
    assert_near_its_length(&widened(&back), &widened(&input), 5e-7);
    Ok(())
}

/// A spectrum in double precision is near the definition and gives the line back.
#[driver_test]
fn double_spectrum_is_inverted(test: &TestDriver) -> TestResult {
    let input = widened(&floats(2, LINES * 2 * POINTS));
    let mut data = buffer(&test.stream(), &input);
    let actual = transform(test, "fourier_f64", &mut data, false)?;
    // The reference has a larger error than the kernel.
    assert_near_its_length(&actual, &spectra(&input), 1e-13);
    let back = transform(test, "fourier_f64", &mut data, true)?;
    assert_near_its_length(&back, &input, 1e-15);
    Ok(())
}

#[driver_test]
fn spectrum_by_fours_is_near_the_definition(test: &TestDriver) {
    let stream = test.stream();
    let input = floats(3, LINES * 2 * POINTS);
    let mut data = buffer(&stream, &input);
    launch!(test, &stream, FOURIER::"fourier_radix4", (&mut [f32],), LaunchConfig::new(LINES as u32, 256), (&mut data,));
    assert_near_its_length(&widened(&values(&data)), &spectra(&widened(&input)), 5e-7);
}

const PRIME: u64 = 998_244_353;

fn power(base: u64, exponent: u64) -> u64 {
    if exponent == 0 {
        return 1;
    }
    let remainder = power(base * base % PRIME, exponent / 2);
    if exponent.is_multiple_of(2) {
        remainder
    } else {
        remainder * base % PRIME
    }
}

/// A product of polynomials by exact transforms is the one of the CPU.
#[driver_test]
fn polynomial_product_equals_the_cpu(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let kernel = kernel::<(&mut [u32], u32, u32)>(test, kernels::FOURIER, "number_transform");
    let transform =
        |data: &mut DeviceBuffer<u32>, blocks: u32, root: u64, scale: u64| -> TestResult<_> {
            let config = LaunchConfig::new(blocks, 256);
            // SAFETY: the buffer has 1024 words for each block.
            unsafe { kernel.launch(&stream, config, (&mut *data, root as u32, scale as u32)) }?;
            Ok(values(data))
        };
    let input: Vec<u32> = integers(4, 2 * POINTS)
        .iter()
        .map(|value| (u64::from(*value) % PRIME) as u32)
        .collect();
    let mut data = buffer(&stream, &input);
    let root = power(3, (PRIME - 1) / POINTS as u64);
    let spectra = transform(&mut data, 2, root, 1)?;
    let sum = |frequency: u64| {
        let step = power(root, frequency);
        input[..POINTS]
            .iter()
            .rev()
            .fold(0, |sum, value| (sum * step + u64::from(*value)) % PRIME)
    };
    let expected: Vec<u64> = (0..POINTS as u64).map(sum).collect();
    assert!(
        spectra
            .iter()
            .zip(&expected)
            .all(|(actual, expected)| u64::from(*actual) == *expected)
    );

    let (left, right) = spectra.split_at(POINTS);
    let mut products = buffer(
        &stream,
        &left
            .iter()
            .zip(right)
            .map(|(left, right): (&u32, &u32)| {
                (u64::from(*left) * u64::from(*right) % PRIME) as u32
            })
            .collect::<Vec<_>>(),
    );
    let actual = transform(
        &mut products,
        1,
        power(root, PRIME - 2),
        power(POINTS as u64, PRIME - 2),
    )?;
    let mut expected = vec![0_u64; POINTS];
    for (at, left) in input[..POINTS].iter().enumerate() {
        for (other, right) in input[POINTS..].iter().enumerate() {
            let slot = &mut expected[(at + other) % POINTS];
            *slot = (*slot + u64::from(*left) * u64::from(*right)) % PRIME;
        }
    }
    assert!(
        actual
            .iter()
            .zip(&expected)
            .all(|(actual, expected)| u64::from(*actual) == *expected)
    );
    Ok(())
}
