//! [`Device`](curium_driver::Device): names, properties and limits.

use curium_driver::ComputeCapability;
use curium_sys::{CUdevice_attribute, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, uses_cuda};

#[driver_test]
fn simulated_device_has_a_name(test: &TestDriver) -> TestResult {
    let name = test.device().name()?;
    assert!(!name.is_empty() && !name.contains('\0'), "{name:?}");
    assert_eq!(
        name.to_lowercase().contains("simulat"),
        !uses_cuda(),
        "{name}"
    );
    Ok(())
}

#[driver_test]
fn device_has_a_uuid_and_a_pci_bus_id(test: &TestDriver) -> TestResult {
    assert_ne!(test.device().uuid()?, [0; 16]);
    let bus_id = test.device().pci_bus_id()?;
    let parts: Vec<_> = bus_id.split([':', '.']).collect();
    assert_eq!(parts.len(), 4, "{bus_id}");
    assert!(
        parts
            .iter()
            .all(|part| u32::from_str_radix(part, 16).is_ok()),
        "{bus_id}"
    );
    Ok(())
}

#[driver_test]
fn device_memory_is_that_reported_by_its_context(test: &TestDriver) -> TestResult {
    let total = test.device().total_memory()?;
    let memory = test.context().memory_info()?;
    assert_eq!(total, memory.total);
    assert!(memory.free <= memory.total && memory.free > 0);
    Ok(())
}

#[driver_test]
fn compute_capability_matches_the_attributes(test: &TestDriver) -> TestResult {
    let capability = test.device().compute_capability()?;
    assert!(
        capability >= ComputeCapability { major: 5, minor: 0 },
        "{capability}"
    );
    assert_eq!(
        capability.to_string(),
        format!("{}.{}", capability.major, capability.minor)
    );
    let warp = test
        .device()
        .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    assert_eq!(warp?, 32);
    Ok(())
}

#[driver_test]
fn unknown_attribute_is_an_error_that_names_it(test: &TestDriver) {
    for number in [0, 99_999] {
        let error = test
            .device()
            .attribute(CUdevice_attribute(number))
            .expect_err("there is no such attribute");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(
            error.to_string().contains(&format!("attribute {number}")),
            "{error}"
        );
    }
}

pub(crate) mod operations {
    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Device::name", |fixture| made(fixture.device.name()?)),
        ("Device::uuid", |fixture| made(fixture.device.uuid()?)),
        ("Device::pci_bus_id", |fixture| {
            made(fixture.device.pci_bus_id()?)
        }),
        ("Device::total_memory", |fixture| {
            made(fixture.device.total_memory()?)
        }),
        ("Device::compute_capability", |fixture| {
            made(fixture.device.compute_capability()?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
