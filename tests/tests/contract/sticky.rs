//! Sticky errors: once a synchronization has reported one, every later call does, and nothing hangs
//! or panics.
//!
//! The simulator reports a failed kernel with the first synchronization. A GPU raises an interrupt,
//! which the driver handles asynchronously: after a misaligned access, the grid may end and a
//! synchronization succeed before the driver has received the error.
//!
//! On a real driver the rest of the process is unusable afterwards, so each of these tests runs in
//! a process of its own.
#![cfg(not(miri))]

use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Error, Kernel, LaunchConfig, Library, Signature, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, in_own_process, kernels, on_driver, simulator_test};

/// The time in which a driver reports the failure of a kernel that has ended.
const PATIENCE: Duration = Duration::from_secs(10);

fn faulty<S: Signature>(test: &TestDriver, name: &str) -> TestResult<Kernel<S>> {
    let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
    Ok(library.kernel(name)?)
}

#[track_caller]
fn assert_sticky(error: &Error, code: CUresult) {
    assert_eq!(error.code(), Some(code), "{error}");
    assert!(error.is_sticky(), "{error}");
    assert!(error.to_string().contains("the context is lost"), "{error}");
}

/// Synchronizes until the failure of the kernel on `stream` is reported.
#[track_caller]
fn wait_for_failure(test: &TestDriver, stream: &Stream) -> Error {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match stream.synchronize() {
            Err(error) => return error,
            Ok(()) if test.simulator().is_some() => {
                panic!("the first synchronization reports the kernel")
            }
            Ok(()) => assert!(
                Instant::now() < deadline,
                "the failure of the kernel is not reported"
            ),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Asserts the state after a kernel that fails with `code` was launched on `stream`, before any
/// synchronization.
fn assert_context_is_lost(
    test: &TestDriver,
    buffer: DeviceBuffer<u32>,
    code: CUresult,
) -> TestResult {
    let stream = buffer.stream().clone();
    assert_sticky(&wait_for_failure(test, &stream), code);
    assert_sticky(&stream.synchronize().expect_err("the error stays"), code);
    assert_sticky(
        &stream.context().synchronize().expect_err("the error stays"),
        code,
    );
    assert_sticky(
        &buffer.to_vec().expect_err("nothing can be read any more"),
        code,
    );
    assert_sticky(
        &DeviceBuffer::<u8>::zeroed(&stream, 8).expect_err("nothing can be allocated any more"),
        code,
    );
    let again = test
        .device()
        .primary_context()
        .and_then(|context| context.synchronize());
    assert_sticky(
        &again.expect_err("retaining it again does not reset it"),
        code,
    );
    let (buffer, error) = buffer
        .close()
        .expect_err("nothing can be freed any more")
        .into_parts();
    assert_sticky(&error, code);
    test.device().name()?;
    // The simulator can reset the error, after which everything is freed as usual.
    if let Some(simulator) = test.simulator() {
        simulator.reset_errors();
    }
    drop(buffer);
    Ok(())
}

#[test]
fn out_of_bounds_ends_the_context() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let write_at = faulty::<(&mut [u32], u64, u32)>(test, "write_at")?;
            let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
            // SAFETY: the kernel writes out of bounds at a distance that the device detects: no
            // memory of this program is changed.
            let launched = unsafe {
                write_at.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 1 << 42, 1))
            };
            launched?;
            assert_context_is_lost(test, buffer, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[test]
fn misaligned_ends_the_context() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let write = faulty::<(&mut [u8], u32)>(test, "write_misaligned")?;
            let mut bytes = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
            let buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
            // SAFETY: the kernel makes a misaligned write within the buffer, which the device
            // rejects.
            unsafe { write.launch(&stream, LaunchConfig::new(1, 1), (&mut bytes, 1)) }?;
            assert_context_is_lost(test, buffer, CUresult::CUDA_ERROR_MISALIGNED_ADDRESS)?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[test]
fn trap_ends_the_context() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let trap = faulty::<(u32,)>(test, "trap")?;
            let buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
            // SAFETY: the kernel accesses no memory.
            unsafe { trap.launch(&stream, LaunchConfig::new(1, 1), (0,)) }?;
            stream.synchronize()?;
            // SAFETY: the kernel accesses no memory.
            unsafe { trap.launch(&stream, LaunchConfig::new(1, 1), (1,)) }?;
            assert_context_is_lost(test, buffer, CUresult::CUDA_ERROR_LAUNCH_FAILED)?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A faulting kernel is reported and the program continues if configured.
#[simulator_test(Config::new().with_checks(Checks::Report))]
fn program_continues_after_a_configured_fault(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let write_at = faulty::<(&mut [u32], u64, u32)>(test, "write_at")?;
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
    for index in [4, 2] {
        // SAFETY: the kernel writes at most one element out of bounds, which the simulator detects.
        unsafe { write_at.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, index, 7)) }?;
    }
    assert_eq!(buffer.to_vec()?, [0, 0, 7, 0]);
    let faults = simulator.reports();
    let [fault] = &faults[..] else {
        panic!("exactly one launch failed: {faults:?}")
    };
    let end = buffer.as_pointer().as_raw() + 16;
    assert_eq!(fault.access.map(|access| access.address), Some(end));
    assert_eq!(&*fault.kernel, "write_at");
    Ok(())
}
