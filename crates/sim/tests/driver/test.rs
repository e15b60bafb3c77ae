//! Tests with all checks on.

use crate::TestResult;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::thread;
use std::time::Duration;

use curium_sim::{Config, Simulator};
use curium_sys::{CUcontext, CUdeviceptr, CUresult};

use crate::support::{SUCCESS, cu, handle, ok};

/// Returns the message of the panic that ends a test.
fn message(body: impl FnOnce(Simulator)) -> TestResult<String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| curium_sim::test(body)));
    let panic = outcome.expect_err("the test fails");
    Ok(panic
        .downcast_ref::<String>()
        .ok_or("the panic has no message")?
        .clone())
}

#[test]
fn clean_test_returns_its_result() {
    assert!(curium_sim::test(|simulator: Simulator| simulator
        .live_handles()
        .is_empty()));
}

/// Another thread drops the last handle a moment after the program.
#[test]
fn live_objects_are_leaks() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let api = simulator.api();
    ok!(api, cuInit(0));
    assert_eq!(simulator.leaked_objects().len(), 0);
    let context: CUcontext = handle!(api, cuDevicePrimaryCtxRetain(_, 0));
    assert!(!context.is_null());
    let releasing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        ok!(api, cuDevicePrimaryCtxRelease_v2(0));
    });
    assert_eq!(simulator.live_objects().len(), 1);
    assert_eq!(simulator.leaked_objects().len(), 0);
    releasing.join().expect("the release succeeds");
    let api = simulator.api();
    let context: CUcontext = handle!(api, cuDevicePrimaryCtxRetain(_, 0));
    assert!(!context.is_null());
    assert_eq!(simulator.leaked_objects().len(), 1);
    ok!(api, cuDevicePrimaryCtxRelease_v2(0));
    Ok(())
}

#[test]
fn leak_fails_the_test() -> TestResult {
    let message = message(|simulator| {
        let api = simulator.api();
        ok!(api, cuInit(0));
        let context: CUcontext = handle!(api, cuDevicePrimaryCtxRetain(_, 0));
        ok!(api, cuCtxSetCurrent(context));
        let mut memory: CUdeviceptr = 0;
        ok!(api, cuMemAlloc_v2(&raw mut memory, 64));
        ok!(api, cuCtxSetCurrent(ptr::null_mut()));
        ok!(api, cuDevicePrimaryCtxRelease_v2(0));
        let context: CUcontext = handle!(api, cuDevicePrimaryCtxRetain(_, 0));
        assert!(!context.is_null());
    })?;
    assert!(
        message.contains("leak: context") && message.contains("cuDevicePrimaryCtxRetain"),
        "{message}"
    );
    Ok(())
}

/// The last clone ends the shared driver.
#[test]
fn clones_share_one_driver() -> TestResult {
    let api = {
        let simulator = Simulator::new(Config::new())?;
        let other = simulator.clone();
        let api = simulator.api();
        drop(simulator);
        assert_eq!(cu!(api, cuInit(0)), SUCCESS);
        assert_eq!(other.calls(curium_sys::Function::cuInit), 1);
        api
    };
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_DEINITIALIZED);
    Ok(())
}
