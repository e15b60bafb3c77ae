//! [`DeviceAttribute`]: every attribute, with the type of its value.

use curium_driver::{
    ComputeMode, DeviceAttribute, MemoryHandleTypes, RdmaFlushOptions, RdmaWritesOrdering,
};
use curium_sim::Config;
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{on_driver, on_simulator, shared_handle_types};

#[test]
fn attribute_is_supported_by_the_driver_or_rejected_by_name() {
    on_driver(|test| {
        let device = test.device();
        let mut known = 0;
        for attribute in DeviceAttribute::ALL {
            match device.attribute(*attribute) {
                Ok(_) => known += 1,
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
        assert!(known >= 120, "the driver supports {known} attributes only");
    });
}

#[test]
fn attribute_has_its_type_and_the_same_value_as_by_its_number() {
    on_driver(|test| {
        let device = test.device();
        let warp: u32 = device
            .attribute(DeviceAttribute::WARP_SIZE)
            .expect("a device has warps");
        assert_eq!(warp, 32);
        assert_eq!(
            device
                .attribute(DeviceAttribute::WARP_SIZE.as_raw())
                .expect("a device has warps"),
            32
        );
        let shared: usize = device
            .attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK)
            .expect("it is known");
        assert!(shared >= 48 << 10, "{shared}");
        let unified: bool = device
            .attribute(DeviceAttribute::UNIFIED_ADDRESSING)
            .expect("it is known");
        assert!(unified);
        let mode: ComputeMode = device
            .attribute(DeviceAttribute::COMPUTE_MODE)
            .expect("it is known");
        assert_ne!(mode, ComputeMode::Prohibited, "the tests have a context");
    });
}

#[test]
fn attributes_with_flags_and_enums_are_typed() {
    on_simulator(Config::new(), |test, _| {
        let device = test.device();
        let types = device
            .attribute(DeviceAttribute::MEMPOOL_SUPPORTED_HANDLE_TYPES)
            .expect("it is known");
        let fabric = if shared_handle_types().is_empty() {
            shared_handle_types()
        } else {
            MemoryHandleTypes::FABRIC
        };
        assert_eq!(types, shared_handle_types() | fabric);
        let flush = device
            .attribute(DeviceAttribute::GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)
            .expect("it is known");
        assert_eq!(flush, RdmaFlushOptions::HOST);
        let ordering = device
            .attribute(DeviceAttribute::GPU_DIRECT_RDMA_WRITES_ORDERING)
            .expect("it is known");
        assert_eq!(ordering, RdmaWritesOrdering::Owner);
        assert_eq!(
            device
                .attribute(DeviceAttribute::NUMA_ID)
                .expect("it is known"),
            None
        );
        assert_eq!(
            device
                .attribute(DeviceAttribute::HOST_NUMA_ID)
                .expect("it is known"),
            Some(0)
        );
    });
}

#[test]
fn attribute_of_a_newer_cuda_is_refused_by_an_older_driver() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| {
            let error = test
                .device()
                .attribute(DeviceAttribute::LOCALITY_DOMAIN_COUNT)
                .expect_err("CUDA 13.0 has no such");
            assert!(
                error.to_string().contains("LOCALITY_DOMAIN_COUNT"),
                "{error}"
            );
        },
    );
}

pub(crate) mod operations {
    use curium_driver::DeviceAttribute;
    use curium_sys::CUdevice_attribute;

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
