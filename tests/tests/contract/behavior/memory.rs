//! Memory: accepted and rejected calls.

use std::ffi::c_void;
use std::ptr;

use curium_driver::AsRawStream as _;
use curium_driver::Driver;
use curium_sys::{CUdeviceptr, CUmemPool_attribute, CUpointer_attribute, CUresult};
use curium_tests::{TestDriver, driver_test};

use super::{INVALID_VALUE, NOT_FOUND, OK, in_context};

fn allocate(driver: &Driver, bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    assert_eq!(
        returned!(driver, cuMemAlloc_v2(&raw mut address, bytes)),
        OK
    );
    address
}

/// An allocation of nothing is refused for device memory only.
#[driver_test]
fn zero_size_device_allocation_is_refused(test: &TestDriver) {
    let stream = test.stream();
    in_context(test, |driver| {
        let mut address = 0;
        let mut host = ptr::null_mut();
        assert_eq!(
            returned!(driver, cuMemAlloc_v2(&raw mut address, 0)),
            INVALID_VALUE
        );
        assert_eq!(
            returned!(driver, cuMemAllocManaged(&raw mut address, 0, 1)),
            INVALID_VALUE
        );
        assert_eq!(
            returned!(driver, cuMemAllocManaged(&raw mut address, 64, 0)),
            INVALID_VALUE,
            "flags of 0"
        );
        assert_eq!(returned!(driver, cuMemHostAlloc(&raw mut host, 0, 0)), OK);
        assert_eq!(
            returned!(
                driver,
                cuMemAllocAsync(&raw mut address, 0, stream.as_raw())
            ),
            OK
        );
        assert_eq!(returned!(driver, cuMemFree_v2(0)), OK);
    });
}

#[driver_test]
fn free_requires_a_live_allocation_address(test: &TestDriver) {
    in_context(test, |driver| {
        let address = allocate(driver, 4096);
        let mut host = ptr::null_mut();
        assert_eq!(returned!(driver, cuMemHostAlloc(&raw mut host, 64, 0)), OK);
        for wrong in [
            address + 512,
            address + 1,
            0x1000,
            host.expose_provenance() as CUdeviceptr,
        ] {
            assert_eq!(
                returned!(driver, cuMemFree_v2(wrong)),
                INVALID_VALUE,
                "{wrong:#x}"
            );
        }
        assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
        assert_eq!(
            returned!(driver, cuMemFree_v2(address)),
            INVALID_VALUE,
            "a second time"
        );
        assert_eq!(returned!(driver, cuMemFreeHost(host)), OK);
    });
}

#[driver_test]
fn copies_and_fills_are_limited_to_the_requested_size(test: &TestDriver) {
    in_context(test, |driver| {
        let address = allocate(driver, 1000);
        let mut host = [0_u8; 1001];
        for (bytes, expected) in [(1000, OK), (1001, INVALID_VALUE)] {
            let output = host.as_mut_ptr().cast::<c_void>();
            assert_eq!(
                returned!(driver, cuMemsetD8_v2(address, 1, bytes)),
                expected
            );
            assert_eq!(
                returned!(driver, cuMemcpyHtoD_v2(address, output.cast_const(), bytes)),
                expected
            );
            assert_eq!(
                returned!(driver, cuMemcpyDtoH_v2(output, address, bytes)),
                expected
            );
        }
        assert_eq!(
            returned!(driver, cuMemsetD16_v2(address + 1, 1, 2)),
            INVALID_VALUE,
            "not aligned"
        );
        assert_eq!(
            returned!(driver, cuMemsetD32_v2(address + 2, 1, 2)),
            INVALID_VALUE,
            "not aligned"
        );
        assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
    });
}

/// Programs that divide an allocation into pages rely on this. Small allocations share a large
/// page.
#[driver_test]
fn large_allocations_are_aligned_to_2_mib(test: &TestDriver) {
    in_context(test, |driver| {
        for bytes in [2 << 20, (2 << 20) + 1, 5 << 20] {
            let small = allocate(driver, 100);
            let large = allocate(driver, bytes);
            assert_eq!(large % (2 << 20), 0, "{bytes} bytes at {large:#x}");
            for address in [small, large] {
                assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
            }
        }
    });
}

/// A pitch is a multiple of 512 for elements of 4 8 or 16 bytes.
#[driver_test]
fn pitch_is_a_multiple_of_512(test: &TestDriver) {
    in_context(test, |driver| {
        let mut address = 0;
        let mut pitch = 0;
        for element in [0, 1, 2, 3, 5, 32] {
            let code = returned!(
                driver,
                cuMemAllocPitch_v2(&raw mut address, &raw mut pitch, 100, 3, element)
            );
            assert_eq!(code, INVALID_VALUE, "{element}");
        }
        for (width, element) in [(100, 4), (600, 8), (1024, 16)] {
            let code = returned!(
                driver,
                cuMemAllocPitch_v2(&raw mut address, &raw mut pitch, width, 3, element)
            );
            assert_eq!(code, OK);
            assert_eq!(pitch, width.next_multiple_of(512));
            assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
        }
    });
}

/// An address range is that of the allocation and not found outside.
#[driver_test]
fn address_range_covers_the_allocation(test: &TestDriver) {
    in_context(test, |driver| {
        let address = allocate(driver, 5000);
        let mut base = 0;
        let mut size = 0;
        assert_eq!(
            returned!(
                driver,
                cuMemGetAddressRange_v2(&raw mut base, &raw mut size, address + 4999)
            ),
            OK
        );
        assert_eq!((base, size), (address, 5000));
        assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
        let code = returned!(
            driver,
            cuMemGetAddressRange_v2(&raw mut base, &raw mut size, 0x1000)
        );
        assert_eq!(code, NOT_FOUND);
    });
}

/// An unknown pointer is rejected by one call and has zeros in the other.
#[driver_test]
fn unknown_pointer_has_zero_attributes(test: &TestDriver) {
    in_context(test, |driver| {
        let local = 0_u8;
        let mut kind = 9_u32;
        let address = (&raw const local).expose_provenance() as CUdeviceptr;
        let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        let mut output = (&raw mut kind).cast::<c_void>();
        assert_eq!(
            returned!(driver, cuPointerGetAttribute(output, attribute, address)),
            INVALID_VALUE
        );
        let code = returned!(
            driver,
            cuPointerGetAttributes(1, &raw mut attribute, &raw mut output, address)
        );
        assert_eq!((code, kind), (OK, 0));
    });
}

/// Memory of pools and other memory are freed either way.
#[driver_test]
fn pool_and_plain_memory_share_free_calls(test: &TestDriver) {
    let stream = test.stream();
    in_context(test, |driver| {
        let plain = allocate(driver, 64);
        let mut pooled = 0;
        assert_eq!(
            returned!(
                driver,
                cuMemAllocAsync(&raw mut pooled, 64, stream.as_raw())
            ),
            OK
        );
        assert_eq!(returned!(driver, cuStreamSynchronize(stream.as_raw())), OK);
        assert_eq!(
            returned!(driver, cuMemFreeAsync(plain, stream.as_raw())),
            OK
        );
        assert_eq!(returned!(driver, cuMemFree_v2(pooled)), OK);
        assert_eq!(returned!(driver, cuStreamSynchronize(stream.as_raw())), OK);
    });
}

/// A fresh pool gives everything back and takes 32 MiB at a time.
#[driver_test]
fn fresh_pool_grows_by_32_mib_and_trims_fully(test: &TestDriver) {
    let stream = test.stream();
    let pool = {
        let properties = curium_sys::CUmemPoolProps {
            allocType: curium_sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            location: super::mapping::location(test),
            ..Default::default()
        };
        let mut pool = ptr::null_mut();
        assert_eq!(
            returned!(
                test.driver(),
                cuMemPoolCreate(&raw mut pool, &raw const properties)
            ),
            OK
        );
        pool
    };
    let driver = test.driver();
    let mut address = 0;
    let attribute = |attribute| {
        let mut value = 7_u64;
        let output = (&raw mut value).cast::<c_void>();
        assert_eq!(
            returned!(driver, cuMemPoolGetAttribute(pool, attribute, output)),
            OK
        );
        value
    };
    assert_eq!(
        attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
        0
    );
    assert_eq!(
        returned!(
            driver,
            cuMemAllocFromPoolAsync(&raw mut address, 64, pool, stream.as_raw())
        ),
        OK
    );
    assert_eq!(
        attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        32 << 20
    );
    assert_eq!(
        returned!(driver, cuMemFreeAsync(address, stream.as_raw())),
        OK
    );
    assert_eq!(returned!(driver, cuStreamSynchronize(stream.as_raw())), OK);
    assert_eq!(
        attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        0
    );
    assert_eq!(returned!(driver, cuMemPoolDestroy(pool)), OK);
}

#[driver_test]
fn peer_access_with_itself_is_refused(test: &TestDriver) {
    let primary = test.context();
    in_context(test, |driver| {
        let code = returned!(driver, cuCtxEnablePeerAccess(primary.as_raw(), 0));
        assert_eq!(code, CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    });
}

/// Memory that the driver allocated is not registered memory, and has another error than unknown
/// memory.
#[driver_test]
fn pinned_memory_is_not_unregistered(test: &TestDriver) {
    in_context(test, |driver| {
        let mut host = ptr::null_mut();
        assert_eq!(returned!(driver, cuMemHostAlloc(&raw mut host, 64, 0)), OK);
        assert_eq!(returned!(driver, cuMemHostUnregister(host)), INVALID_VALUE);
        assert_eq!(returned!(driver, cuMemFreeHost(host)), OK);
    });
}
