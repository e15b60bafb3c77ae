//! [`DeviceAttribute`]: every attribute, with the type of its value.

use curium_driver::{
    ComputeMode, DeviceAttribute, MemoryHandleTypes, RdmaFlushOptions, RdmaWritesOrdering,
};
use curium_sim::{Config, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{TestDriver, TestResult, driver_test, shared_handle_types, simulator_test};

/// An attribute is supported by the driver or rejected by name.
#[driver_test]
fn attribute_is_supported_or_rejected_by_name(test: &TestDriver) {
    let device = test.device();
    let mut count = 0;
    for attribute in DeviceAttribute::ALL {
        match device.attribute(*attribute) {
            Ok(_) => count += 1,
            Err(error) => {
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_INVALID_VALUE),
                    "{error}"
                );
                assert!(
                    error
                        .to_string()
                        .contains(&format!("attribute {}", attribute.name())),
                    "{error}"
                );
            }
        }
    }
    // CUDA 11.8 has 120 attributes.
    assert!(count >= 120, "the driver supports {count} attributes only");
}

/// An attribute has its type and the same value as by its number.
#[driver_test]
fn attribute_matches_its_raw_value(test: &TestDriver) -> TestResult {
    let device = test.device();
    let warp: u32 = device.attribute(DeviceAttribute::WARP_SIZE)?;
    assert_eq!(warp, 32);
    assert_eq!(device.attribute(DeviceAttribute::WARP_SIZE.as_raw())?, 32);
    let shared: usize = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK)?;
    assert!(shared >= 48 << 10, "{shared}");
    let unified: bool = device.attribute(DeviceAttribute::UNIFIED_ADDRESSING)?;
    assert!(unified);
    let mode: ComputeMode = device.attribute(DeviceAttribute::COMPUTE_MODE)?;
    assert_ne!(mode, ComputeMode::Prohibited, "the tests have a context");
    Ok(())
}

#[simulator_test]
fn attributes_with_flags_and_enums_are_typed(test: &TestDriver, _: &Simulator) -> TestResult {
    let device = test.device();
    let types = device.attribute(DeviceAttribute::MEMPOOL_SUPPORTED_HANDLE_TYPES)?;
    let fabric = if shared_handle_types().is_empty() {
        shared_handle_types()
    } else {
        MemoryHandleTypes::FABRIC
    };
    assert_eq!(types, shared_handle_types() | fabric);
    let flush = device.attribute(DeviceAttribute::GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)?;
    assert_eq!(flush, RdmaFlushOptions::HOST);
    let ordering = device.attribute(DeviceAttribute::GPU_DIRECT_RDMA_WRITES_ORDERING)?;
    assert_eq!(ordering, RdmaWritesOrdering::Owner);
    assert_eq!(device.attribute(DeviceAttribute::NUMA_ID)?, None);
    assert_eq!(device.attribute(DeviceAttribute::HOST_NUMA_ID)?, Some(0));
    Ok(())
}

/// An attribute of a newer CUDA is refused by an older driver.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 0)))]
fn newer_attribute_fails_on_an_older_driver(test: &TestDriver, _: &Simulator) {
    let error = test
        .device()
        .attribute(DeviceAttribute::LOCALITY_DOMAIN_COUNT)
        .expect_err("CUDA 13.0 has no such");
    assert!(
        error.to_string().contains("LOCALITY_DOMAIN_COUNT"),
        "{error}"
    );
}

pub(crate) mod operations {
    use curium_driver::DeviceAttribute;
    use curium_sys::CUdevice_attribute;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Device::attribute", |fixture| {
            made(
                fixture
                    .device
                    .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            )
        }),
        ("Device::attribute, typed", |fixture| {
            made(fixture.device.attribute(DeviceAttribute::WARP_SIZE)?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
