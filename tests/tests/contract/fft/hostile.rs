//! Bad shapes and memory are errors with their values before the library is called.

use curium_fft::{Complex, Complex32, Complex64, CuFft, Embedding, Error, Plan, Result, Shape};
use curium_memory::DeviceBuffer;
use curium_sim::{Fault, Simulator};
use curium_sys::{CUresult, Function};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{cufft, plan};

#[track_caller]
fn assert_refused<T>(result: Result<T>, parts: &[&str]) {
    let Err(Error::Shape(error)) = result else {
        panic!("the shape is not refused")
    };
    let text = error.to_string();
    assert!(
        parts.iter().all(|part| text.contains(part)),
        "{text} without one of {parts:?}"
    );
}

#[driver_test]
fn impossible_shapes_are_refused(test: &TestDriver) {
    let stream = test.stream();
    let make = |shape: &Shape| Plan::<Complex32, Complex32>::new(&cufft(), &stream, shape);
    assert_refused(make(&Shape::new([4, 0])), &["Plan::new", "[4, 0]"]);
    assert_refused(make(&Shape::new([4]).with_batches(0)), &["0 batches"]);
    let small = Embedding::new([4, 3]);
    assert_refused(
        make(&Shape::new([4, 4]).with_input(small)),
        &["input", "[4, 4] in [4, 3]"],
    );
    assert_refused(
        make(&Shape::new([4, 4]).with_output(Embedding::new([4]))),
        &["output", "[4, 4] in [4]"],
    );
    assert_refused(
        make(&Shape::new([4]).with_input(Embedding::new([4]).with_stride(0))),
        &["stride 0"],
    );
    let dense = Embedding::new([4]).with_distance(3);
    assert_refused(
        make(&Shape::new([4]).with_batches(2).with_output(dense)),
        &["overlap", "distance 3", "2 batches"],
    );
    let still = Embedding::new([4]).with_distance(0);
    assert_refused(
        make(&Shape::new([4]).with_batches(2).with_output(still)),
        &["overlap"],
    );
    for huge in [
        Shape::new([usize::MAX]),
        Shape::new([1 << 32, 1 << 32]),
        Shape::new([8]).with_batches(usize::MAX),
        Shape::new([8]).with_input(Embedding::new([8]).with_stride(usize::MAX)),
        Shape::new([8])
            .with_batches(2)
            .with_input(Embedding::new([8]).with_distance(usize::MAX)),
    ] {
        assert_refused(make(&huge), &["input too large"]);
    }
    let huge = Shape::new([usize::MAX]).in_place();
    assert_refused(
        Plan::<f32, Complex32>::new(&cufft(), &stream, &huge),
        &["too large"],
    );
}

#[driver_test]
fn f16_lengths_are_powers_of_two(test: &TestDriver) {
    let stream = test.stream();
    let outcome = Plan::<Complex<half::f16>, Complex<half::f16>>::new(
        &cufft(),
        &stream,
        &Shape::new([8, 12]),
    );
    assert_refused(outcome, &["f16", "powers of two", "[8, 12]"]);
}

#[driver_test]
fn memory_that_is_too_short_is_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let shape = Shape::new([4, 6]).with_batches(2);
    let mut forward: Plan<f32, Complex32> = plan(&stream, &shape);
    let mut inverse: Plan<Complex32, f32> = plan(&stream, &shape);
    assert_eq!((forward.input_len(), forward.output_len()), (48, 32));
    let mut real = DeviceBuffer::<f32>::zeroed(&stream, 48)?;
    let mut complex = DeviceBuffer::<Complex32>::zeroed(&stream, 32)?;
    let short = &real.slice(..47)?;
    assert_refused(
        forward.forward(short, &mut complex),
        &["Plan::forward", "input", "47 elements", "needs 48"],
    );
    let short = &mut complex.slice_mut(1..)?;
    assert_refused(
        forward.forward(&real, short),
        &["output", "31 elements", "needs 32"],
    );
    assert_refused(
        inverse.inverse(short, &mut real),
        &["Plan::inverse", "input", "31 elements"],
    );
    let short = &mut real.slice_mut(2..)?;
    assert_refused(
        inverse.inverse(&mut complex, short),
        &["output", "46 elements", "needs 48"],
    );
    let mut both: Plan<Complex32, Complex32> = plan(&stream, &Shape::new([33]));
    assert_refused(
        both.forward_in_place(&mut complex),
        &["Plan::forward_in_place", "32 elements", "needs 33"],
    );
    assert_refused(
        both.inverse_in_place(&mut complex),
        &["Plan::inverse_in_place"],
    );
    Ok(())
}

#[driver_test]
fn layouts_that_differ_are_refused_in_place(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut data = DeviceBuffer::<Complex32>::zeroed(&stream, 100)?;
    let mut packed: Plan<f32, Complex32> = plan(&stream, &Shape::new([2, 6]));
    assert_refused(
        packed.forward_in_place(&mut data),
        &["layouts do not agree", "Shape::in_place"],
    );
    let mut packed: Plan<Complex32, f32> = plan(&stream, &Shape::new([2, 6]));
    assert_refused(
        packed.inverse_in_place(&mut data),
        &["layouts do not agree", "Shape::in_place"],
    );
    let strided = Shape::new([6]).with_output(Embedding::new([6]).with_stride(2));
    let mut strided: Plan<Complex32, Complex32> = plan(&stream, &strided);
    assert_refused(
        strided.forward_in_place(&mut data),
        &["layouts do not agree", "stride 2"],
    );
    Ok(())
}

#[driver_test]
fn misaligned_real_memory_is_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let real = DeviceBuffer::<f32>::zeroed(&stream, 9)?;
    let mut complex = DeviceBuffer::<Complex32>::zeroed(&stream, 5)?;
    let mut forward: Plan<f32, Complex32> = plan(&stream, &Shape::new([8]));
    let misaligned = &real.slice(1..)?;
    assert_refused(
        forward.forward(misaligned, &mut complex),
        &["misaligned", "8 bytes"],
    );
    Ok(())
}

#[driver_test]
fn misaligned_complex_memory_is_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let memory = DeviceBuffer::<f64>::zeroed(&stream, 9)?;
    let mut other = DeviceBuffer::<f64>::zeroed(&stream, 9)?;
    let mut even = DeviceBuffer::<Complex64>::zeroed(&stream, 4)?;
    let mut real = DeviceBuffer::<f64>::zeroed(&stream, 6)?;
    // Rust's type is aligned to 8 bytes, C's to 16.
    let odd = memory.slice(1..)?;
    let odd = odd.cast::<Complex64>()?;
    let mut odd_mut = other.slice_mut(1..)?;
    let mut odd_mut = odd_mut.cast_mut::<Complex64>()?;
    let mut between: Plan<Complex64, Complex64> = plan(&stream, &Shape::new([4]));
    assert_refused(
        between.forward(&odd, &mut even),
        &["Plan::forward", "input misaligned", "16 bytes"],
    );
    assert_refused(
        between.inverse(&even, &mut odd_mut),
        &["Plan::inverse", "output misaligned", "16 bytes"],
    );
    assert_refused(
        between.forward_in_place(&mut odd_mut),
        &["data misaligned", "16 bytes"],
    );
    let mut inverse: Plan<Complex64, f64> = plan(&stream, &Shape::new([6]));
    assert_refused(
        inverse.inverse(&mut odd_mut, &mut real),
        &["Plan::inverse", "input misaligned", "16 bytes"],
    );
    Ok(())
}

#[simulator_test]
fn library_failures_name_the_function(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut data = DeviceBuffer::<Complex32>::zeroed(&stream, 4)?;
    let mut forward: Plan<Complex32, Complex32> = plan(&stream, &Shape::new([4]));
    simulator.inject(
        Fault::on(Function::cuLaunchKernel).returns(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    );
    let error = forward
        .forward_in_place(&mut data)
        .expect_err("the launch fails");
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.function, "cufftXtExec");
    assert!(
        error.to_string().contains("CUFFT_EXEC_FAILED = 6"),
        "{error}"
    );
    Ok(())
}

#[simulator_test]
fn missing_function_is_named(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut api = <curium_fft::sys::Api as curium_sys::FunctionTable>::EMPTY;
    api.cufftGetProperty = cufft().api().cufftGetProperty;
    // SAFETY: the function is that of the library for simulated devices.
    let library = unsafe { CuFft::from_api(api) }?;
    let error = Plan::<Complex32, Complex32>::new(&library, &stream, &Shape::new([4]))
        .expect_err("it is missing");
    assert!(
        error
            .to_string()
            .starts_with("cufftCreate: missing function"),
        "{error}"
    );
    Ok(())
}
