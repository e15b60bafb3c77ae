//! Copies and fills of rows, batches of copies, and advice.

use std::ptr;

use curium_driver::Driver;
use curium_sys::{
    CUDA_MEMCPY2D, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemcpyAttributes,
    CUmemcpySrcAccessOrder, CUmemorytype, CUresult, CUstream,
};
use curium_tests::on_driver;

use super::call::{alloc, create, download, succeed, upload};
use super::{INVALID_VALUE, OK, in_created_context};

fn plane(
    to: CUdeviceptr,
    from: CUdeviceptr,
    pitch: usize,
    width: usize,
    height: usize,
) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        srcPitch: pitch,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        dstPitch: pitch,
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    }
}

#[test]
fn invalid_rows_are_rejected() {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let from = alloc(driver, 16);
            let to = alloc(driver, 16);
            let wider_than_pitch = plane(to, from, 3, 4, 2);
            let beyond_allocation = plane(to, from, 8, 8, 3);
            let unknown_memory = CUDA_MEMCPY2D {
                srcMemoryType: CUmemorytype(9),
                ..plane(to, from, 4, 4, 4)
            };
            for copy in [wider_than_pitch, beyond_allocation, unknown_memory] {
                let code = returned!(driver, cuMemcpy2D_v2(&raw const copy));
                assert_eq!(code, INVALID_VALUE);
            }
            for height in [4, 0] {
                let copy = plane(to, from, 4, 4, height);
                succeed!(driver, cuMemcpy2D_v2(&raw const copy));
            }
            let overlapping = returned!(driver, cuMemsetD2D32_v2(to, 8, 1, 3, 2));
            assert_eq!(overlapping, INVALID_VALUE);
            let unaligned_pitch = returned!(driver, cuMemsetD2D32_v2(to, 6, 1, 1, 2));
            assert_eq!(unaligned_pitch, INVALID_VALUE);
            succeed!(driver, cuMemsetD2D16_v2(to, 8, 0x0101, 1, 2));
            assert_eq!(download(driver, to + 8, 2), [1, 1]);
        });
    });
}

/// A batch of two copies with one set of attributes.
struct Batch {
    to: [CUdeviceptr; 2],
    from: [CUdeviceptr; 2],
    sizes: [usize; 2],
    order: CUmemcpySrcAccessOrder,
    /// The first copy that the attributes apply to.
    first: usize,
}

impl Batch {
    fn enqueue(mut self, driver: &Driver, stream: CUstream) -> CUresult {
        let mut attributes = CUmemcpyAttributes {
            srcAccessOrder: self.order,
            ..CUmemcpyAttributes::default()
        };
        returned!(
            driver,
            cuMemcpyBatchAsync_v2(
                self.to.as_mut_ptr(),
                self.from.as_mut_ptr(),
                self.sizes.as_mut_ptr(),
                2,
                &raw mut attributes,
                &raw mut self.first,
                1,
                stream
            )
        )
    }
}

#[test]
fn batch_requires_stream_attributes_and_copies() {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let from = alloc(driver, 8);
            let to = alloc(driver, 8);
            let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
            upload(driver, from, &[1, 2, 3, 4, 5, 6, 7, 8]);
            let valid = || Batch {
                to: [to, to + 4],
                from: [from + 4, from],
                sizes: [4, 4],
                order: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                first: 0,
            };
            let on_legacy_stream = valid().enqueue(driver, ptr::null_mut());
            assert_eq!(on_legacy_stream, INVALID_VALUE);
            let without_order = Batch {
                order: CUmemcpySrcAccessOrder(0),
                ..valid()
            };
            assert_eq!(without_order.enqueue(driver, stream), INVALID_VALUE);
            let first_without_attributes = Batch {
                first: 1,
                ..valid()
            };
            assert_eq!(
                first_without_attributes.enqueue(driver, stream),
                INVALID_VALUE
            );
            assert_eq!(valid().enqueue(driver, stream), OK);
            succeed!(driver, cuStreamSynchronize(stream));
            assert_eq!(download(driver, to, 8), [5, 6, 7, 8, 1, 2, 3, 4]);
            succeed!(driver, cuStreamDestroy_v2(stream));
        });
    });
}

/// Returns the preferred location of managed memory.
fn preferred_location(driver: &Driver, memory: CUdeviceptr, size: usize) -> i32 {
    let mut device = 7_i32;
    let attribute = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
    succeed!(
        driver,
        cuMemRangeGetAttribute((&raw mut device).cast(), 4, attribute, memory, size)
    );
    device
}

#[test]
fn advice_is_for_managed_memory() {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let memory: CUdeviceptr = create!(driver, cuMemAllocManaged(_, 8192, 1));
            let device = super::mapping::location(test);
            let advice = CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
            succeed!(driver, cuMemAdvise_v2(memory, 4096, advice, device));
            assert_eq!(preferred_location(driver, memory, 4096), 0);
            let of_both_pages = preferred_location(driver, memory, 8192);
            assert_eq!(of_both_pages, -2, "CU_DEVICE_INVALID");
            let unmanaged = alloc(driver, 4096);
            let code = returned!(driver, cuMemAdvise_v2(unmanaged, 4096, advice, device));
            assert_eq!(code, INVALID_VALUE);
            succeed!(driver, cuMemFree_v2(memory));
        });
    });
}
