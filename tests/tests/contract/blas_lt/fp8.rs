//! Products of 8-bit floats with scales.

use curium_blas::lt::{Epilogue, Matmul, Operands, Scales};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, on_driver};
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
    DeviceBuffer::from_slice(&test.stream(), &[value]).expect("memory suffices")
}

/// Multiplies with scales of both factors, by rows and by columns.
fn check<A: Value, B: Value, D: Value>(by_rows: bool) {
    on_driver(|test| {
        if !has_fp8(test) {
            return;
        }
        let (lt, stream, mut random) = (lt(test), test.stream(), Random::new(51));
        let (m, n, k) = (32, 48, 64);
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
        let (of_a, of_b) = (number(test, 0.5), number(test, 0.25));
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
fn products_of_8_bit_floats_are_scaled() {
    check::<F8E4M3, F8E4M3, bf16>(true);
    check::<F8E4M3, F8E4M3, bf16>(false);
    check::<F8E4M3, F8E5M2, bf16>(true);
    check::<F8E5M2, F8E4M3, bf16>(true);
    check::<F8E4M3, F8E4M3, f32>(false);
}

#[test]
fn result_of_8_bits_is_scaled_and_saturated_and_its_maximum_is_stored() {
    on_driver(|test| {
        if !has_fp8(test) {
            return;
        }
        let (lt, stream, mut random) = (lt(test), test.stream(), Random::new(53));
        let (m, n, k) = (16, 16, 32);
        let a = Device::<F8E4M3>::random(&mut random, &stream, rows::<F8E4M3>(m, k).layout());
        let b = Device::<F8E4M3>::random(&mut random, &stream, columns::<F8E4M3>(k, n).layout());
        let mut d = Device::<F8E4M3>::random(&mut random, &stream, rows::<F8E4M3>(m, n).layout());
        let (scale, mut amax) = (number(test, 64.0), number(test, 0.0));
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
            .map(|at| product.at(at / n, at % n).abs())
            .fold(0.0, f64::max);
        let found = f64::from(amax.to_vec().expect("it can be read")[0]);
        assert!(
            (found - greatest).abs() <= 0.02 * greatest,
            "{found} instead of {greatest}"
        );
    });
}

#[test]
fn bias_of_a_product_of_8_bit_floats_is_bf16() {
    on_driver(|test| {
        if !has_fp8(test) {
            return;
        }
        let (lt, stream, mut random) = (lt(test), test.stream(), Random::new(57));
        let (m, n, k) = (32, 16, 32);
        let a = Device::<F8E4M3>::random(&mut random, &stream, rows::<F8E4M3>(m, k).layout());
        let b = Device::<F8E4M3>::random(&mut random, &stream, columns::<F8E4M3>(k, n).layout());
        let mut d = Device::<bf16>::random(&mut random, &stream, rows::<bf16>(m, n).layout());
        let bias: Vec<bf16> = random.numbers(n);
        let buffer = DeviceBuffer::from_slice(&stream, &bias).expect("memory suffices");
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
    });
}
