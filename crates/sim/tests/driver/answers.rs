//! Codes and answers as measured on an H200 (CUDA 13.0).

use std::ffi::CStr;
use std::ptr;

use curium_sim::{Config, Simulator};
use curium_sys::{
    CUdeviceptr, CUfunction, CUjitInputType, CUlibrary, CUlinkState, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocationType, CUmemPoolProps, CUmemoryPool, CUmodule,
    CUmoduleLoadingMode, CUresult, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill,
    CUtensorMapIm2ColWideMode, CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle,
    CudaVersion,
};

use crate::launch::poke;
use crate::support::{Fixture, cu, get, handle, ok};

const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

const EMPTY: &CStr =
    c".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty() { ret; }\n";
const BROKEN: &CStr =
    c".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty() { nothing; }\n";
const CALLING: &CStr = c".version 7.0\n.target sm_52\n.address_size 64\n.extern .func missing;\n.visible .entry empty() { call missing; ret; }\n";

fn add(fixture: &Fixture, link: CUlinkState, text: &CStr) -> CUresult {
    let size = text.to_bytes_with_nul().len();
    cu!(
        fixture.api,
        cuLinkAddData_v2(
            link,
            CUjitInputType::CU_JIT_INPUT_PTX,
            text.as_ptr().cast_mut().cast(),
            size,
            ptr::null(),
            0,
            ptr::null_mut(),
            ptr::null_mut()
        )
    )
}

fn new_link(fixture: &Fixture) -> CUlinkState {
    let mut link = ptr::null_mut();
    ok!(
        fixture.api,
        cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &raw mut link)
    );
    link
}

fn complete(fixture: &Fixture, link: CUlinkState) -> CUresult {
    let mut image = ptr::null_mut();
    let mut size = 0;
    cu!(
        fixture.api,
        cuLinkComplete(link, &raw mut image, &raw mut size)
    )
}

#[test]
fn link_is_completed_once() {
    let fixture = Fixture::new();
    let undefined = new_link(&fixture);
    assert_eq!(add(&fixture, undefined, CALLING), CUresult::CUDA_SUCCESS);
    assert_eq!(
        complete(&fixture, undefined),
        CUresult::CUDA_ERROR_INVALID_SOURCE
    );
    let twice = new_link(&fixture);
    assert_eq!(add(&fixture, twice, EMPTY), CUresult::CUDA_SUCCESS);
    assert_eq!(
        add(&fixture, twice, EMPTY),
        CUresult::CUDA_ERROR_INVALID_SOURCE
    );
    let empty = new_link(&fixture);
    assert_eq!(complete(&fixture, empty), CUresult::CUDA_SUCCESS);
    assert_eq!(complete(&fixture, empty), INVALID_HANDLE);
    assert_eq!(add(&fixture, empty, EMPTY), INVALID_VALUE);
}

fn load_library(fixture: &Fixture, text: &CStr) -> (CUresult, CUlibrary) {
    let mut library = ptr::null_mut();
    let code = cu!(
        fixture.api,
        cuLibraryLoadData(
            &raw mut library,
            text.as_ptr().cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            0
        )
    );
    (code, library)
}

fn loading_mode(fixture: &Fixture) -> CUmoduleLoadingMode {
    let mut mode = CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING;
    ok!(fixture.api, cuModuleGetLoadingMode(&raw mut mode));
    mode
}

#[test]
fn library_is_compiled_on_first_use() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    assert_eq!(
        loading_mode(&fixture),
        CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING
    );
    let (code, library) = load_library(&fixture, BROKEN);
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    assert!(fixture.simulator.reports().is_empty());
    for _ in 0..2 {
        let mut kernel = ptr::null_mut();
        let code = cu!(
            api,
            cuLibraryGetKernel(&raw mut kernel, library, c"empty".as_ptr())
        );
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        let mut module: CUmodule = ptr::null_mut();
        let code = cu!(api, cuLibraryGetModule(&raw mut module, library));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        let mut count = 0;
        let code = cu!(api, cuLibraryGetKernelCount(&raw mut count, library));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    }
    assert!(!fixture.simulator.reports().is_empty());
    ok!(api, cuLibraryUnload(library));
    let (code, library) = load_library(&fixture, EMPTY);
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    assert_eq!(get!(api, cuLibraryGetKernelCount(_, library)), 1);
    let mut kernel = ptr::null_mut();
    let code = cu!(
        api,
        cuLibraryGetKernel(&raw mut kernel, library, c"".as_ptr())
    );
    assert_eq!(code, CUresult::CUDA_ERROR_NOT_FOUND);
}

/// Drivers before CUDA 12.2 compile a library when it is loaded.
#[test]
fn older_driver_compiles_a_library_at_once() {
    let config = Config::new().with_driver_version(CudaVersion::new(12, 0));
    let fixture = Fixture::with(config);
    let (code, _) = load_library(&fixture, BROKEN);
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    assert_eq!(
        loading_mode(&fixture),
        CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING
    );
}

fn host_pool(
    fixture: &Fixture,
    kind: CUmemLocationType,
    handles: CUmemAllocationHandleType,
) -> (CUresult, CUmemoryPool) {
    let mut properties = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: handles,
        ..CUmemPoolProps::default()
    };
    properties.location.type_ = kind;
    let mut pool = ptr::null_mut();
    let code = cu!(
        fixture.api,
        cuMemPoolCreate(&raw mut pool, &raw const properties)
    );
    (code, pool)
}

#[test]
#[cfg(target_os = "linux")]
fn host_pool_is_shared_at_a_numa_node_only() {
    const DESCRIPTOR: CUmemAllocationHandleType =
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let fixture = Fixture::new();
    let host = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST;
    let node = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA;
    assert_eq!(host_pool(&fixture, host, DESCRIPTOR).0, INVALID_VALUE);
    assert_eq!(
        host_pool(&fixture, node, DESCRIPTOR).0,
        CUresult::CUDA_SUCCESS
    );
}

/// A copy by unified addresses treats memory of a host pool as the host's; a device needs rights to
/// it.
#[test]
fn unified_copies_reach_host_pools() {
    let none = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE;
    let fixture = Fixture::new();
    let api = &fixture.api;
    let (code, pool) = host_pool(&fixture, CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, none);
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    let host = get!(api, cuMemAllocFromPoolAsync(_, 64, pool, ptr::null_mut()));
    let device = fixture.alloc(64);
    fixture.upload(device, &[7; 64]);
    ok!(api, cuMemcpy(host, device, 64));
    ok!(api, cuMemsetD8_v2(device, 0, 64));
    ok!(api, cuMemcpyAsync(device, host, 64, ptr::null_mut()));
    assert_eq!(fixture.download(device, 64), [7; 64]);
    assert_eq!(cu!(api, cuMemcpy(host, device, 65)), INVALID_VALUE);
    assert_eq!(cu!(api, cuMemcpyDtoD_v2(host, device, 64)), INVALID_VALUE);
    let mut base = 0;
    let code = cu!(
        api,
        cuMemGetAddressRange_v2(&raw mut base, ptr::null_mut(), host)
    );
    assert_eq!(code, CUresult::CUDA_ERROR_NOT_FOUND);
}

/// Encodes a map of a tensor of 64 x 16 x 16 elements.
fn encode(
    fixture: &Fixture,
    data_type: CUtensorMapDataType,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
) -> CUresult {
    let mut map = CUtensorMap { opaque: [0; 16] };
    let extents = [64_u64, 16, 16];
    let strides = [512_u64, 8192];
    let boxed = [8_u32, 4, 1];
    let steps = [1_u32; 3];
    cu!(
        fixture.api,
        cuTensorMapEncodeTiled(
            &raw mut map,
            data_type,
            3,
            ptr::without_provenance_mut(0x1000),
            extents.as_ptr(),
            strides.as_ptr(),
            boxed.as_ptr(),
            steps.as_ptr(),
            interleave,
            swizzle,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
        )
    )
}

#[test]
fn hopper_swizzles() {
    let fixture = Fixture::new();
    let float = CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    let none = CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE;
    let slices = CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B;
    for number in 0..8 {
        let expected = if number <= 3 {
            CUresult::CUDA_SUCCESS
        } else {
            INVALID_VALUE
        };
        for interleave in [none, slices] {
            let code = encode(&fixture, float, interleave, CUtensorMapSwizzle(number));
            assert_eq!(code, expected, "swizzle {number}, {interleave:?}");
        }
    }
    let unswizzled = CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE;
    for number in 12..17 {
        let code = encode(&fixture, CUtensorMapDataType(number), none, unswizzled);
        assert_eq!(code == CUresult::CUDA_SUCCESS, number == 12, "{number}");
    }
}

/// Encodes a map of columns along the width. Returns the code, and `true` if the map was written.
fn encode_wide(fixture: &Fixture, pixels: u32, swizzle: CUtensorMapSwizzle) -> (CUresult, bool) {
    let mut map = CUtensorMap { opaque: [0; 16] };
    let extents = [64_u64, 16, 16];
    let strides = [512_u64, 8192];
    let steps = [1_u32; 3];
    let code = cu!(
        fixture.api,
        cuTensorMapEncodeIm2colWide(
            &raw mut map,
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            3,
            ptr::without_provenance_mut(0x1000),
            extents.as_ptr(),
            strides.as_ptr(),
            0,
            0,
            16,
            pixels,
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
            swizzle,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
        )
    );
    (code, map.opaque != [0; 16])
}

#[test]
fn wide_im2col_map_is_encoded() {
    let fixture = Fixture::new();
    let swizzle = CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B;
    assert_eq!(
        encode_wide(&fixture, 64, swizzle),
        (CUresult::CUDA_SUCCESS, true)
    );
    assert_eq!(encode_wide(&fixture, 1025, swizzle), (INVALID_VALUE, false));
    let unswizzled = CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE;
    assert_eq!(
        encode_wide(&fixture, 64, unswizzled),
        (INVALID_VALUE, false)
    );
}

/// Some functions check their arguments before the initialization, and some need none.
#[test]
fn arguments_are_checked_before_initialization() -> crate::TestResult {
    let simulator = Simulator::new(Config::new())?;
    let api = simulator.api();
    let mut output = ptr::null_mut();
    assert_eq!(cu!(api, cuEventQuery(ptr::null_mut())), INVALID_HANDLE);
    assert_eq!(cu!(api, cuStreamCreate(&raw mut output, 4)), INVALID_VALUE);
    let uninitialized = CUresult::CUDA_ERROR_NOT_INITIALIZED;
    assert_eq!(cu!(api, cuStreamCreate(&raw mut output, 0)), uninitialized);
    assert_eq!(
        cu!(
            api,
            cuStreamCreateWithPriority(&raw mut output, u32::MAX, 0)
        ),
        INVALID_VALUE
    );
    assert_eq!(cu!(api, cuStreamQuery(ptr::null_mut())), uninitialized);
    let mut iterator = 0;
    ok!(api, cuLogsCurrent(&raw mut iterator, 0));
    ok!(api, cuInit(0));
    assert_eq!(
        cu!(api, cuStreamCreate(&raw mut output, 0)),
        CUresult::CUDA_ERROR_INVALID_CONTEXT
    );
    Ok(())
}

fn launch(fixture: &Fixture, function: CUfunction, grid: [u32; 3], block: [u32; 3]) -> CUresult {
    cu!(
        fixture.api,
        cuLaunchKernel(
            function,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut()
        )
    )
}

#[test]
fn extreme_launches_are_refused() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, EMPTY.as_ptr().cast()));
    let empty = handle!(api, cuModuleGetFunction(_, module, c"empty".as_ptr()));
    for extreme in [1 << 31, u32::MAX] {
        for axis in 0..3 {
            let mut sizes = [1; 3];
            sizes[axis] = extreme;
            assert_eq!(launch(&fixture, empty, sizes, [1; 3]), INVALID_VALUE);
            assert_eq!(launch(&fixture, empty, [1; 3], sizes), INVALID_VALUE);
        }
        assert_eq!(launch(&fixture, empty, [extreme; 3], [1; 3]), INVALID_VALUE);
        assert_eq!(launch(&fixture, empty, [1; 3], [extreme; 3]), INVALID_VALUE);
    }
}

/// Kernels have no access to the memory of another device without peer access.
#[test]
fn kernel_needs_peer_access_to_every_kind() {
    type Allocate = fn(&Fixture) -> CUdeviceptr;
    const KINDS: [Allocate; 4] = [
        |fixture| fixture.alloc(64),
        |fixture| {
            let mut pitch = 0;
            get!(fixture.api, cuMemAllocPitch_v2(_, &raw mut pitch, 16, 4, 4))
        },
        |fixture| get!(fixture.api, cuMemAllocAsync(_, 64, ptr::null_mut())),
        |fixture| {
            let module = handle!(fixture.api, cuModuleLoadData(_, SCRATCH.as_ptr().cast()));
            let mut size = 0;
            get!(
                fixture.api,
                cuModuleGetGlobal_v2(_, &raw mut size, module, c"scratch".as_ptr())
            )
        },
    ];
    const SCRATCH: &CStr =
        c".version 7.0\n.target sm_52\n.address_size 64\n.visible .global .align 8 .b8 scratch[64];\n";
    for allocate in KINDS {
        let fixture = Fixture::with(Config::new().with_devices(2));
        let api = &fixture.api;
        let other = handle!(api, cuDevicePrimaryCtxRetain(_, 1));
        ok!(api, cuCtxSetCurrent(other));
        let memory = allocate(&fixture);
        ok!(api, cuCtxSynchronize());
        ok!(api, cuCtxSetCurrent(fixture.context));
        assert_eq!(poke(&fixture, memory), CUresult::CUDA_SUCCESS);
        assert_eq!(
            cu!(api, cuCtxSynchronize()),
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        );
        let report = format!("{:#}", fixture.simulator.reports()[0]);
        assert!(
            report.contains("hint: the device has no access to this memory: enable peer access"),
            "{report}"
        );
    }
    let fixture = Fixture::with(Config::new().with_devices(2));
    let api = &fixture.api;
    let other = handle!(api, cuDevicePrimaryCtxRetain(_, 1));
    ok!(api, cuCtxSetCurrent(other));
    let memory = fixture.alloc(64);
    ok!(api, cuCtxSetCurrent(fixture.context));
    ok!(api, cuCtxEnablePeerAccess(other, 0));
    assert_eq!(poke(&fixture, memory), CUresult::CUDA_SUCCESS);
    ok!(api, cuCtxSynchronize());
}
