//! [`Error`]: messages and fields.

use curium_driver::{CallError, Error, ErrorClass, Function};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{TestDriver, TestResult, on_simulator, simulator_test};

/// Returns the error of a call that returns `code`.
fn failed(test: &TestDriver, simulator: &Simulator, code: u32) -> Error {
    let stream = test.stream();
    simulator.inject(Fault::on(Function::cuStreamSynchronize).returns(CUresult(code)));
    stream.synchronize().expect_err("the call fails")
}

#[simulator_test]
fn error_names_call_code_and_sentence(test: &TestDriver, simulator: &Simulator) {
    let error = failed(test, simulator, CUresult::CUDA_ERROR_INVALID_VALUE.0);
    let text = error.to_string();
    assert_eq!(
        text,
        "cuStreamSynchronize: invalid argument (CUDA_ERROR_INVALID_VALUE = 1)"
    );
    assert_eq!(error.class(), ErrorClass::Usage);
    let Error::Call(call) = error else {
        panic!("{text}")
    };
    let CallError {
        function,
        code,
        subject,
        log,
        ..
    } = &*call;
    assert_eq!(
        (*function, *code),
        (
            Function::cuStreamSynchronize,
            CUresult::CUDA_ERROR_INVALID_VALUE
        )
    );
    assert_eq!((&**subject, log), ("", &None));
}

#[simulator_test]
fn debug_is_the_text_with_hints_on_separate_lines(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let error = failed(test, simulator, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU.0);
    let text = error.to_string();
    let debug = format!("{error:?}");
    let hint = error.hint().ok_or("no hint")?;
    let problem = text
        .strip_suffix(&format!("; {hint}"))
        .ok_or("the message does not end with the hint")?;
    assert_eq!(debug, format!("{problem}\n  hint: {hint}"));
    let refused = DeviceBuffer::<[u8; 0]>::zeroed(&test.stream(), 1)
        .expect_err("elements without bytes were allocated");
    assert_eq!(format!("{refused:?}"), refused.to_string());
    Ok(())
}

#[test]
fn code_debug_output_is_its_name() {
    assert_eq!(
        format!("{:?}", CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
        "CUDA_ERROR_ILLEGAL_ADDRESS"
    );
    assert_eq!(
        format!("{:?}", Some(CUresult(123_456))),
        "Some(CUresult(123456))"
    );
}

/// Programs print errors as text when main returns them and when they unwrap.
///
/// The output of a program whose `main` returns the error of loading a driver, and of one that
/// unwraps it.
#[cfg(not(miri))]
#[test]
#[expect(clippy::unwrap_used, reason = "the test checks the output")]
fn programs_print_errors_as_text() {
    use curium_driver::Driver;
    use std::process::Termination;

    let load = || {
        // SAFETY: the library does not exist, so none of its code runs.
        unsafe { Driver::load_from("/nowhere/libcuda.so.1") }
    };
    let run = || {
        let main = || -> Result<(), Box<dyn std::error::Error>> { Ok(load().map(drop)?) };
        // The output of the runtime for a returned error.
        main().report();
        std::panic::catch_unwind(|| load().map(drop).unwrap())
            .expect_err("there is no such library");
    };
    curium_tests::with_output_of_new_process(run, |_, text| {
        let attempt = "\n  /nowhere/libcuda.so.1: ";
        let [printed, panic] =
            ["Error: ", "`Result::unwrap()` on an `Err` value: "].map(|before| {
                text.split_once(before)
                    .unwrap_or_else(|| panic!("{before:?} is not in {text}"))
                    .1
            });
        for text in [printed, panic] {
            assert!(
                text.starts_with(&format!("no CUDA driver could be loaded; tried{attempt}")),
                "{text}"
            );
            assert!(text.contains("\nto fix it: "), "{text}");
        }
        assert!(!text.contains("Attempt"), "{text}");
    });
}

/// An error of earlier work names the work first and the call that reported it.
#[simulator_test]
fn asynchronous_error_names_the_earlier_work(test: &TestDriver, simulator: &Simulator) {
    let stream = test.stream();
    simulator.inject(
        Fault::on(Function::cuStreamIsCapturing).returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    );
    let error = stream.is_capturing().expect_err("the call fails");
    let text = error.to_string();
    let expected = "earlier work on this context failed: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS = \
                        700); reported by cuStreamIsCapturing; the context is lost";
    assert!(text.starts_with(expected), "{text}");
    assert!(error.is_from_earlier_work());
    assert_eq!(error.function(), Some(Function::cuStreamIsCapturing));
    let error = failed(test, simulator, CUresult::CUDA_ERROR_INVALID_VALUE.0);
    assert!(!error.is_from_earlier_work(), "{error}");
}

#[test]
fn invalid_ptx_is_a_usage_error() {
    assert_eq!(
        ErrorClass::of(CUresult::CUDA_ERROR_INVALID_PTX),
        ErrorClass::Usage
    );
}

#[simulator_test]
fn allocation_error_reports_the_size(test: &TestDriver, simulator: &Simulator) {
    let stream = test.stream();
    simulator
        .inject(Fault::on(Function::cuMemAllocAsync).returns(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    let error = DeviceBuffer::<u16>::zeroed(&stream, 500).expect_err("the call fails");
    let text = error.to_string();
    assert!(
        text.starts_with(
            "cuMemAllocAsync: operation not supported (1000 bytes, CUDA_ERROR_NOT_SUPPORTED = 801)"
        ),
        "{text}"
    );
    assert_eq!(error.class(), ErrorClass::System);
}

#[simulator_test]
fn newer_driver_codes_are_sound(test: &TestDriver, simulator: &Simulator) {
    let error = failed(test, simulator, 123_456);
    assert_eq!(error.code(), Some(CUresult(123_456)));
    assert_eq!(error.class(), ErrorClass::Unknown);
    let text = error.to_string();
    assert!(
        text.starts_with("cuStreamSynchronize: unknown error (code 123456)"),
        "{text}"
    );
}

#[simulator_test]
fn errors_are_sticky_exactly_if_the_context_is_lost(test: &TestDriver, simulator: &Simulator) {
    for code in [700, 714, 715, 716, 717, 718, 719, 702, 710] {
        let error = failed(test, simulator, code);
        assert!(error.is_sticky(), "{error}");
        assert!(error.to_string().contains("the context is lost"), "{error}");
    }
    for code in [1, 2, 100, 200, 201, 218, 400, 709, 720, 801, 900, 999] {
        let error = failed(test, simulator, code);
        assert!(!error.is_sticky(), "{error}");
        assert!(
            !error.to_string().contains("the context is lost"),
            "{error}"
        );
    }
}

#[simulator_test]
fn not_ready_is_an_answer_and_no_error(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    simulator.inject(Fault::on(Function::cuStreamQuery).returns(CUresult::CUDA_ERROR_NOT_READY));
    assert!(!stream.is_finished()?);
    simulator
        .inject(Fault::on(Function::cuStreamQuery).returns(CUresult::CUDA_ERROR_INVALID_HANDLE));
    stream.is_finished().expect_err("this is an error");
    Ok(())
}

#[test]
fn errors_travel_between_threads() {
    const fn is_portable<T: Send + Sync + std::error::Error + 'static>() {}
    const { is_portable::<Error>() };
    on_simulator(Config::new(), |test, simulator| {
        let error = failed(test, simulator, 2);
        let text = std::thread::spawn(move || error.to_string())
            .join()
            .expect("the thread does not panic");
        assert!(text.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{text}");
    });
}

/// A missing function is an error that names it and nothing leaks.
#[simulator_test(Config::new().without(Function::cuMemAllocAsync))]
fn missing_function_is_named_without_leaks(test: &TestDriver, _: &Simulator) {
    let error =
        DeviceBuffer::<u8>::zeroed(&test.stream(), 8).expect_err("the driver lacks the function");
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_eq!(error.function(), Some(Function::cuMemAllocAsync));
    assert_eq!(
        error.to_string(),
        format!(
            "the driver for CUDA {} lacks cuMemAllocAsync, which CUDA 11.2 introduced",
            CudaVersion::NEWEST_KNOWN
        )
    );
    assert_eq!(error.code(), None);
}

/// Handles of different drivers are refused before any driver call.
#[simulator_test]
fn mixed_drivers_are_refused_without_calls(first: &TestDriver, _: &Simulator) -> TestResult {
    on_simulator(Config::new(), |second, simulator| -> TestResult {
        use curium_driver::{Event, EventFlags};
        let event = Event::new(&first.context(), EventFlags::empty())?;
        let first_stream = first.stream();
        let foreign = second.stream();
        let mut target = DeviceBuffer::from_slice(&foreign, &[1_u32; 4])?;
        let source = DeviceBuffer::from_slice(&first_stream, &[2_u32; 4])?;
        let total = || {
            Function::all()
                .map(|function| simulator.calls(function))
                .sum::<u64>()
        };
        let before = total();
        for error in [
            event
                .record(&foreign)
                .expect_err("the stream belongs to other code"),
            foreign
                .wait_event(&event)
                .expect_err("the event belongs to other code"),
            target
                .copy_from_device(&source)
                .expect_err("the source belongs to another context"),
            curium_tests::stream_work::fill(&first_stream, &mut target, 1)
                .expect_err("the buffer belongs to another context"),
        ] {
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(error.to_string().contains("different drivers"), "{error}");
        }
        assert_eq!(total(), before);
        assert_eq!(target.to_vec()?, [1; 4]);
        Ok(())
    })?;
    Ok(())
}
