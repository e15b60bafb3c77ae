//! Rows, batches, and managed memory.

use std::ptr;

use crate::support::{Fixture, cu, ok};
use curium_sim::Config;
use curium_sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation,
    CUmemLocationType, CUmemcpyAttributes, CUmemcpySrcAccessOrder, CUmemorytype, CUresult,
};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const DEVICE: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_DEVICE;

fn plane(
    to: CUdeviceptr,
    from: CUdeviceptr,
    pitch: usize,
    width: usize,
    height: usize,
) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcMemoryType: DEVICE,
        srcDevice: from,
        srcPitch: pitch,
        dstMemoryType: DEVICE,
        dstDevice: to,
        dstPitch: pitch,
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    }
}

#[test]
fn rows_are_copied_with_their_offsets_and_nothing_between() {
    let fixture = Fixture::new();
    let (from, to) = (fixture.alloc(16), fixture.alloc(16));
    fixture.upload(from, &(0..16).collect::<Vec<u8>>());
    fixture.upload(to, &[99; 16]);
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 1,
        srcY: 1,
        dstY: 2,
        ..plane(to, from, 4, 2, 2)
    };
    ok!(fixture.api, cuMemcpy2D_v2(&raw const copy));
    assert_eq!(
        fixture.download(to, 16),
        [99, 99, 99, 99, 99, 99, 99, 99, 5, 6, 99, 99, 9, 10, 99, 99]
    );
}

#[test]
fn layers_are_copied_from_the_host() {
    let fixture = Fixture::new();
    let to = fixture.alloc(24);
    fixture.upload(to, &[0; 24]);
    let bytes: Vec<u8> = (1..=8).collect();
    let copy = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: bytes.as_ptr().cast(),
        srcPitch: 2,
        srcHeight: 2,
        dstMemoryType: DEVICE,
        dstDevice: to,
        dstPitch: 4,
        dstHeight: 3,
        WidthInBytes: 2,
        Height: 2,
        Depth: 2,
        ..CUDA_MEMCPY3D::default()
    };
    ok!(fixture.api, cuMemcpy3D_v2(&raw const copy));
    let layer = |values: [u8; 4]| {
        [
            values[0], values[1], 0, 0, values[2], values[3], 0, 0, 0, 0, 0, 0,
        ]
    };
    assert_eq!(
        fixture.download(to, 24),
        [layer([1, 2, 3, 4]), layer([5, 6, 7, 8])].concat()
    );
}

#[test]
fn rows_that_overlap_or_leave_their_memory_are_an_invalid_value() {
    let fixture = Fixture::new();
    let (from, to) = (fixture.alloc(16), fixture.alloc(16));
    for copy in [
        plane(to, from, 3, 4, 2),
        plane(to, from, 8, 8, 3),
        CUDA_MEMCPY2D {
            srcXInBytes: 1,
            ..plane(to, from, 4, 4, 4)
        },
        CUDA_MEMCPY2D {
            dstY: 1,
            ..plane(to, from, 4, 4, 4)
        },
        CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype(9),
            ..plane(to, from, 4, 4, 4)
        },
    ] {
        assert_eq!(cu!(fixture.api, cuMemcpy2D_v2(&raw const copy)), INVALID);
    }
    for copy in [plane(to, from, 4, 4, 4), plane(to, from, 4, 4, 0)] {
        ok!(fixture.api, cuMemcpy2D_v2(&raw const copy));
    }
    assert_eq!(cu!(fixture.api, cuMemsetD2D32_v2(to, 8, 1, 3, 2)), INVALID);
    assert_eq!(cu!(fixture.api, cuMemsetD2D32_v2(to, 6, 1, 1, 2)), INVALID);
    ok!(fixture.api, cuMemsetD2D16_v2(to, 8, 0x0101, 1, 2));
    assert_eq!(fixture.download(to + 8, 2), [1, 1]);
}

#[test]
fn batch_requires_a_stream_attributes_and_copies() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let (from, to) = (fixture.alloc(8), fixture.alloc(8));
    fixture.upload(from, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let stream = fixture.stream(1);
    let batch = |stream, order: u32, first: usize, size: usize| {
        let (mut targets, mut sources, mut sizes) = ([to, to + 4], [from + 4, from], [4, size]);
        let mut attributes = CUmemcpyAttributes {
            srcAccessOrder: CUmemcpySrcAccessOrder(order),
            ..CUmemcpyAttributes::default()
        };
        let mut first = first;
        let (targets, sources, sizes) = (
            targets.as_mut_ptr(),
            sources.as_mut_ptr(),
            sizes.as_mut_ptr(),
        );
        cu!(
            api,
            cuMemcpyBatchAsync_v2(
                targets,
                sources,
                sizes,
                2,
                &raw mut attributes,
                &raw mut first,
                1,
                stream
            )
        )
    };
    assert_eq!(
        batch(ptr::null_mut(), 1, 0, 4),
        INVALID,
        "the legacy stream takes no batch"
    );
    assert_eq!(batch(stream, 0, 0, 4), INVALID, "an order is needed");
    assert_eq!(
        batch(stream, 1, 1, 4),
        INVALID,
        "the first copy has attributes"
    );
    assert_eq!(
        batch(stream, 1, 0, 5),
        INVALID,
        "the second copy does not fit"
    );
    assert_eq!(batch(stream, 1, 0, 4), CUresult::CUDA_SUCCESS);
    ok!(api, cuStreamSynchronize(stream));
    assert_eq!(fixture.download(to, 8), [5, 6, 7, 8, 1, 2, 3, 4]);
}

#[test]
fn copy_between_contexts_requires_live_ones() {
    let fixture = Fixture::with(Config::new().with_devices(2));
    let (from, to) = (fixture.alloc(4), fixture.alloc(4));
    fixture.upload(from, &[1, 2, 3, 4]);
    let (context, api) = (fixture.context, &fixture.api);
    ok!(api, cuMemcpyPeer(to, context, from, context, 4));
    assert_eq!(fixture.download(to, 4), [1, 2, 3, 4]);
    let error = cu!(api, cuMemcpyPeer(to, ptr::null_mut(), from, context, 4));
    assert_eq!(error, CUresult::CUDA_ERROR_INVALID_CONTEXT);
}

#[test]
fn advice_is_for_managed_memory() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let mut memory: CUdeviceptr = 0;
    ok!(api, cuMemAllocManaged(&raw mut memory, 8192, 1));
    let mut location = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        ..CUmemLocation::default()
    };
    ok!(
        api,
        cuMemAdvise_v2(
            memory,
            4096,
            CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
            location
        )
    );
    let preferred = |size: usize| {
        let mut device = 7_i32;
        let attribute = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
        ok!(
            api,
            cuMemRangeGetAttribute((&raw mut device).cast(), 4, attribute, memory, size)
        );
        device
    };
    assert_eq!((preferred(4096), preferred(8192)), (0, -2));
    location.__bindgen_anon_1.id = 5;
    let advice = CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY;
    assert_eq!(
        cu!(api, cuMemAdvise_v2(memory, 4096, advice, location)),
        CUresult::CUDA_ERROR_INVALID_DEVICE
    );
    assert_eq!(
        cu!(
            api,
            cuMemAdvise_v2(
                memory,
                8193,
                CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY,
                location
            )
        ),
        INVALID
    );
    let plain = fixture.alloc(4096);
    assert_eq!(
        cu!(api, cuMemPrefetchAsync(plain, 4096, 0, ptr::null_mut())),
        INVALID
    );
    ok!(api, cuMemPrefetchAsync(memory, 8192, -1, ptr::null_mut()));
    ok!(api, cuMemFree_v2(memory));
}
