//! The error of each function, against a more precise one.
//!
//! On the host, the approximate instructions are correctly rounded functions. The instructions' own
//! errors come on top on the device: up to 1 ulp where a function uses `ex2.approx`.

extern crate std;

use core::f64::consts::{FRAC_1_SQRT_2, PI};
use std::format;
use std::string::String;
use std::vec::Vec;

use super::Float;

/// Returns numbers of the range: evenly distributed ones, and ones with evenly distributed bits,
/// which include the smallest.
fn samples(low: f32, high: f32) -> impl Iterator<Item = f32> {
    const COUNT: u32 = 20_000;
    let width = f64::from(high) - f64::from(low);
    let even =
        (0..=COUNT).map(move |i| (f64::from(low) + width * f64::from(i) / f64::from(COUNT)) as f32);
    let bits = (0..COUNT)
        .map(|i| f32::from_bits(i.wrapping_mul(214_013)))
        .chain((0..COUNT).map(|i| f32::from_bits(0x8000_0000 | i.wrapping_mul(107_003))));
    even.chain(bits).filter(move |x| *x >= low && *x <= high)
}

/// Returns the distance of a result from the exact one, in units in the last place of `f32`.
fn ulps(result: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if result.to_bits() == rounded.to_bits() || (result.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    if result.is_infinite() && rounded.is_infinite() && result == rounded {
        return 0.0;
    }
    let exponent = rounded.abs().max(f32::MIN_POSITIVE).to_bits() >> 23;
    let ulp = 2.0_f64.powi(exponent.min(254) as i32 - 150);
    // Beyond the range, the next number has the exponent of the largest.
    let result = if result.is_infinite() {
        2.0_f64.powi(128).copysign(f64::from(result))
    } else {
        f64::from(result)
    };
    let exact = exact.clamp(-2.0_f64.powi(128), 2.0_f64.powi(128));
    (result - exact).abs() / ulp
}

/// Returns an error if the function is further from the exact one than `limit` ulp.
fn check(
    name: &str,
    range: (f32, f32),
    limit: f64,
    function: impl Fn(f32) -> f32,
    exact: impl Fn(f64) -> f64,
    errors: &mut Vec<String>,
) {
    let mut worst = (0.0, 0.0);
    for x in samples(range.0, range.1) {
        let error = ulps(function(x), exact(f64::from(x)));
        if error > worst.0 || error.is_nan() {
            worst = (error, x);
        }
    }
    let (error, x) = worst;
    let text = format!(
        "{name} of {x:e} is {:e} and not {:e}: {error:.2} ulp, limit {limit}",
        function(x),
        exact(f64::from(x))
    );
    if std::env::var_os("CURIUM_SHOW_ERRORS").is_some() {
        #[allow(clippy::print_stderr, reason = "asked for")]
        {
            std::eprintln!("{text}");
        }
    }
    if error > limit || error.is_nan() {
        errors.push(text);
    }
}

/// Powers, exponential functions and logarithms. The limits are below those of the documentation by
/// the error of `ex2.approx`.
#[test]
fn errors_of_exponential_functions() {
    let mut errors = Vec::new();
    let e = &mut errors;
    check("exp", (-110.0, 100.0), 1.5, Float::exp, f64::exp, e);
    check("exp2", (-160.0, 140.0), 1.0, Float::exp2, f64::exp2, e);
    check("exp10", (-50.0, 40.0), 1.5, Float::exp10, libm::exp10, e);
    check(
        "exp_m1",
        (-100.0, 100.0),
        1.5,
        Float::exp_m1,
        f64::exp_m1,
        e,
    );
    check("ln", (-1.0, f32::MAX), 1.0, Float::ln, f64::ln, e);
    check("ln", (0.4, 4.0), 1.0, Float::ln, f64::ln, e);
    check("log2", (-1.0, f32::MAX), 1.0, Float::log2, f64::log2, e);
    check("log2", (0.4, 4.0), 1.0, Float::log2, f64::log2, e);
    check("log10", (-1.0, f32::MAX), 1.0, Float::log10, f64::log10, e);
    check("log10", (0.4, 4.0), 1.0, Float::log10, f64::log10, e);
    check("ln_1p", (-2.0, f32::MAX), 1.5, Float::ln_1p, f64::ln_1p, e);
    check("ln_1p", (-1.0, 4.0), 1.5, Float::ln_1p, f64::ln_1p, e);
    check(
        "cbrt",
        (-f32::MAX, f32::MAX),
        1.0,
        Float::cbrt,
        f64::cbrt,
        e,
    );
    check("cbrt", (-8.0, 8.0), 1.0, Float::cbrt, f64::cbrt, e);
    check("sinh", (-95.0, 95.0), 2.5, Float::sinh, f64::sinh, e);
    check("sinh", (-2.0, 2.0), 2.5, Float::sinh, f64::sinh, e);
    check("cosh", (-95.0, 95.0), 2.5, Float::cosh, f64::cosh, e);
    check("tanh", (-95.0, 95.0), 1.5, Float::tanh, f64::tanh, e);
    check("tanh", (-2.0, 2.0), 1.5, Float::tanh, f64::tanh, e);
    check(
        "asinh",
        (-f32::MAX, f32::MAX),
        3.0,
        Float::asinh,
        f64::asinh,
        e,
    );
    check("asinh", (-2.0, 2.0), 3.0, Float::asinh, f64::asinh, e);
    check("acosh", (0.0, f32::MAX), 3.0, Float::acosh, f64::acosh, e);
    check("acosh", (1.0, 3.0), 3.0, Float::acosh, f64::acosh, e);
    check("atanh", (-1.1, 1.1), 3.0, Float::atanh, f64::atanh, e);
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn errors_of_trigonometric_functions() {
    let mut errors = Vec::new();
    let e = &mut errors;
    for range in [(-10.0, 10.0), (-2e5, 2e5), (-f32::MAX, f32::MAX)] {
        check("sin", range, 1.5, Float::sin, f64::sin, e);
        check("cos", range, 1.5, Float::cos, f64::cos, e);
        check("tan", range, 3.0, Float::tan, f64::tan, e);
        let sine = |x| Float::sin_cos(x).0;
        let cosine = |x| Float::sin_cos(x).1;
        check("sine of both", range, 1.5, sine, f64::sin, e);
        check("cosine of both", range, 1.5, cosine, f64::cos, e);
    }
    let sin_pi = |x: f64| (PI * (x - 2.0 * (x / 2.0).round())).sin();
    let cos_pi = |x: f64| (PI * (x - 2.0 * (x / 2.0).round())).cos();
    // The exact zeros of the reference are not exact.
    check("sin_pi", (-0.49, 0.49), 1.5, Float::sin_pi, sin_pi, e);
    check("sin_pi", (3.01, 3.99), 1.5, Float::sin_pi, sin_pi, e);
    check("cos_pi", (-0.49, 0.49), 1.5, Float::cos_pi, cos_pi, e);
    check("cos_pi", (-2.49, -1.51), 1.5, Float::cos_pi, cos_pi, e);
    check("asin", (-1.1, 1.1), 2.0, Float::asin, f64::asin, e);
    check("acos", (-1.1, 1.1), 2.0, Float::acos, f64::acos, e);
    check(
        "atan",
        (-f32::MAX, f32::MAX),
        2.0,
        Float::atan,
        f64::atan,
        e,
    );
    check("atan", (-3.0, 3.0), 2.0, Float::atan, f64::atan, e);
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn errors_of_special_functions() {
    let mut errors = Vec::new();
    let e = &mut errors;
    let normcdf = |x: f64| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
    check("erf", (-f32::MAX, f32::MAX), 1.5, Float::erf, libm::erf, e);
    check("erf", (-5.0, 5.0), 1.5, Float::erf, libm::erf, e);
    check(
        "erfc",
        (-f32::MAX, f32::MAX),
        3.5,
        Float::erfc,
        libm::erfc,
        e,
    );
    check("erfc", (-5.0, 10.5), 3.5, Float::erfc, libm::erfc, e);
    check("normcdf", (-14.5, 15.0), 4.0, Float::normcdf, normcdf, e);
    check("tgamma", (-1e9, 40.0), 5.0, Float::tgamma, libm::tgamma, e);
    check("tgamma", (0.0, 40.0), 5.0, Float::tgamma, libm::tgamma, e);
    check("tgamma", (-5.0, 5.0), 5.0, Float::tgamma, libm::tgamma, e);
    check(
        "lgamma",
        (0.0, f32::MAX),
        5.0,
        Float::lgamma,
        libm::lgamma,
        e,
    );
    check("lgamma", (0.0, 20.0), 5.0, Float::lgamma, libm::lgamma, e);
    for x in samples(-30.0, 0.0) {
        let exact = libm::lgamma(f64::from(x));
        let error = (f64::from(Float::lgamma(x)) - exact).abs();
        let limit = 1e-6 * exact.abs().max(4.0);
        if exact.is_finite() && error > limit {
            errors.push(format!("lgamma of {x:e}: {error:e}"));
        }
    }
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn errors_of_functions_of_two_numbers() {
    let mut errors = Vec::new();
    let e = &mut errors;
    for y in [-3.0_f32, -0.5, 0.0, 1e-30, 0.7, 2.0, 17.3, 1e30] {
        let exact = |x| f64::hypot(x, f64::from(y));
        check(
            "hypot",
            (-f32::MAX, f32::MAX),
            2.0,
            |x| Float::hypot(x, y),
            exact,
            e,
        );
        check("hypot", (-9.0, 9.0), 2.0, |x| Float::hypot(x, y), exact, e);
        let exact = |x| f64::atan2(f64::from(y), x);
        check(
            "atan2",
            (-f32::MAX, f32::MAX),
            2.5,
            |x| Float::atan2(y, x),
            exact,
            e,
        );
        check("atan2", (-9.0, 9.0), 2.5, |x| Float::atan2(y, x), exact, e);
        let exact = |x| f64::powf(x, f64::from(y));
        check(
            "powf",
            (-f32::MAX, f32::MAX),
            2.0,
            |x| Float::powf(x, y),
            exact,
            e,
        );
        check("powf", (0.0, 9.0), 2.0, |x| Float::powf(x, y), exact, e);
        let base = y.abs();
        let exact = |x| f64::powf(f64::from(base), x);
        check(
            "powf",
            (-150.0, 150.0),
            2.0,
            |x| Float::powf(base, x),
            exact,
            e,
        );
    }
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Special values of the functions of two numbers are those of `std`.
#[test]
fn special_values() {
    let numbers = [
        0.0_f32,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        1e30,
        -1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    for x in numbers {
        for y in numbers {
            let [power, angle] = [Float::powf(x, y), Float::atan2(x, y)];
            let exact = f64::from(x).powf(f64::from(y)) as f32;
            let is_near = ulps(power, f64::from(exact)) < 2.0;
            assert!(is_near, "{x}^{y} is {power} and not {exact}");
            if x.abs() == 2.0 || exact == 0.0 {
                assert!(same(power, exact), "{x}^{y} is {power}");
            }
            let exact = f64::from(x).atan2(f64::from(y)) as f32;
            assert!(
                ulps(angle, f64::from(exact)) < 2.0,
                "atan2({x}, {y}) is {angle}"
            );
        }
        for (name, value, expected) in [
            ("exp", Float::exp(x), x.exp()),
            ("sin", Float::sin(x), (f64::from(x)).sin() as f32),
            ("ln_1p", Float::ln_1p(x), x.ln_1p()),
            ("exp_m1", Float::exp_m1(x), x.exp_m1()),
            ("tanh", Float::tanh(x), x.tanh()),
            ("atan", Float::atan(x), x.atan()),
            ("sinh", Float::sinh(x), x.sinh()),
            ("cbrt", Float::cbrt(x), x.cbrt()),
        ] {
            let is_near = ulps(value, f64::from(expected)) < 3.0;
            assert!(is_near, "{name} of {x} is {value} and not {expected}");
            if x == 0.0 {
                assert!(same(value, expected), "{name} of {x} is {value}");
            }
        }
    }
    for (x, n) in [(2.0_f32, 10), (2.0, -3), (-1.5, 3), (0.0, 0), (3.0, 0)] {
        assert_eq!(Float::powi(x, n), x.powi(n));
        assert_eq!(Float::powi(f64::from(x), n), f64::from(x).powi(n));
    }
}

/// The functions of `f64` are those of `libm`; these are not.
#[test]
fn functions_of_f64_that_libm_lacks() {
    assert_eq!(Float::sin_pi(0.5_f64), 1.0);
    assert_eq!(Float::sin_pi(7.0_f64), 0.0);
    assert_eq!(Float::cos_pi(-1.0_f64), -1.0);
    assert!((Float::sin_pi(0.25_f64) - FRAC_1_SQRT_2).abs() < 1e-15);
    assert!((Float::rsqrt(4.0_f64) - 0.5).abs() < 1e-16);
    // The values of a table with 30 digits.
    for (x, expected) in [
        (-8.5_f64, 9.479_534_822_203_318e-18_f64),
        (-3.0, 1.349_898_031_630_094_5e-3),
        (0.0, 0.5),
        (1.0, 0.841_344_746_068_542_9),
    ] {
        let error = (Float::normcdf(x) - expected).abs() / expected;
        assert!(error < 1e-15, "normcdf of {x}: {error:e}");
    }
}
