//! [`Driver`]: loading, and the information it returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_driver::{CudaVersion, Driver, Error, ErrorClass, Function};
use curium_sim::{Config, Fault, FaultPlan, Simulator};
use curium_sys::{Api, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

#[driver_test]
fn driver_version_is_one_that_curium_works_with(test: &TestDriver) {
    let version = test.driver().version();
    assert!(version >= CudaVersion::OLDEST_SUPPORTED, "{version}");
    assert_eq!(
        format!("{:?}", test.driver()),
        format!("Driver(CUDA {version})")
    );
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 4)))]
fn driver_version_matches_the_driver(test: &TestDriver, _: &Simulator) {
    assert_eq!(test.driver().version(), CudaVersion::new(12, 4));
}

/// Functions newer than the driver are absent and named with the version they need.
#[driver_test]
fn newer_functions_are_absent_with_their_version(test: &TestDriver) {
    let version = test.driver().version();
    for function in test.driver().api().absent() {
        let missing = test.driver().missing(function);
        assert_eq!(missing.function(), Some(function));
        assert_eq!(missing.class(), ErrorClass::System);
        let since = function.since();
        assert!(
            missing.to_string().contains(&since.to_string()),
            "{missing}"
        );
        assert!(
            missing.to_string().contains(&version.to_string()),
            "{missing}"
        );
    }
    let newer = Function::all().filter(|function| function.since() > version);
    assert_eq!(
        newer
            .filter(|function| test.driver().has(*function))
            .count(),
        0
    );
}

#[driver_test]
fn devices_are_as_many_as_counted(test: &TestDriver) -> TestResult {
    let count = test.driver().device_count()?;
    let devices = test.driver().devices()?;
    assert_eq!(devices.len(), count);
    assert!(count >= 1);
    Ok(())
}

#[simulator_test(Config::new().with_devices(3))]
fn several_devices_are_distinguished(test: &TestDriver, _: &Simulator) -> TestResult {
    let devices = test.driver().devices()?;
    let ordinals: Vec<_> = devices.iter().map(curium_driver::Device::as_raw).collect();
    assert_eq!(ordinals, [0, 1, 2]);
    let uuids: Vec<_> = devices
        .iter()
        .map(curium_driver::Device::uuid)
        .collect::<Result<_, _>>()?;
    assert!(uuids[0] != uuids[1] && uuids[1] != uuids[2]);
    Ok(())
}

#[driver_test]
fn device_past_the_last_is_an_error_that_names_both(test: &TestDriver) -> TestResult {
    let count = test.driver().device_count()?;
    for ordinal in [count, i32::MAX as usize, usize::MAX] {
        let error = test
            .driver()
            .device(ordinal)
            .expect_err("there are not that many devices");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
        let text = error.to_string();
        assert!(
            text.contains(&format!("device {ordinal} of {count}")),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn driver_without_a_device() -> TestResult {
    let simulator = Simulator::new(Config::new().with_devices(0))?;
    let error = simulator
        .driver::<Driver>()
        .expect_err("there is no device");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NO_DEVICE));
    assert_eq!(error.function(), Some(Function::cuInit));
    let Error::Call(error) = error else {
        panic!("{error}")
    };
    assert!(error.hint.is_some(), "{error}");
    Ok(())
}

#[test]
fn failed_initialization() -> TestResult {
    for function in [Function::cuInit, Function::cuDriverGetVersion] {
        let plan = FaultPlan::new().with(
            Fault::on(function)
                .always()
                .returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
        );
        let simulator = Simulator::new(Config::new().with_faults(plan))?;
        let error = simulator
            .driver::<Driver>()
            .expect_err("initializing fails");
        assert_eq!(
            (error.function(), error.class()),
            (Some(function), ErrorClass::System)
        );
    }
    Ok(())
}

/// An empty table is an error that names the function missing.
#[test]
fn empty_table_names_the_function() {
    // SAFETY: the table contains no function with a different signature.
    let error = unsafe { Driver::from_api(Api::empty()) }.expect_err("a driver needs functions");
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert_eq!(error.function(), Some(Function::cuDriverGetVersion));
    assert!(!error.to_string().contains("CUDA 0.0"), "{error}");
}

#[test]
fn last_handle_drops_the_owner() -> TestResult {
    struct Owner(Arc<AtomicBool>, Simulator);
    impl Drop for Owner {
        fn drop(&mut self) {
            assert!(
                self.1.live_handles().is_empty(),
                "the owner went before a handle: {}",
                self.1.live_handles()
            );
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let simulator = Simulator::new(Config::new())?;
    let api = simulator.api();
    let owner = Owner(Arc::clone(&gone), simulator);
    // SAFETY: the functions stay callable as long as the simulator, which the driver owns.
    let driver = unsafe { Driver::from_api_with_owner(api, owner) }?;
    let stream = driver
        .device(0)
        .and_then(|device| device.primary_context()?.stream())?;
    drop(driver);
    assert!(!gone.load(Ordering::SeqCst), "a stream keeps the driver");
    stream.synchronize()?;
    drop(stream);
    assert!(
        gone.load(Ordering::SeqCst),
        "nothing keeps the driver any more"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Driver;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Driver::from_api", |fixture| {
            // SAFETY: the table is that of the fixture's driver, which outlives every object
            // created from it here.
            made(unsafe { Driver::from_api(fixture.driver.api().clone()) }?)
        }),
        ("Driver::from_api_with_owner", |fixture| {
            let owner = fixture.driver.clone();
            // SAFETY: `owner` keeps the functions of the table callable.
            made(unsafe { Driver::from_api_with_owner(fixture.driver.api().clone(), owner) }?)
        }),
        ("Driver::device_count", |fixture| {
            made(fixture.driver.device_count()?)
        }),
        ("Driver::device", |fixture| made(fixture.driver.device(0)?)),
        ("Driver::devices", |fixture| made(fixture.driver.devices()?)),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
