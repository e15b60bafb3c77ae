//! Devices by PCI bus ID and UUID, and the LUID on Windows.

use curium_driver::{Device, Error};
use curium_sim::{Config, Simulator};
use curium_sys::{CUarray_format, CUresult};
use curium_tests::{
    TestDriver, TestResult, driver_test, on_driver, on_simulator, simulator_test, uses_cuda,
};

/// Every device is found by its PCI bus ID and its UUID.
#[test]
fn device_has_bus_id_and_uuid() -> TestResult {
    fn check(driver: &curium_driver::Driver) -> TestResult {
        for device in driver.devices()? {
            let location = device.pci_bus_id()?;
            let same_device = driver.device_by_pci_bus_id(&location)?;
            assert_eq!(same_device, device, "{location}");
            let short = location
                .split_once(':')
                .ok_or("no domain in the PCI bus identifier")?
                .1;
            let same_device = driver.device_by_pci_bus_id(short)?;
            assert_eq!(same_device, device, "{short}");
            let uuid = device.uuid()?;
            assert_eq!(driver.device_by_uuid(uuid)?, device);
        }
        Ok(())
    }

    on_driver(|test| check(test.driver()))?;
    on_simulator(Config::new().with_devices(3), |test, _| {
        check(test.driver())
    })
}

/// Devices with different handles or drivers are not equal.
#[simulator_test(Config::new().with_devices(2))]
fn devices_compare_by_handle_and_driver(test: &TestDriver, _: &Simulator) -> TestResult {
    let first = test.driver().device(0)?;
    let second = test.driver().device(1)?;
    assert_ne!(first, second);
    on_simulator(Config::new(), |other, _| assert_ne!(first, other.device()));
    Ok(())
}

#[driver_test]
fn missing_device_is_an_error_with_the_ordinal(test: &TestDriver) {
    let driver = test.driver();
    let error = driver
        .device_by_pci_bus_id("ff:1f.0")
        .expect_err("nothing is there");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_DEVICE));
    assert!(error.to_string().contains("ff:1f.0"), "{error}");
    let error = driver
        .device_by_pci_bus_id("garbage")
        .expect_err("that is not a PCI bus identifier");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    let error = driver
        .device_by_pci_bus_id("0\0")
        .expect_err("a PCI bus identifier has no NUL");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    let error = driver
        .device_by_uuid([0xab; 16])
        .expect_err("no device has it");
    assert!(error.to_string().contains(&"ab".repeat(16)), "{error}");
}

#[driver_test]
fn luid_is_for_windows_only(test: &TestDriver) {
    if cfg!(not(windows)) {
        let error = test.device().luid().expect_err("there is none");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    }
}

/// A device from a number that none has is refused when it is used.
#[driver_test]
fn unknown_raw_device_fails_when_used(test: &TestDriver) -> TestResult {
    let device = Device::from_raw(test.driver(), 12_345);
    assert_eq!(
        device.name().map_err(|error| error.code()),
        Err(Some(CUresult::CUDA_ERROR_INVALID_DEVICE))
    );
    let device = Device::from_raw(test.driver(), test.device().as_raw());
    assert_eq!(device.name()?, test.device().name()?);
    Ok(())
}

/// A linear texture width depends on the bytes of an element.
#[driver_test]
fn linear_texture_width_depends_on_element_size(test: &TestDriver) -> TestResult {
    let width = |format, channels| test.device().linear_texture_width(format, channels);
    let bytes = width(CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8, 1)?;
    let floats = width(CUarray_format::CU_AD_FORMAT_FLOAT, 4)?;
    assert!(bytes >= 1 << 27 && floats < bytes, "{bytes} {floats}");
    let error =
        width(CUarray_format::CU_AD_FORMAT_FLOAT, 3).expect_err("no format has three channels");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(
        error.to_string().contains("3 channels of format 32"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn affinity_needs_the_multi_process_service(test: &TestDriver) -> TestResult {
    let supported = test.device().supports_affinity()?;
    assert!(uses_cuda() || !supported);
    Ok(())
}

pub(crate) mod operations {
    use curium_sys::CUarray_format;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Driver::device_by_pci_bus_id", |fixture| {
            made(
                fixture
                    .driver
                    .device_by_pci_bus_id(&fixture.device.pci_bus_id()?)?,
            )
        }),
        ("Driver::device_by_uuid", |fixture| {
            made(fixture.driver.device_by_uuid(fixture.device.uuid()?)?)
        }),
        ("Device::supports_affinity", |fixture| {
            made(fixture.device.supports_affinity()?)
        }),
        ("Device::linear_texture_width", |fixture| {
            made(
                fixture
                    .device
                    .linear_texture_width(CUarray_format::CU_AD_FORMAT_FLOAT, 1)?,
            )
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("Device::luid", |fixture| made(fixture.device.luid()?))];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
