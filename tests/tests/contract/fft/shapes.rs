//! Shapes as programs use them: columns of matrices, windows of signals, and streams that wait for each other.

use curium_fft::sys::{cudaDataType, cufftResult};
use curium_fft::{Complex32, Complex64, Embedding, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::{on_driver, on_simulator};

use super::{cufft, plan};

#[test]
fn overlapping_windows_of_a_signal_are_transformed_at_once() {
    on_driver(|test| {
        let stream = test.stream();
        // Windows of 8 elements, 4 apart: 3 fit 16 elements.
        let windows = Shape::new([8])
            .with_batches(3)
            .with_input(Embedding::new([8]).with_distance(4));
        let mut windows: Plan<f64, Complex64> = plan(&stream, &windows);
        assert_eq!((windows.input_len(), windows.output_len()), (16, 15));
        let signal: Vec<f64> = (0..16).map(f64::from).collect();
        let signal = DeviceBuffer::from_slice(&stream, &signal).expect("memory suffices");
        let mut spectra = DeviceBuffer::<Complex64>::zeroed(&stream, 15).expect("memory suffices");
        windows
            .forward(&signal, &mut spectra)
            .expect("the memory fits");
        let spectra = spectra.to_vec().expect("it can be read");
        let sums = [28.0, 60.0, 92.0];
        assert!(
            (0..3).all(|window| (spectra[window * 5].re - sums[window]).abs() < 1e-9),
            "{spectra:?}"
        );
    });
}

#[test]
fn inverse_to_real_numbers_may_overwrite_its_input_alone() {
    on_driver(|test| {
        let stream = test.stream();
        let mut inverse: Plan<Complex32, f32> = plan(&stream, &Shape::new([4, 4]));
        let mut spectrum = DeviceBuffer::<Complex32>::zeroed(&stream, 24).expect("memory suffices");
        spectrum
            .slice_mut(12..13)
            .and_then(|mut at| at.fill(Complex32::from(1.0)))
            .expect("the fill is enqueued");
        let mut image = DeviceBuffer::<f32>::zeroed(&stream, 20).expect("memory suffices");
        let mut half = spectrum.slice_mut(12..).expect("it is in range");
        inverse
            .inverse(
                &mut half,
                &mut image.slice_mut(..16).expect("it is in range"),
            )
            .expect("the memory fits");
        let image = image.to_vec().expect("it can be read");
        assert_eq!(
            (&image[..16], &image[16..]),
            ([1.0; 16].as_slice(), [0.0; 4].as_slice())
        );
        assert_eq!(
            spectrum.to_vec().expect("it can be read")[..12],
            [Complex32::from(0.0); 12]
        );
    });
}

#[test]
fn plans_move_to_other_threads_and_streams_wait_for_each_other() {
    on_simulator(Config::new().with_race_checks(true), |test, simulator| {
        let (stream, other) = (test.stream(), test.stream());
        let mut forward: Plan<Complex64, Complex64> = plan(&other, &Shape::new([64]));
        assert!(forward.workspace_bytes() > 0);
        let mut data = DeviceBuffer::<Complex64>::zeroed(&stream, 64).expect("memory suffices");
        data.slice_mut(..1)
            .and_then(|mut at| at.fill(Complex64::from(1.0)))
            .expect("the fill is enqueued");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..2).for_each(|_| {
                    forward
                        .forward_in_place(&mut data)
                        .expect("the memory fits");
                });
            });
        });
        let data = data.to_vec().expect("it can be read");
        assert!(
            (data[0].re - 64.0).abs() < 1e-9 && data[1..].iter().all(|number| number.norm() < 1e-9),
            "{data:?}"
        );
        assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    });
}

#[test]
fn plan_that_is_dropped_leaves_its_workspace_to_the_work() {
    on_simulator(Config::new().with_race_checks(true), |test, simulator| {
        // The buffers are freed on another stream, which must wait.
        let (stream, other) = (test.stream(), test.stream());
        let data = DeviceBuffer::from_slice(&other, &[Complex64::from(1.0); 1024])
            .expect("memory suffices");
        let mut result = DeviceBuffer::<Complex64>::zeroed(&stream, 1024).expect("memory suffices");
        let mut forward = Plan::<Complex64, Complex64>::new(&cufft(), &stream, &Shape::new([1024]))
            .expect("a plan");
        forward
            .forward(&data, &mut result)
            .expect("the memory fits");
        drop((forward, data));
        assert_eq!(
            result.to_vec().expect("it can be read")[0],
            Complex64::from(1024.0)
        );
        assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    });
}

#[test]
fn raw_plans_are_taken_over() {
    on_driver(|test| {
        let (stream, library) = (test.stream(), cufft());
        let (create, make) = (library.api().cufftCreate, library.api().cufftXtMakePlanMany);
        let (create, make) = (
            create.expect("every version has it"),
            make.expect("every version has it"),
        );
        let (mut raw, mut bytes, mut length, kind) = (0, 0, 4, cudaDataType::CUDA_C_64F);
        let none = std::ptr::null_mut();
        let made = test.context().entered(|_| {
            // SAFETY: `raw` is valid for writes, and the context is current.
            let created = unsafe { create(&raw mut raw) };
            let (length, bytes) = (&raw mut length, &raw mut bytes);
            // SAFETY: the plan is live, there is one length for one dimension, and `bytes` is valid for writes.
            let made = unsafe {
                make(
                    raw, 1, length, none, 1, 4, kind, none, 1, 4, kind, 1, bytes, kind,
                )
            };
            Ok([created, made])
        });
        assert_eq!(
            made.expect("it can be current"),
            [cufftResult::CUFFT_SUCCESS; 2]
        );
        // SAFETY: the plan has this shape, and nothing else uses it.
        let plan = unsafe {
            Plan::<Complex64, Complex64>::from_raw(&library, raw, &stream, &Shape::new([4]))
        };
        let mut plan = plan.expect("the stream can be set");
        assert_eq!((plan.as_raw(), plan.workspace_bytes()), (raw, 0));
        let mut data =
            DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4]).expect("memory suffices");
        plan.forward_in_place(&mut data).expect("the memory fits");
        assert_eq!(
            data.to_vec().expect("it can be read")[0],
            Complex64::from(4.0)
        );
        drop(plan);
        if test.simulator().is_some() {
            // SAFETY: the simulated library finds plans that are not live.
            let code = unsafe { library.api().cufftDestroy.expect("every version has it")(raw) };
            assert_eq!(
                code,
                cufftResult::CUFFT_INVALID_PLAN,
                "it is destroyed once"
            );
        }
    });
}
