//! Products of every combination of types agree with a reference of higher precision.

use curium_blas::lt::{Compute, Matmul, Operands, TypedLayout};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, on_driver};
use half::{bf16, f16};

use super::value::{Device, Random, Value};
use super::{columns, execute, lt, plan, rows};

/// Multiplies random matrices with random orders and leading dimensions, and adds the previous result.
fn check<T: Value, D: Value>(
    test: &TestDriver,
    compute: Compute,
    rounding: f64,
    (alpha, beta): (f64, f64),
) {
    let (lt, stream, mut random) = (lt(test), test.stream(), Random::new(5));
    for _ in 0..12 {
        let [m, n, k] = [8, 8, 8].map(|step| step * (1 + random.below(6)));
        let (of_a, of_b) = (random.layout(m, k, 8), random.layout(k, n, 8));
        let (a, b) = (
            Device::<T>::random(&mut random, &stream, of_a),
            Device::<T>::random(&mut random, &stream, of_b),
        );
        let of_d = random.layout(m, n, 8);
        let mut d = Device::<D>::random(&mut random, &stream, of_d);
        let matmul = Matmul::new(a.typed(), b.typed(), d.typed()).with_compute(compute);
        let mut plan = plan(&lt, &matmul);
        execute(
            &mut plan,
            &stream,
            Operands::new(&a.buffer, &b.buffer, &mut d.buffer).with_factors(alpha, beta),
        );
        let product = a.host.times(&b.host).map(|_, _, value| alpha * value);
        // An algorithm may round parts of the product to the type of the result before it adds them.
        let partial = D::EPSILON * product.largest();
        let expected = product.plus(beta, &d.host);
        let bound = 4.0 * k as f64 * (4.0 * f64::from(f32::EPSILON) + 2.0 * rounding) + partial;
        d.now()
            .assert_is::<D>(&expected, bound, &matmul.to_string());
    }
}

#[test]
fn products_of_f32_and_f64_agree_with_the_reference() {
    on_driver(|test| {
        check::<f32, f32>(test, Compute::F32, 0.0, (1.5, 0.5));
        check::<f32, f32>(test, Compute::F32Pedantic, 0.0, (1.0, 0.0));
        check::<f32, f32>(test, Compute::Tf32, 1.0 / 1024.0, (1.0, 0.25));
        check::<f32, f32>(test, Compute::F32FromBf16, 1.0 / 128.0, (1.0, 0.0));
        check::<f32, f32>(test, Compute::F32FromF16, 1.0 / 1024.0, (1.0, 0.0));
        check::<f64, f64>(test, Compute::F64, 0.0, (-2.0, 3.0));
    });
}

#[test]
fn products_of_16_bits_agree_with_the_reference() {
    on_driver(|test| {
        check::<bf16, bf16>(test, Compute::F32, 0.0, (1.0, 1.0));
        check::<bf16, f32>(test, Compute::F32, 0.0, (0.5, 2.0));
        check::<f16, f16>(test, Compute::F32, 0.0, (0.5, 0.5));
        check::<f16, f32>(test, Compute::F32, 0.0, (1.0, 0.0));
    });
}

#[test]
fn products_of_i8_are_exact() {
    on_driver(|test| {
        let (lt, stream, mut random) = (lt(test), test.stream(), Random::new(3));
        let (m, n, k) = (32, 16, 64);
        let a = Device::<i8>::random(&mut random, &stream, rows::<i8>(m, k).layout());
        let b = Device::<i8>::random(&mut random, &stream, columns::<i8>(k, n).layout());
        let mut d = Device::<i32>::random(&mut random, &stream, columns::<i32>(m, n).layout());
        let mut plan = plan(&lt, &Matmul::new(a.typed(), b.typed(), d.typed()));
        execute(
            &mut plan,
            &stream,
            Operands::new(&a.buffer, &b.buffer, &mut d.buffer).with_factors(2.0, 1.0),
        );
        let expected = a
            .host
            .times(&b.host)
            .map(|_, _, value| 2.0 * value)
            .plus(1.0, &d.host);
        d.now().assert_is::<i32>(&expected, 0.0, "i8");
    });
}

#[test]
fn addend_that_is_not_the_result_is_added_and_kept() {
    on_driver(|test| {
        let (lt, stream, mut random) = (lt(test), test.stream(), Random::new(9));
        let (of_a, of_b) = (rows::<f32>(16, 24).layout(), columns::<f32>(24, 8).layout());
        let (a, b) = (
            Device::<f32>::random(&mut random, &stream, of_a),
            Device::<f32>::random(&mut random, &stream, of_b),
        );
        let c = Device::<f32>::random(&mut random, &stream, rows::<f32>(16, 8).layout());
        let mut d = Device::<f32>::random(&mut random, &stream, rows::<f32>(16, 8).layout());
        let matmul = Matmul::new(a.typed(), b.typed(), d.typed()).with_c(c.typed());
        let mut plan = plan(&lt, &matmul);
        let operands = Operands::new(&a.buffer, &b.buffer, &mut d.buffer)
            .with_c(&c.buffer)
            .with_factors(1.0, -1.0);
        execute(&mut plan, &stream, operands);
        d.now().assert_is::<f32>(
            &a.host.times(&b.host).plus(-1.0, &c.host),
            1e-4,
            "out of place",
        );
        c.now().assert_is::<f32>(&c.host, 0.0, "the addend");
    });
}

#[test]
fn factors_in_device_memory_are_read_when_the_operation_runs() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
        let square = rows::<f32>(16, 16);
        let mut plan = plan(
            &lt,
            &Matmul::new(square, square, square).with_device_factors(),
        );
        let ones = DeviceBuffer::filled(&stream, 256, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::filled(&stream, 256, 1.0_f32).expect("memory suffices");
        let mut alpha = DeviceBuffer::from_slice(&stream, &[1.0_f32]).expect("memory suffices");
        let beta = DeviceBuffer::from_slice(&stream, &[3.0_f32]).expect("memory suffices");
        alpha.as_slice_mut().fill(0.5).expect("it is enqueued");
        execute(
            &mut plan,
            &stream,
            Operands::new(&ones, &ones, &mut d).with_device_factors(&alpha, &beta),
        );
        assert_eq!(d.to_vec().expect("it can be read"), [11.0; 256]);
    });
}

#[test]
fn empty_result_is_computed_without_an_algorithm() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
        let matmul = Matmul::new(rows::<f32>(0, 4), rows::<f32>(4, 4), rows::<f32>(0, 4));
        let mut plan = plan(&lt, &matmul);
        let b = DeviceBuffer::<f32>::zeroed(&stream, 16).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 16).expect("memory suffices");
        let (a, mut nothing) = (
            b.slice(0..0).expect("it is empty"),
            d.slice_mut(0..0).expect("it is empty"),
        );
        plan.execute(&stream, Operands::new(&a, &b, &mut nothing))
            .expect("an empty product is valid");
        assert_eq!((plan.algorithm(), plan.workspace_bytes()), (None, 0));
    });
}

#[test]
fn parts_of_buffers_with_a_smaller_alignment_are_multiplied() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
        let square = TypedLayout::new::<f32>(rows::<f32>(8, 8).layout());
        let mut plan = plan(&lt, &Matmul::new(square, square, square).with_alignment(4));
        let ones = DeviceBuffer::filled(&stream, 65, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::filled(&stream, 65, 0.0_f32).expect("memory suffices");
        let (part, mut result) = (
            ones.slice(1..).expect("it is in the buffer"),
            d.slice_mut(1..).expect("as above"),
        );
        execute(&mut plan, &stream, Operands::new(&part, &part, &mut result));
        let found = d.to_vec().expect("it can be read");
        assert_eq!((found[0], &found[1..]), (0.0, [8.0_f32; 64].as_slice()));
    });
}
