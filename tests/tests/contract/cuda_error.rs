//! [`CudaError`]: the errors of every crate answer the same questions.
#![cfg(not(miri))]

use std::error::Error as StdError;

use curium::find_error;
use curium_driver::{CudaError, Error, ErrorClass, Function, Library, Returned};
use curium_fft::{Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, UniqueId};
use curium_rand::{Generator, Xorwow};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, kernels, on_simulator, simulator_test};

type Outcome = Result<(), Box<dyn StdError>>;

/// Runs a test on a simulator, and fails with its error.
fn simulate(test: impl FnOnce(&TestDriver, &Simulator) -> Outcome) {
    on_simulator(Config::new(), |driver, simulator| {
        let outcome = test(driver, simulator);
        assert!(outcome.is_ok(), "{outcome:?}");
    });
}

fn run_out_of_memory(simulator: &Simulator, function: Function) {
    simulator.inject(
        Fault::on(function)
            .always()
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
}

/// Asserts the answers of an error that the driver's out-of-memory error of `function` caused, also
/// behind `anyhow`.
#[track_caller]
fn assert_out_of_memory<E: CudaError + Send + Sync + 'static>(error: E, function: Function) {
    assert!(error.is_out_of_memory(), "{error}");
    assert!(!error.is_sticky(), "{error}");
    assert_eq!(error.class(), ErrorClass::Resource);
    let cause = error.driver_error().expect("the driver's error");
    assert_eq!(cause.function(), Some(function));

    let error = anyhow::Error::new(error).context("the training failed");
    let in_chain = error
        .chain()
        .find_map(|error| error.downcast_ref::<Error>())
        .expect("the chain contains the driver's error");
    assert_eq!(in_chain.function(), Some(function));
    let answers = find_error(error.as_ref()).expect("the chain contains an error of Curium");
    assert!(answers.is_out_of_memory(), "{error:#}");
}

#[test]
fn memory_reports_out_of_memory() {
    simulate(|test, simulator| {
        let stream = test.stream();
        run_out_of_memory(simulator, Function::cuMemAllocAsync);
        let error = DeviceBuffer::<u8>::zeroed(&stream, 64).expect_err("memory is exhausted");
        assert!(
            error
                .operands()
                .is_some_and(|text| text.contains("64 bytes"))
        );
        assert_out_of_memory(error, Function::cuMemAllocAsync);
        Ok(())
    });
}

#[test]
fn blas_reports_out_of_memory() {
    simulate(|test, simulator| {
        let mut blas = curium_blas::Blas::new(&curium_sim_libraries::cublas(), &test.stream())?;
        run_out_of_memory(simulator, Function::cuMemAllocAsync);
        let error = blas
            .set_workspace(1 << 20)
            .expect_err("memory is exhausted");
        assert_out_of_memory(error, Function::cuMemAllocAsync);
        Ok(())
    });
}

#[test]
fn fft_reports_out_of_memory() {
    simulate(|test, simulator| {
        let library = curium_sim_libraries::cufft();
        let stream = test.stream();
        run_out_of_memory(simulator, Function::cuMemAllocAsync);
        let shape = Shape::new([1009]);
        let plan =
            Plan::<curium_fft::Complex32, curium_fft::Complex32>::new(&library, &stream, &shape);
        let error = plan.map(drop).expect_err("memory is exhausted");
        assert_out_of_memory(error, Function::cuMemAllocAsync);
        Ok(())
    });
}

#[test]
fn rand_reports_out_of_memory() {
    simulate(|test, simulator| {
        let library = curium_sim_libraries::curand();
        let stream = test.stream();
        run_out_of_memory(simulator, Function::cuCtxPushCurrent_v2);
        let generator = Generator::<Xorwow>::seeded(&library, &stream, 7);
        simulator.clear_faults();
        let error = generator.map(drop).expect_err("memory is exhausted");
        assert_out_of_memory(error, Function::cuCtxPushCurrent_v2);
        Ok(())
    });
}

#[test]
fn nccl_reports_out_of_memory() {
    simulate(|test, simulator| {
        let library = curium_sim_libraries::nccl();
        let context = test.context();
        let id = UniqueId::new(&library)?;
        run_out_of_memory(simulator, Function::cuCtxPushCurrent_v2);
        let communicator = Communicator::new(&library, &context, id, 0, 1);
        simulator.clear_faults();
        let error = communicator.map(drop).expect_err("memory is exhausted");
        assert_out_of_memory(error, Function::cuCtxPushCurrent_v2);
        Ok(())
    });
}

#[test]
fn nvrtc_reports_out_of_memory() {
    simulate(|test, simulator| {
        run_out_of_memory(simulator, Function::cuLibraryLoadData);
        let library = Library::from_ptx(test.driver(), kernels::FILL);
        let error = library.map(drop).expect_err("memory is exhausted");
        assert_out_of_memory(
            curium::nvrtc::Error::from(error),
            Function::cuLibraryLoadData,
        );
        Ok(())
    });
}

/// The codes of the libraries count too, although the driver returned no error.
#[test]
fn library_codes_of_exhaustion() {
    use curium_blas::sys::cublasStatus_t;
    use curium_driver::LibraryStatus;
    use curium_fft::sys::cufftResult;
    use curium_rand::sys::curandStatus_t;

    let codes: [(&dyn LibraryStatus, &dyn LibraryStatus); 3] = [
        (
            &cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED,
            &cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE,
        ),
        (
            &cufftResult::CUFFT_ALLOC_FAILED,
            &cufftResult::CUFFT_INVALID_SIZE,
        ),
        (
            &curandStatus_t::CURAND_STATUS_ALLOCATION_FAILED,
            &curandStatus_t::CURAND_STATUS_OUT_OF_RANGE,
        ),
    ];
    for (exhausted, misused) in codes {
        assert!(exhausted.is_out_of_memory(), "{exhausted:?}");
        assert_eq!(exhausted.class(), ErrorClass::Resource);
        assert!(!misused.is_out_of_memory(), "{misused:?}");
        assert_eq!(misused.class(), ErrorClass::Usage);
    }
}

/// A lost context is visible in the error of a library that was called next.
#[simulator_test]
fn libraries_report_a_lost_context(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    simulator.inject(
        Fault::on(Function::cuStreamSynchronize)
            .once()
            .returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    );
    let error = stream.synchronize().expect_err("the fault is injected");
    let error = curium_blas::Error::from(error);
    assert!(error.is_sticky() && error.is_from_earlier_work(), "{error}");
    let hint = CudaError::hint(&error).ok_or("no hint")?;
    assert!(hint.contains("Simulator::reports"), "{hint}");
    assert!(!hint.contains("or the simulator"), "{hint}");
    Ok(())
}

/// Argument errors carry their hints in the text, and errors with a value those of the error.
#[test]
fn argument_errors_have_hints() {
    let error = Error::argument("Net::run", "empty batch (0 rows); pass a row");
    assert_eq!(CudaError::hint(&error).as_deref(), Some("pass a row"));
    let returned = Returned::new((), error);
    assert!(returned.source().is_some_and(<dyn StdError>::is::<Error>));
    assert_eq!(CudaError::hint(&returned).as_deref(), Some("pass a row"));
}
