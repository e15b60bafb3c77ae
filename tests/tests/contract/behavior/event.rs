//! Events: the codes of queries in every state.

use std::ptr;

use curium_driver::AsRawStream as _;
use curium_memory::DeviceBuffer;
use curium_sys::{CUevent, CUresult};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, in_own_process, on_driver, uses_cuda,
};

use super::{DESTROYED, INVALID_HANDLE, INVALID_VALUE, OK, in_context};

const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

fn create(driver: &curium_driver::Driver, flags: u32) -> CUevent {
    let mut event = ptr::null_mut();
    assert_eq!(returned!(driver, cuEventCreate(&raw mut event, flags)), OK);
    event
}

/// An event that was never recorded has happened and has no time.
#[driver_test]
fn unrecorded_event_is_complete_and_untimed(test: &TestDriver) {
    in_context(test, |driver| {
        let event = create(driver, 0);
        let mut time = 0.0_f32;
        assert_eq!(returned!(driver, cuEventQuery(event)), OK);
        assert_eq!(returned!(driver, cuEventSynchronize(event)), OK);
        assert_eq!(
            returned!(driver, cuEventElapsedTime(&raw mut time, event, event)),
            INVALID_HANDLE
        );
        assert_eq!(returned!(driver, cuEventDestroy_v2(event)), OK);
    });
}

/// Time is negative backwards and there is none while an event is pending or untimed.
#[driver_test]
fn elapsed_time_is_signed_and_requires_completion(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let raw = stream.as_raw();
    let mut buffer = DeviceBuffer::<u8>::zeroed(&stream, 1 << 20)?;
    in_context(test, |driver| -> TestResult {
        let first = create(driver, 0);
        let second = create(driver, 0);
        let untimed = create(driver, DISABLE_TIMING);
        let time = |from, to| {
            let mut time = 0.0_f32;
            (
                returned!(driver, cuEventElapsedTime(&raw mut time, from, to)),
                time,
            )
        };
        assert_eq!(returned!(driver, cuEventRecord(first, raw)), OK);
        let gate = Gate::on(&stream);
        buffer.fill(1)?;
        assert_eq!(returned!(driver, cuEventRecord(untimed, raw)), OK);
        assert_eq!(returned!(driver, cuEventRecord(second, raw)), OK);
        assert_eq!(
            returned!(driver, cuEventQuery(second)),
            CUresult::CUDA_ERROR_NOT_READY
        );
        assert_eq!(time(first, second).0, CUresult::CUDA_ERROR_NOT_READY);
        gate.open();
        assert_eq!(returned!(driver, cuEventSynchronize(second)), OK);
        let (code, forwards) = time(first, second);
        assert!(code == OK && forwards > 0.0, "{code:?}, {forwards}");
        let (code, backwards) = time(second, first);
        assert!(code == OK && backwards < 0.0, "{code:?}, {backwards}");
        assert_eq!(time(first, untimed).0, INVALID_HANDLE);
        for event in [first, second, untimed] {
            assert_eq!(returned!(driver, cuEventDestroy_v2(event)), OK);
        }
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn event_for_other_processes_must_be_without_timing(test: &TestDriver) {
    in_context(test, |driver| {
        let mut event = ptr::null_mut();
        assert_eq!(
            returned!(driver, cuEventCreate(&raw mut event, INTERPROCESS)),
            INVALID_VALUE
        );
        assert_eq!(
            returned!(driver, cuEventCreate(&raw mut event, 1 << 30)),
            INVALID_VALUE
        );
        let event = create(driver, INTERPROCESS | DISABLE_TIMING);
        assert_eq!(returned!(driver, cuEventDestroy_v2(event)), OK);
    });
}

#[test]
fn event_is_destroyed_once() {
    in_own_process(|| {
        on_driver(|test| {
            in_context(test, |driver| {
                let event = create(driver, 0);
                assert_eq!(returned!(driver, cuEventDestroy_v2(event)), OK);
                // A real driver crashes the process.
                if !uses_cuda() {
                    assert_eq!(returned!(driver, cuEventDestroy_v2(event)), DESTROYED);
                }
            });
        });
    });
}
