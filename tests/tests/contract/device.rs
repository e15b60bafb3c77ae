//! [`Device`](curium_driver::Device): names, properties and limits.

use curium_driver::ComputeCapability;
use curium_sys::{CUdevice_attribute, CUresult};
use curium_tests::{on_driver, uses_cuda};

#[test]
fn name_of_a_simulated_device_identifies_it() {
    on_driver(|test| {
        let name = test.device().name().expect("a device has a name");
        assert!(!name.is_empty() && !name.contains('\0'), "{name:?}");
        assert_eq!(
            name.to_lowercase().contains("simulat"),
            !uses_cuda(),
            "{name}"
        );
    });
}

#[test]
fn device_has_a_uuid_and_a_pci_bus_id() {
    on_driver(|test| {
        assert_ne!(test.device().uuid().expect("a device has a UUID"), [0; 16]);
        let place = test
            .device()
            .pci_bus_id()
            .expect("the device has a PCI bus identifier");
        let parts: Vec<_> = place.split([':', '.']).collect();
        assert_eq!(parts.len(), 4, "{place}");
        assert!(
            parts
                .iter()
                .all(|part| u32::from_str_radix(part, 16).is_ok()),
            "{place}"
        );
    });
}

#[test]
fn device_memory_is_that_reported_by_its_context() {
    on_driver(|test| {
        let total = test.device().total_memory().expect("a device has memory");
        let memory = test
            .context()
            .memory_info()
            .expect("a context reports memory");
        assert_eq!(total, memory.total);
        assert!(memory.free <= memory.total && memory.free > 0);
    });
}

#[test]
fn compute_capability_is_that_of_the_attributes() {
    on_driver(|test| {
        let capability = test
            .device()
            .compute_capability()
            .expect("a device has a compute capability");
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
        assert_eq!(warp.expect("a device has warps"), 32);
    });
}

#[test]
fn unknown_attribute_is_an_error_that_names_it() {
    on_driver(|test| {
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
    });
}

pub(crate) mod operations {
    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
