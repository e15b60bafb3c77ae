//! Virtual memory: valid and invalid mappings.

use curium_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationProp, CUmemAllocationType, CUmemLocation, CUmemLocationType,
};
use curium_tests::{TestDriver, driver_test};

use super::{INVALID_VALUE, OK, in_context};

/// Returns the location of the test's device.
pub(super) fn location(test: &TestDriver) -> CUmemLocation {
    let mut location = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        ..CUmemLocation::default()
    };
    location.__bindgen_anon_1.id = test.device().as_raw();
    location
}

#[driver_test]
fn memory_is_created_mapped_and_unmapped_as_a_whole(test: &TestDriver) {
    let properties = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(test),
        ..CUmemAllocationProp::default()
    };
    let properties = &raw const properties;
    let access = CUmemAccessDesc {
        location: location(test),
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    in_context(test, |driver| {
        let least = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        let mut step: usize = 0;
        let mut handle = 0;
        let mut address: CUdeviceptr = 0;
        assert_eq!(
            returned!(
                driver,
                cuMemGetAllocationGranularity(&raw mut step, properties, least)
            ),
            OK
        );
        assert_eq!(step, 2 << 20);
        assert_eq!(
            returned!(
                driver,
                cuMemCreate(&raw mut handle, step / 2, properties, 0)
            ),
            INVALID_VALUE
        );
        assert_eq!(
            returned!(
                driver,
                cuMemAddressReserve(&raw mut address, step + 1, 0, 0, 0)
            ),
            INVALID_VALUE
        );
        assert_eq!(
            returned!(
                driver,
                cuMemCreate(&raw mut handle, 2 * step, properties, 0)
            ),
            OK
        );
        assert_eq!(
            returned!(
                driver,
                cuMemAddressReserve(&raw mut address, 2 * step, 0, 0, 0)
            ),
            OK
        );
        assert_eq!(
            returned!(driver, cuMemMap(address, 2 * step, 0, handle, 0)),
            OK
        );
        assert_eq!(
            returned!(driver, cuMemMap(address, 2 * step, 0, handle, 0)),
            INVALID_VALUE,
            "a second time"
        );
        assert_eq!(
            returned!(driver, cuMemsetD8_v2(address, 1, 64)),
            INVALID_VALUE,
            "no device has access"
        );
        assert_eq!(
            returned!(
                driver,
                cuMemSetAccess(address, 2 * step, &raw const access, 1)
            ),
            OK
        );
        assert_eq!(
            returned!(driver, cuMemRelease(handle)),
            OK,
            "it stays mapped"
        );
        assert_eq!(returned!(driver, cuMemsetD8_v2(address, 1, 2 * step)), OK);
        assert_eq!(returned!(driver, cuCtxSynchronize()), OK);
        assert_eq!(
            returned!(driver, cuMemUnmap(address, step)),
            INVALID_VALUE,
            "it is half of the mapping"
        );
        assert_eq!(returned!(driver, cuMemUnmap(address, 2 * step)), OK);
        assert_eq!(returned!(driver, cuMemAddressFree(address, 2 * step)), OK);
    });
}

/// Memory is not opened in the process that exports it.
#[cfg(target_os = "linux")]
#[driver_test]
fn ipc_memory_is_refused_by_its_exporter(test: &TestDriver) {
    in_context(test, |driver| {
        let mut address = 0;
        let mut opened = 0;
        let mut handle = curium_sys::CUipcMemHandle::default();
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut address, 64)), OK);
        assert_eq!(
            returned!(driver, cuIpcGetMemHandle(&raw mut handle, address)),
            OK
        );
        let code = returned!(driver, cuIpcOpenMemHandle_v2(&raw mut opened, handle, 1));
        assert_eq!(code, super::INVALID_CONTEXT);
        assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
    });
}
