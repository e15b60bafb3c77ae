//! Products of 8-bit floats with scales.

use curium_blas::lt::{Epilogue, Matmul, Operands, Scales};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, skip};
use float8::{F8E4M3, F8E5M2};
use half::bf16;

use super::value::{Device, Random, Value};
use super::{columns, execute, lt, plan, rows};

fn has_fp8(test: &TestDriver) -> bool {
    let capability = test
        .device()
        .compute_capability()
        .expect("the device reports it");
    (capability.major, capability.minor) >= (8, 9)
}

fn number(test: &TestDriver, value: f32) -> DeviceBuffer<f32> {
    DeviceBuffer::from_slice(&test.stream(), &[value]).expect("allocation failed")
}

/// Multiplies with scales of both factors, by rows and by columns.
fn check<A: Value, B: Value, D: Value>(by_rows: bool) {
    on_driver(|test| {
        if !has_fp8(test) {
            return skip("the device has no FP8 products");
        }
        let lt = lt(test);
        let stream = test.stream();
        let mut random = Random::new(51);
        let m = 32;
        let n = 48;
        let k = 64;
        let a = Device::<A>::random(&mut random, &stream, rows::<A>(m, k).layout());
        let b = Device::<B>::random(&mut random, &stream, columns::<B>(k, n).layout());
        let of_d = if by_rows {
            rows::<D>(m, n)
        } else {
            columns::<D>(m, n)
        };
        let mut d = Device::<D>::random(&mut random, &stream, of_d.layout());
        let matmul =
            Matmul::new(a.typed(), b.typed(), d.typed()).with_scales(Scales::A | Scales::B);
        let of_a = number(test, 0.5);
        let of_b = number(test, 0.25);
        let operands = Operands::new(&a.buffer, &b.buffer, &mut d.buffer)
            .with_scale_a(&of_a)
            .with_scale_b(&of_b);
        execute(&mut plan(&lt, &matmul), &stream, operands);
        let expected = a.host.times(&b.host).map(|_, _, value| value / 8.0);
        // Sums of 8-bit floats keep 14 bits of the products.
        d.now().assert_is::<D>(&expected, 0.02, &matmul.to_string());
    });
}

#[test]
fn fp8_products_are_scaled() {
    check::<F8E4M3, F8E4M3, bf16>(true);
    check::<F8E4M3, F8E4M3, bf16>(false);
    check::<F8E4M3, F8E5M2, bf16>(true);
    check::<F8E5M2, F8E4M3, bf16>(true);
    check::<F8E4M3, F8E4M3, f32>(false);
}

/// A result of 8 bits is scaled and saturated and its maximum is stored.
#[driver_test]
fn eight_bit_result_is_scaled_and_saturated(test: &TestDriver) -> TestResult {
    if !has_fp8(test) {
        return skip("the device has no FP8 products");
    }
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(53);
    let m = 16;
    let n = 16;
    let k = 32;
    let a = Device::<F8E4M3>::random(&mut random, &stream, rows::<F8E4M3>(m, k).layout());
    let b = Device::<F8E4M3>::random(&mut random, &stream, columns::<F8E4M3>(k, n).layout());
    let mut d = Device::<F8E4M3>::random(&mut random, &stream, rows::<F8E4M3>(m, n).layout());
    let scale = number(test, 64.0);
    let mut amax = number(test, 0.0);
    let matmul =
        Matmul::new(a.typed(), b.typed(), d.typed()).with_scales(Scales::D | Scales::AMAX_D);
    let operands = Operands::new(&a.buffer, &b.buffer, &mut d.buffer)
        .with_scale_d(&scale)
        .with_amax_d(&mut amax);
    execute(&mut plan(&lt, &matmul), &stream, operands);
    let product = a.host.times(&b.host);
    d.now().assert_is::<F8E4M3>(
        &product.map(|_, _, value| (64.0 * value).clamp(-448.0, 448.0)),
        1.0,
        "e4m3",
    );
    let greatest = (0..m * n)
        .map(|index| product.at(index / n, index % n).abs())
        .fold(0.0, f64::max);
    let actual = f64::from(amax.to_vec()?[0]);
    assert!(
        (actual - greatest).abs() <= 0.02 * greatest,
        "{actual} instead of {greatest}"
    );
    Ok(())
}

#[driver_test]
fn fp8_product_bias_is_bf16(test: &TestDriver) -> TestResult {
    if !has_fp8(test) {
        return skip("the device has no FP8 products");
    }
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(57);
    let m = 32;
    let n = 16;
    let k = 32;
    let a = Device::<F8E4M3>::random(&mut random, &stream, rows::<F8E4M3>(m, k).layout());
    let b = Device::<F8E4M3>::random(&mut random, &stream, columns::<F8E4M3>(k, n).layout());
    let mut d = Device::<bf16>::random(&mut random, &stream, rows::<bf16>(m, n).layout());
    let bias: Vec<bf16> = random.numbers(n);
    let buffer = DeviceBuffer::from_slice(&stream, &bias)?;
    let matmul = Matmul::new(a.typed(), b.typed(), d.typed())
        .with_epilogue(Epilogue::Bias)
        .with_fast_accumulation(true);
    execute(
        &mut plan(&lt, &matmul),
        &stream,
        Operands::new(&a.buffer, &b.buffer, &mut d.buffer).with_bias(&buffer),
    );
    let expected = a
        .host
        .times(&b.host)
        .map(|_, column, value| value + bias[column].wide());
    d.now()
        .assert_is::<bf16>(&expected, 0.1, &matmul.to_string());
    Ok(())
}
