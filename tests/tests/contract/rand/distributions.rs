//! Numbers have the distribution that they are drawn from: means, variances and the distance of
//! Kolmogorov and Smirnov.

use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use curium_rand::{
    Algorithm, Generator, Mrg32k3a, Mt19937, Mtgp32, Philox4x32, PseudoRandom, Real,
    ScrambledSobol32, ScrambledSobol64, Sobol32, Sobol64, Xorwow,
};
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::{seeded, with_dimensions};

/// The numbers of one sample.
const LEN: usize = 16_384;

/// The largest distance between the distribution of a sample and the right one: a right one exceeds
/// it once in 10,000 samples.
fn largest_distance() -> f64 {
    2.3 / (LEN as f64).sqrt()
}

/// Returns the largest difference between the distribution of the numbers and the probability that
/// one is at most `number`.
fn distance(mut numbers: Vec<f64>, cumulative: impl Fn(f64) -> f64) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let len = numbers.len() as f64;
    // Equal numbers count as one step.
    let last = |index: usize| numbers.get(index + 1) != Some(&numbers[index]);
    let steps = (0..numbers.len()).filter(|index| last(*index));
    steps
        .map(|index| ((index + 1) as f64 / len - cumulative(numbers[index])).abs())
        .fold(0.0, f64::max)
}

fn mean_and_variance(numbers: &[f64]) -> (f64, f64) {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let variance = numbers
        .iter()
        .map(|number| (number - mean).powi(2))
        .sum::<f64>()
        / numbers.len() as f64;
    (mean, variance)
}

/// The probability that a normal number is at most `x`, with an error of 10⁻⁷ (Abramowitz and
/// Stegun 7.1.26).
fn normal(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let factors = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let polynomial = factors
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    let upper = polynomial * (-z * z).exp() / 2.0;
    if x < 0.0 { upper } else { 1.0 - upper }
}

/// The probability that a Poisson number is at most `x`.
fn poisson(mean: f64, x: f64) -> f64 {
    let terms = (1..=x as u32).scan(-mean, |term, number| {
        *term += (mean / f64::from(number)).ln();
        Some(term.exp())
    });
    (-mean).exp() + terms.sum::<f64>()
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64, name: &str) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{name}: {found} instead of {expected} ± {tolerance}"
    );
}

fn check_reals<A: Algorithm, T: Real + bytemuck::Pod + std::fmt::Debug>(
    generator: &mut Generator<A>,
    stream: &Stream,
    narrow: fn(f64) -> T,
) -> TestResult {
    let name = std::any::type_name::<(A, T)>();
    let mut buffer = DeviceBuffer::<T>::uninit(stream, LEN)?;
    let numbers = |buffer: &DeviceBuffer<T>| -> Vec<f64> {
        buffer
            .to_vec()
            .expect("read failed")
            .into_iter()
            .map(Into::into)
            .collect()
    };

    generator.uniform(&mut buffer)?;
    let uniform = numbers(&buffer);
    assert!(
        uniform.iter().all(|number| *number > 0.0 && *number <= 1.0),
        "{name}"
    );
    let (mean, variance) = mean_and_variance(&uniform);
    assert_close(mean, 0.5, 0.01, name);
    assert_close(variance, 1.0 / 12.0, 0.003, name);
    assert!(distance(uniform, |x| x) < largest_distance(), "{name}");
    generator.normal(&mut buffer, narrow(-3.0), narrow(2.0))?;
    let numbers_of_normal = numbers(&buffer);
    let (mean, variance) = mean_and_variance(&numbers_of_normal);
    assert_close(mean, -3.0, 0.07, name);
    assert_close(variance, 4.0, 0.2, name);
    assert!(
        distance(numbers_of_normal, |x| normal((x + 3.0) / 2.0)) < largest_distance(),
        "{name}"
    );
    generator.log_normal(&mut buffer, narrow(0.5), narrow(0.25))?;
    let numbers_of_log_normal = numbers(&buffer);
    let (mean, _) = mean_and_variance(&numbers_of_log_normal);
    assert_close(mean, (0.5_f64 + 0.25 * 0.25 / 2.0).exp(), 0.02, name);
    assert!(
        distance(numbers_of_log_normal, |x| normal((x.ln() - 0.5) / 0.25)) < largest_distance(),
        "{name}"
    );
    Ok(())
}

fn check_poisson<A: Algorithm>(generator: &mut Generator<A>, stream: &Stream) -> TestResult {
    let mut buffer = DeviceBuffer::<u32>::uninit(stream, LEN)?;
    for mean in [0.3, 10.0, 2500.0] {
        generator.poisson(&mut buffer, mean)?;
        let numbers: Vec<f64> = buffer.to_vec()?.into_iter().map(f64::from).collect();
        let (found, variance) = mean_and_variance(&numbers);
        assert_close(found, mean, 5.0 * (mean / LEN as f64).sqrt(), "mean");
        assert_close(variance, mean, 0.1 * mean, "variance");
        if mean < 100.0 {
            assert!(
                distance(numbers, |x| poisson(mean, x)) < largest_distance(),
                "{mean}"
            );
        }
    }
    Ok(())
}

fn check<A: Algorithm>(mut generator: Generator<A>, stream: &Stream) -> TestResult {
    check_reals(&mut generator, stream, |number| number as f32)?;
    check_reals(&mut generator, stream, |number| number)?;
    Ok(())
}

fn check_pseudo<A: PseudoRandom>(stream: &Stream) -> TestResult {
    check(seeded::<A>(stream, 7)?, stream)?;
    check_poisson(&mut seeded::<A>(stream, 8)?, stream)?;
    Ok(())
}

#[driver_test]
fn pseudo_random_numbers_have_their_distributions(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    check_pseudo::<Xorwow>(&stream)?;
    check_pseudo::<Philox4x32>(&stream)?;
    check_pseudo::<Mrg32k3a>(&stream)?;
    check_pseudo::<Mt19937>(&stream)?;
    check_pseudo::<Mtgp32>(&stream)?;
    Ok(())
}

#[driver_test]
fn quasi_random_numbers_have_their_distributions(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    // Leaves out the origin of the sequence, whose normal numbers are extreme.
    let after_the_origin = |mut generator: Generator<Sobol32>| -> TestResult<_> {
        generator.set_offset(1)?;
        Ok(generator)
    };
    check(after_the_origin(with_dimensions(&stream, 4)?)?, &stream)?;
    check(with_dimensions::<ScrambledSobol32>(&stream, 4)?, &stream)?;
    check(with_dimensions::<ScrambledSobol64>(&stream, 2)?, &stream)?;
    check_poisson(
        &mut with_dimensions::<ScrambledSobol32>(&stream, 1)?,
        &stream,
    )?;
    Ok(())
}

#[test]
fn bits_are_set_half_the_time() -> TestResult {
    fn check<A: Algorithm<Bits = u32>>(mut generator: Generator<A>, stream: &Stream) -> TestResult {
        let mut buffer = DeviceBuffer::<u32>::uninit(stream, LEN)?;
        generator.bits(&mut buffer)?;
        let numbers = buffer.to_vec()?;
        // A Sobol sequence of this length has no lower bits.
        for bit in 20..32 {
            let share = numbers
                .iter()
                .filter(|number| *number >> bit & 1 == 1)
                .count() as f64
                / LEN as f64;
            assert_close(share, 0.5, 0.02, std::any::type_name::<A>());
        }
        Ok(())
    }

    on_driver(|test| -> TestResult {
        let stream = test.stream();
        check(seeded::<Xorwow>(&stream, 1)?, &stream)?;
        check(seeded::<Philox4x32>(&stream, 1)?, &stream)?;
        check(seeded::<Mrg32k3a>(&stream, 1)?, &stream)?;
        check(seeded::<Mt19937>(&stream, 1)?, &stream)?;
        check(seeded::<Mtgp32>(&stream, 1)?, &stream)?;
        check(with_dimensions::<Sobol32>(&stream, 2)?, &stream)?;
        let mut wide = DeviceBuffer::<u64>::uninit(&stream, LEN)?;
        with_dimensions::<Sobol64>(&stream, 2)?.bits(&mut wide)?;
        let upper = wide
            .to_vec()?
            .into_iter()
            .filter(|number| number >> 63 == 1)
            .count();
        assert_close(upper as f64 / LEN as f64, 0.5, 0.02, "Sobol64");
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn points_fill_space_more_evenly_than_random_ones(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f64>::uninit(&stream, 3 * 4096)?;
    with_dimensions::<Sobol32>(&stream, 3)?.uniform(&mut buffer)?;
    let numbers = buffer.to_vec()?;
    let x = &numbers[..4096];
    let y = &numbers[4096..8192];
    let z = &numbers[8192..];
    let inside = (0..4096)
        .filter(|point| x[*point].powi(2) + y[*point].powi(2) + z[*point].powi(2) < 1.0)
        .count();
    // Random points would have a deviation of 0.008.
    assert_close(
        inside as f64 / 4096.0,
        std::f64::consts::PI / 6.0,
        0.003,
        "the volume of a ball",
    );
    Ok(())
}
