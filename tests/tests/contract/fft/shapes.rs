//! Shapes as programs use them: columns of matrices, windows of signals, and streams that wait for
//! each other.

use curium_fft::sys::{cudaDataType, cufftResult};
use curium_fft::{Complex32, Complex64, Embedding, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{cufft, plan};

/// Overlapping Windows of a signal are transformed at once.
#[driver_test]
fn overlapping_windows_are_transformed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    // Windows of 8 elements, 4 apart: 3 fit 16 elements.
    let windows = Shape::new([8])
        .with_batches(3)
        .with_input(Embedding::new([8]).with_distance(4));
    let mut windows: Plan<f64, Complex64> = plan(&stream, &windows);
    assert_eq!((windows.input_len(), windows.output_len()), (16, 15));
    let signal: Vec<f64> = (0..16).map(f64::from).collect();
    let signal = DeviceBuffer::from_slice(&stream, &signal)?;
    let mut spectra = DeviceBuffer::<Complex64>::zeroed(&stream, 15)?;
    windows.forward(&signal, &mut spectra)?;
    let spectra = spectra.to_vec()?;
    let sums = [28.0, 60.0, 92.0];
    assert!(
        (0..3).all(|window| (spectra[window * 5].re - sums[window]).abs() < 1e-9),
        "{spectra:?}"
    );
    Ok(())
}

/// An inverse to real numbers may overwrite its input alone.
#[driver_test]
fn only_real_inverse_may_overwrite_its_input(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut inverse: Plan<Complex32, f32> = plan(&stream, &Shape::new([4, 4]));
    let mut spectrum = DeviceBuffer::<Complex32>::zeroed(&stream, 24)?;
    spectrum
        .slice_mut(12..13)
        .and_then(|mut slice| slice.fill(Complex32::from(1.0)))?;
    let mut image = DeviceBuffer::<f32>::zeroed(&stream, 20)?;
    let mut half = spectrum.slice_mut(12..)?;
    inverse.inverse(&mut half, &mut image.slice_mut(..16)?)?;
    let image = image.to_vec()?;
    assert_eq!(
        (&image[..16], &image[16..]),
        ([1.0; 16].as_slice(), [0.0; 4].as_slice())
    );
    assert_eq!(spectrum.to_vec()?[..12], [Complex32::from(0.0); 12]);
    Ok(())
}

/// Plans move to other threads and streams wait for each other.
#[simulator_test(Config::new().with_race_checks(true))]
fn plans_move_between_threads(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut forward: Plan<Complex64, Complex64> = plan(&other, &Shape::new([64]));
    assert!(forward.workspace_bytes() > 0);
    let mut data = DeviceBuffer::<Complex64>::zeroed(&stream, 64)?;
    data.slice_mut(..1)
        .and_then(|mut slice| slice.fill(Complex64::from(1.0)))?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..2).for_each(|_| {
                forward
                    .forward_in_place(&mut data)
                    .expect("the memory fits");
            });
        });
    });
    let data = data.to_vec()?;
    assert!(
        (data[0].re - 64.0).abs() < 1e-9 && data[1..].iter().all(|number| number.norm() < 1e-9),
        "{data:?}"
    );
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

/// A plan that is dropped leaves its workspace to the work.
#[simulator_test(Config::new().with_race_checks(true))]
fn dropped_plan_leaves_its_workspace_to_the_work(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    // The buffers are freed on another stream, which must wait.
    let stream = test.stream();
    let other = test.stream();
    let data = DeviceBuffer::from_slice(&other, &[Complex64::from(1.0); 1024])?;
    let mut result = DeviceBuffer::<Complex64>::zeroed(&stream, 1024)?;
    let mut forward = Plan::<Complex64, Complex64>::new(&cufft(), &stream, &Shape::new([1024]))?;
    forward.forward(&data, &mut result)?;
    drop((forward, data));
    assert_eq!(result.to_vec()?[0], Complex64::from(1024.0));
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

#[driver_test]
fn raw_plans_are_taken_over(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let library = cufft();
    let create = library.api().cufftCreate;
    let make = library.api().cufftXtMakePlanMany;
    let create = create.ok_or("no `cufftCreate`")?;
    let make = make.ok_or("no `cufftXtMakePlanMany`")?;
    let mut raw = 0;
    let mut bytes = 0;
    let mut length = 4;
    let kind = cudaDataType::CUDA_C_64F;
    let none = std::ptr::null_mut();
    let outcome = test.context().entered(|_| {
        // SAFETY: `raw` is valid for writes, and the context is current.
        let created = unsafe { create(&raw mut raw) };
        let length = &raw mut length;
        let bytes = &raw mut bytes;
        // SAFETY: the plan is live, there is one length for one dimension, and `bytes` is valid for
        // writes.
        let outcome = unsafe {
            make(
                raw, 1, length, none, 1, 4, kind, none, 1, 4, kind, 1, bytes, kind,
            )
        };
        Ok([created, outcome])
    });
    assert_eq!(outcome?, [cufftResult::CUFFT_SUCCESS; 2]);
    // SAFETY: the plan has this shape, and nothing else uses it.
    let mut plan = unsafe {
        Plan::<Complex64, Complex64>::from_raw(&library, raw, &stream, &Shape::new([4]))
    }?;
    assert_eq!((plan.as_raw(), plan.workspace_bytes()), (raw, 0));
    let mut data = DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4])?;
    plan.forward_in_place(&mut data)?;
    assert_eq!(data.to_vec()?[0], Complex64::from(4.0));
    drop(plan);
    if test.simulator().is_some() {
        // SAFETY: the simulated library finds plans that are not live.
        let code = unsafe { library.api().cufftDestroy.ok_or("no `cufftDestroy`")?(raw) };
        assert_eq!(
            code,
            cufftResult::CUFFT_INVALID_PLAN,
            "it is destroyed once"
        );
    }
    Ok(())
}
