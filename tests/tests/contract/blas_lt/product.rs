//! Products of every combination of types agree with a reference of higher precision.

use curium_blas::lt::{Compute, Matmul, Operands, TypedLayout};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};
use half::{bf16, f16};

use super::value::{Device, Random, Value};
use super::{columns, execute, lt, plan, rows};

/// Multiplies random matrices with random orders and leading dimensions, and adds the previous
/// result.
fn check<T: Value, D: Value>(
    test: &TestDriver,
    compute: Compute,
    rounding: f64,
    (alpha, beta): (f64, f64),
) {
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(5);
    for _ in 0..12 {
        let [m, n, k] = [8, 8, 8].map(|step| step * (1 + random.below(6)));
        let of_a = random.layout(m, k, 8);
        let of_b = random.layout(k, n, 8);
        let a = Device::<T>::random(&mut random, &stream, of_a);
        let b = Device::<T>::random(&mut random, &stream, of_b);
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
        // An algorithm may round parts of the product to the type of the result before it adds
        // them.
        let partial = D::EPSILON * product.largest();
        let expected = product.plus(beta, &d.host);
        let bound = 4.0 * k as f64 * (4.0 * f64::from(f32::EPSILON) + 2.0 * rounding) + partial;
        d.now()
            .assert_is::<D>(&expected, bound, &matmul.to_string());
    }
}

#[driver_test]
fn f32_and_f64_products_match_the_reference(test: &TestDriver) {
    check::<f32, f32>(test, Compute::F32, 0.0, (1.5, 0.5));
    check::<f32, f32>(test, Compute::F32Pedantic, 0.0, (1.0, 0.0));
    check::<f32, f32>(test, Compute::Tf32, 1.0 / 1024.0, (1.0, 0.25));
    check::<f32, f32>(test, Compute::F32FromBf16, 1.0 / 128.0, (1.0, 0.0));
    check::<f32, f32>(test, Compute::F32FromF16, 1.0 / 1024.0, (1.0, 0.0));
    check::<f64, f64>(test, Compute::F64, 0.0, (-2.0, 3.0));
}

#[driver_test]
fn products_with_16_bits_match_the_reference(test: &TestDriver) {
    check::<bf16, bf16>(test, Compute::F32, 0.0, (1.0, 1.0));
    check::<bf16, f32>(test, Compute::F32, 0.0, (0.5, 2.0));
    check::<f16, f16>(test, Compute::F32, 0.0, (0.5, 0.5));
    check::<f16, f32>(test, Compute::F32, 0.0, (1.0, 0.0));
}

#[driver_test]
fn i8_products_are_exact(test: &TestDriver) {
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(3);
    let m = 32;
    let n = 16;
    let k = 64;
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
}

#[driver_test]
fn addend_that_is_not_the_result_is_added_and_kept(test: &TestDriver) {
    let lt = lt(test);
    let stream = test.stream();
    let mut random = Random::new(9);
    let of_a = rows::<f32>(16, 24).layout();
    let of_b = columns::<f32>(24, 8).layout();
    let a = Device::<f32>::random(&mut random, &stream, of_a);
    let b = Device::<f32>::random(&mut random, &stream, of_b);
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
}

/// Factors in device memory are read when the operation runs.
#[driver_test]
fn device_factors_are_read_at_execution(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(16, 16);
    let mut plan = plan(
        &lt,
        &Matmul::new(square, square, square).with_device_factors(),
    );
    let ones = DeviceBuffer::filled(&stream, 256, 1.0_f32)?;
    let mut d = DeviceBuffer::filled(&stream, 256, 1.0_f32)?;
    let mut alpha = DeviceBuffer::from_slice(&stream, &[1.0_f32])?;
    let beta = DeviceBuffer::from_slice(&stream, &[3.0_f32])?;
    alpha.fill(0.5)?;
    execute(
        &mut plan,
        &stream,
        Operands::new(&ones, &ones, &mut d).with_device_factors(&alpha, &beta),
    );
    assert_eq!(d.to_vec()?, [11.0; 256]);
    Ok(())
}

#[driver_test]
fn empty_result_is_computed_without_an_algorithm(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let matmul = Matmul::new(rows::<f32>(0, 4), rows::<f32>(4, 4), rows::<f32>(0, 4));
    let mut plan = plan(&lt, &matmul);
    let b = DeviceBuffer::<f32>::zeroed(&stream, 16)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 16)?;
    let a = b.slice(0..0)?;
    let mut nothing = d.slice_mut(0..0)?;
    plan.execute(&stream, Operands::new(&a, &b, &mut nothing))?;
    assert_eq!((plan.algorithm(), plan.workspace_bytes()), (None, 0));
    Ok(())
}

/// Parts of buffers with a smaller alignment are multiplied.
#[driver_test]
fn misaligned_buffer_slices_are_multiplied(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = TypedLayout::new::<f32>(rows::<f32>(8, 8).layout());
    let mut plan = plan(&lt, &Matmul::new(square, square, square).with_alignment(4));
    let ones = DeviceBuffer::filled(&stream, 65, 1.0_f32)?;
    let mut d = DeviceBuffer::filled(&stream, 65, 0.0_f32)?;
    let part = ones.slice(1..)?;
    let mut result = d.slice_mut(1..)?;
    execute(&mut plan, &stream, Operands::new(&part, &part, &mut result));
    let actual = d.to_vec()?;
    assert_eq!((actual[0], &actual[1..]), (0.0, [8.0_f32; 64].as_slice()));
    Ok(())
}
