//! Memory: accepted and rejected calls.

use std::ffi::c_void;
use std::ptr;

use curium_driver::Driver;
use curium_sys::{CUdeviceptr, CUmemPool_attribute, CUpointer_attribute, CUresult};
use curium_tests::on_driver;

use super::{INVALID_VALUE, NOT_FOUND, OK, in_context};

fn allocate(driver: &Driver, bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    assert_eq!(
        returned!(driver, cuMemAlloc_v2(&raw mut address, bytes)),
        OK
    );
    address
}

#[test]
fn allocation_of_nothing_is_refused_for_device_memory_only() {
    on_driver(|test| {
        let stream = test.stream();
        in_context(test, |driver| {
            let (mut address, mut host) = (0, ptr::null_mut());
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
    });
}

#[test]
fn free_requires_the_start_of_a_live_allocation() {
    on_driver(|test| {
        in_context(test, |driver| {
            let (address, mut host) = (allocate(driver, 4096), ptr::null_mut());
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
    });
}

#[test]
fn copies_and_fills_are_limited_to_the_requested_size() {
    on_driver(|test| {
        in_context(test, |driver| {
            let (address, mut host) = (allocate(driver, 1000), [0_u8; 1001]);
            for (bytes, expected) in [(1000, OK), (1001, INVALID_VALUE)] {
                let place = host.as_mut_ptr().cast::<c_void>();
                assert_eq!(
                    returned!(driver, cuMemsetD8_v2(address, 1, bytes)),
                    expected
                );
                assert_eq!(
                    returned!(driver, cuMemcpyHtoD_v2(address, place.cast_const(), bytes)),
                    expected
                );
                assert_eq!(
                    returned!(driver, cuMemcpyDtoH_v2(place, address, bytes)),
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
    });
}

#[test]
fn pitch_is_a_multiple_of_512_for_elements_of_4_8_or_16_bytes() {
    on_driver(|test| {
        in_context(test, |driver| {
            let (mut address, mut pitch) = (0, 0);
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
    });
}

#[test]
fn address_range_is_that_of_the_allocation_and_not_found_outside() {
    on_driver(|test| {
        in_context(test, |driver| {
            let (address, mut base, mut size) = (allocate(driver, 5000), 0, 0);
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
    });
}

#[test]
fn unknown_pointer_is_rejected_by_one_call_and_has_zeros_in_the_other() {
    on_driver(|test| {
        in_context(test, |driver| {
            let (local, mut kind) = (0_u8, 9_u32);
            let address = (&raw const local).expose_provenance() as CUdeviceptr;
            let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
            let mut place = (&raw mut kind).cast::<c_void>();
            assert_eq!(
                returned!(driver, cuPointerGetAttribute(place, attribute, address)),
                INVALID_VALUE
            );
            let code = returned!(
                driver,
                cuPointerGetAttributes(1, &raw mut attribute, &raw mut place, address)
            );
            assert_eq!((code, kind), (OK, 0));
        });
    });
}

#[test]
fn memory_of_pools_and_other_memory_are_freed_either_way() {
    on_driver(|test| {
        let stream = test.stream();
        in_context(test, |driver| {
            let (plain, mut pooled) = (allocate(driver, 64), 0);
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
    });
}

#[test]
fn fresh_pool_gives_everything_back_and_takes_32_mib_at_a_time() {
    on_driver(|test| {
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
        let (driver, mut address) = (test.driver(), 0);
        let attribute = |attribute| {
            let mut value = 7_u64;
            let place = (&raw mut value).cast::<c_void>();
            assert_eq!(
                returned!(driver, cuMemPoolGetAttribute(pool, attribute, place)),
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
    });
}

#[test]
fn peer_access_with_itself_is_refused() {
    on_driver(|test| {
        let own = test.context();
        in_context(test, |driver| {
            let code = returned!(driver, cuCtxEnablePeerAccess(own.as_raw(), 0));
            assert_eq!(code, CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        });
    });
}

/// Memory that the driver allocated is not registered memory, and has another error than unknown memory.
#[test]
fn unregistration_of_pinned_memory_is_refused() {
    on_driver(|test| {
        in_context(test, |driver| {
            let mut host = ptr::null_mut();
            assert_eq!(returned!(driver, cuMemHostAlloc(&raw mut host, 64, 0)), OK);
            assert_eq!(returned!(driver, cuMemHostUnregister(host)), INVALID_VALUE);
            assert_eq!(returned!(driver, cuMemFreeHost(host)), OK);
        });
    });
}
