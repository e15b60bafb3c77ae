//! Bad arguments are errors with their values before the library is called.

use curium_memory::DeviceBuffer;
use curium_rand::{Error, Generator, Philox4x32, Result, ScrambledSobol64, Sobol32, Xorwow};
use curium_sim::{Config, Fault};
use curium_sys::{CUresult, Function};
use curium_tests::{on_driver, on_simulator};

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

#[test]
fn invalid_lengths_are_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 7).expect("memory suffices");
        let mut pseudo = seeded::<Philox4x32>(&stream, 1);
        assert_refused(
            pseudo.normal(&mut buffer, 0.0, 1.0),
            &["Generator::normal", "7 elements", "pairs"],
        );
        assert_refused(
            pseudo.log_normal(&mut buffer, 0.0, 1.0),
            &["Generator::log_normal", "7 elements"],
        );
        pseudo.uniform(&mut buffer).expect("every length is valid");
        let mut quasi = with_dimensions::<Sobol32>(&stream, 3);
        assert_refused(
            quasi.uniform(&mut buffer),
            &["Generator::uniform", "7 elements, 3 dimensions"],
        );
        assert_refused(
            quasi.normal(&mut buffer, 0.0, 1.0),
            &["7 elements, 3 dimensions"],
        );
        let mut part = buffer
            .slice_mut(..3)
            .expect("the buffer has three elements");
        quasi
            .normal(&mut part, 0.0, 1.0)
            .expect("an odd length is valid for a Sobol sequence");
        let mut wide = DeviceBuffer::<u64>::zeroed(&stream, 7).expect("memory suffices");
        let mut quasi = with_dimensions::<ScrambledSobol64>(&stream, 2);
        assert_refused(
            quasi.bits(&mut wide),
            &["Generator::bits", "7 elements, 2 dimensions"],
        );
        assert!(
            buffer
                .to_vec()
                .expect("the context works")
                .iter()
                .all(|number| number.is_finite())
        );
    });
}

#[test]
fn parameters_out_of_range_are_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<f64>::zeroed(&stream, 8).expect("memory suffices");
        let mut generator = seeded::<Xorwow>(&stream, 1);
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
        generator
            .normal(&mut buffer, 5.0, 0.0)
            .expect("a deviation of 0 is valid");
        assert_eq!(buffer.to_vec().expect("it can be read"), [5.0; 8]);
        let mut counts = DeviceBuffer::<u32>::zeroed(&stream, 8).expect("memory suffices");
        for mean in [0.0, -1.0, f64::NAN, 400_001.0, f64::INFINITY] {
            assert_refused(
                generator.poisson(&mut counts, mean),
                &["Generator::poisson", &mean.to_string()],
            );
        }
        generator
            .poisson(&mut counts, 400_000.0)
            .expect("the largest mean is supported");
        for dimensions in [0, 20_001, u32::MAX] {
            let refused = Generator::<Sobol32>::with_dimensions(&curand(), &stream, dimensions);
            assert_refused(refused, &[&dimensions.to_string(), "20000"]);
        }
        let mut points = with_dimensions::<Sobol32>(&stream, 20_000);
        let mut point = DeviceBuffer::<f32>::zeroed(&stream, 20_000).expect("memory suffices");
        points
            .uniform(&mut point)
            .expect("the largest number of dimensions is supported");
        assert_refused(points.set_dimensions(0), &["Generator::set_dimensions"]);
        assert_eq!(points.dimensions(), 20_000);
    });
}

#[test]
fn nothing_is_enqueued_for_empty_memory_or_bad_arguments() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 3).expect("memory suffices");
        let mut generator = seeded::<Xorwow>(&stream, 1);
        let before = simulator.calls(Function::cuLaunchKernel);
        let mut empty = buffer.slice_mut(..0).expect("it may be empty");
        generator
            .uniform(&mut empty)
            .expect("empty memory is valid");
        generator
            .normal(&mut empty, 0.0, 1.0)
            .expect("empty memory is valid");
        assert!(generator.normal(&mut buffer, 0.0, 1.0).is_err());
        assert_eq!(simulator.calls(Function::cuLaunchKernel), before);
        generator.uniform(&mut buffer).expect("the length fits");
        assert_eq!(simulator.calls(Function::cuLaunchKernel), before + 1);
    });
}

#[test]
fn failures_of_the_library_name_the_function() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        let mut generator = seeded::<Xorwow>(&stream, 1);
        simulator.inject(
            Fault::on(Function::cuLaunchKernel)
                .returns(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
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
        generator
            .uniform(&mut buffer)
            .expect("the next one succeeds");
    });
}

#[test]
fn offsets_at_the_end_of_the_sequence_are_valid() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 64).expect("memory suffices");
        let mut generator = seeded::<Philox4x32>(&stream, 1);
        let mut at = |offset| {
            generator.set_offset(offset).expect("every offset is valid");
            generator.bits(&mut buffer).expect("the length fits");
            buffer.to_vec().expect("it can be read")
        };
        let (first, last) = (at(0), at(u64::MAX));
        assert_ne!(first, last, "the offset is applied");
        assert_eq!(at(u64::MAX), last, "the offset determines the numbers");
        assert_eq!(at(0), first);
    });
}
