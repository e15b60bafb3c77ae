//! Bad arguments are errors with their values before the library is called.

use curium_memory::DeviceBuffer;
use curium_rand::{Error, Generator, Philox4x32, Result, ScrambledSobol64, Sobol32, Xorwow};
use curium_sim::{Fault, Simulator};
use curium_sys::{CUresult, Function};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{curand, seeded, with_dimensions};

#[track_caller]
fn assert_refused<T>(result: Result<T>, parts: &[&str]) {
    let Err(Error::Argument(error)) = result else {
        panic!("the arguments are not refused")
    };
    let text = error.to_string();
    assert!(
        parts.iter().all(|part| text.contains(part)),
        "{text} without one of {parts:?}"
    );
}

#[driver_test]
fn invalid_lengths_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 7)?;
    let mut pseudo = seeded::<Philox4x32>(&stream, 1)?;
    assert_refused(
        pseudo.normal(&mut buffer, 0.0, 1.0),
        &["Generator::normal", "7 elements", "pairs"],
    );
    assert_refused(
        pseudo.log_normal(&mut buffer, 0.0, 1.0),
        &["Generator::log_normal", "7 elements"],
    );
    pseudo.uniform(&mut buffer)?;
    let mut quasi = with_dimensions::<Sobol32>(&stream, 3)?;
    assert_refused(
        quasi.uniform(&mut buffer),
        &["Generator::uniform", "7 elements, 3 dimensions"],
    );
    assert_refused(
        quasi.normal(&mut buffer, 0.0, 1.0),
        &["7 elements, 3 dimensions"],
    );
    let mut part = buffer.slice_mut(..3)?;
    quasi.normal(&mut part, 0.0, 1.0)?;
    let mut wide = DeviceBuffer::<u64>::zeroed(&stream, 7)?;
    let mut quasi = with_dimensions::<ScrambledSobol64>(&stream, 2)?;
    assert_refused(
        quasi.bits(&mut wide),
        &["Generator::bits", "7 elements, 2 dimensions"],
    );
    assert!(buffer.to_vec()?.iter().all(|number| number.is_finite()));
    Ok(())
}

#[driver_test]
fn invalid_parameters_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f64>::zeroed(&stream, 8)?;
    let mut generator = seeded::<Xorwow>(&stream, 1)?;
    for (mean, deviation) in [
        (0.0, -1.0),
        (f64::NAN, 1.0),
        (0.0, f64::NAN),
        (f64::INFINITY, 1.0),
    ] {
        assert_refused(
            generator.normal(&mut buffer, mean, deviation),
            &[&mean.to_string(), &deviation.to_string()],
        );
        assert_refused(
            generator.log_normal(&mut buffer, mean, deviation),
            &["Generator::log_normal"],
        );
    }
    generator.normal(&mut buffer, 5.0, 0.0)?;
    assert_eq!(buffer.to_vec()?, [5.0; 8]);
    let mut counts = DeviceBuffer::<u32>::zeroed(&stream, 8)?;
    for mean in [0.0, -1.0, f64::NAN, 400_001.0, f64::INFINITY] {
        assert_refused(
            generator.poisson(&mut counts, mean),
            &["Generator::poisson", &mean.to_string()],
        );
    }
    generator.poisson(&mut counts, 400_000.0)?;
    for dimensions in [0, 20_001, u32::MAX] {
        let refused = Generator::<Sobol32>::with_dimensions(&curand(), &stream, dimensions);
        assert_refused(refused, &[&dimensions.to_string(), "20000"]);
    }
    let mut points = with_dimensions::<Sobol32>(&stream, 20_000)?;
    let mut point = DeviceBuffer::<f32>::zeroed(&stream, 20_000)?;
    points.uniform(&mut point)?;
    assert_refused(points.set_dimensions(0), &["Generator::set_dimensions"]);
    assert_eq!(points.dimensions(), 20_000);
    Ok(())
}

/// Nothing is enqueued for empty memory or bad arguments.
#[simulator_test]
fn invalid_arguments_enqueue_nothing(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 3)?;
    let mut generator = seeded::<Xorwow>(&stream, 1)?;
    let before = simulator.calls(Function::cuLaunchKernel);
    let mut empty = buffer.slice_mut(..0)?;
    generator.uniform(&mut empty)?;
    generator.normal(&mut empty, 0.0, 1.0)?;
    assert!(generator.normal(&mut buffer, 0.0, 1.0).is_err());
    assert_eq!(simulator.calls(Function::cuLaunchKernel), before);
    generator.uniform(&mut buffer)?;
    assert_eq!(simulator.calls(Function::cuLaunchKernel), before + 1);
    Ok(())
}

#[simulator_test]
fn library_failures_name_the_function(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
    let mut generator = seeded::<Xorwow>(&stream, 1)?;
    simulator.inject(
        Fault::on(Function::cuLaunchKernel).returns(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    );
    let error = generator
        .uniform(&mut buffer)
        .expect_err("the launch fails");
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.function, "curandGenerateUniform");
    assert!(
        error
            .to_string()
            .contains("CURAND_STATUS_LAUNCH_FAILURE = 201"),
        "{error}"
    );
    generator.uniform(&mut buffer)?;
    Ok(())
}

#[driver_test]
fn offsets_at_the_sequence_end_are_valid(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
    let mut generator = seeded::<Philox4x32>(&stream, 1)?;
    let mut fill_at = |offset| -> TestResult<_> {
        generator.set_offset(offset)?;
        generator.bits(&mut buffer)?;
        Ok(buffer.to_vec()?)
    };
    let first = fill_at(0)?;
    let last = fill_at(u64::MAX)?;
    assert_ne!(first, last, "the offset is applied");
    assert_eq!(
        fill_at(u64::MAX)?,
        last,
        "the offset determines the numbers"
    );
    assert_eq!(fill_at(0)?, first);
    Ok(())
}
