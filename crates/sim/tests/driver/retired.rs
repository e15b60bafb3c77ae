//! Functions that NVIDIA no longer documents, and variants for per-thread default streams.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use curium_sys::{
    CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUDA_ARRAY_DESCRIPTOR, CUarray, CUarray_format,
    CUcontext, CUdevprop, CUdriverProcAddressQueryResult, CUfunction, CUresult, CUstream,
};

use crate::ptx::SAXPY;
use crate::support::{Fixture, SUCCESS, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[test]
fn launch_is_set_step_by_step() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let saxpy: CUfunction = handle!(api, cuModuleGetFunction(_, module, c"saxpy".as_ptr()));
    let (x, y) = (fixture.alloc(64), fixture.alloc(64));
    ok!(api, cuMemsetD32_v2(x, 2_f32.to_bits(), 16));
    ok!(api, cuMemsetD32_v2(y, 1_f32.to_bits(), 16));
    let (mut x, mut y) = (x, y);
    ok!(api, cuParamSetv(saxpy, 0, (&raw mut x).cast(), 8));
    ok!(api, cuParamSetv(saxpy, 8, (&raw mut y).cast(), 8));
    ok!(api, cuParamSetf(saxpy, 16, 3.0));
    ok!(api, cuParamSeti(saxpy, 20, 16));
    ok!(api, cuParamSetSize(saxpy, 24));
    assert_eq!(cu!(api, cuParamSeti(saxpy, -4, 16)), INVALID);
    assert_eq!(
        cu!(api, cuLaunchGrid(saxpy, 2, 1)),
        INVALID,
        "no block shape was set"
    );
    assert_eq!(cu!(api, cuFuncSetBlockShape(saxpy, 0, 1, 1)), INVALID);
    ok!(api, cuFuncSetBlockShape(saxpy, 8, 1, 1));
    ok!(api, cuFuncSetSharedSize(saxpy, 0));
    let found = || f32::from_le_bytes(fixture.download(y + 60, 4).try_into().expect("four bytes"));
    ok!(api, cuLaunch(saxpy));
    assert!(
        (found() - 1.0).abs() < f32::EPSILON,
        "one block of eight threads"
    );
    ok!(api, cuLaunchGrid(saxpy, 2, 1));
    assert!((found() - 7.0).abs() < f32::EPSILON);
    let stream = fixture.stream(1);
    ok!(api, cuLaunchGridAsync(saxpy, 2, 1, stream));
    ok!(api, cuStreamSynchronize(stream));
    assert!((found() - 13.0).abs() < f32::EPSILON, "what was set stays");
}

#[test]
fn elements_of_arrays_are_copied() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8;
    let descriptor = CUDA_ARRAY_DESCRIPTOR {
        Width: 16,
        Height: 0,
        Format: format,
        NumChannels: 1,
    };
    let [first, second]: [CUarray; 2] =
        [(); 2].map(|()| handle!(api, cuArrayCreate_v2(_, &raw const descriptor)));
    let bytes: [u8; 8] = std::array::from_fn(|index| index as u8);
    ok!(api, cuMemcpyHtoA_v2(first, 4, bytes.as_ptr().cast(), 8));
    ok!(api, cuMemcpyAtoA_v2(second, 0, first, 6, 4));
    let memory = fixture.alloc(4);
    ok!(api, cuMemcpyAtoD_v2(memory, second, 0, 4));
    assert_eq!(fixture.download(memory, 4), [2, 3, 4, 5]);
    ok!(api, cuMemcpyDtoA_v2(first, 0, memory, 4));
    let mut found = [0_u8; 8];
    ok!(api, cuMemcpyAtoH_v2(found.as_mut_ptr().cast(), first, 0, 8));
    assert_eq!(found, [2, 3, 4, 5, 0, 1, 2, 3]);
    let stream = fixture.stream(1);
    ok!(
        api,
        cuMemcpyHtoAAsync_v2(second, 8, bytes.as_ptr().cast(), 8, stream)
    );
    ok!(
        api,
        cuMemcpyAtoHAsync_v2(found.as_mut_ptr().cast(), second, 8, 8, stream)
    );
    ok!(api, cuStreamSynchronize(stream));
    assert_eq!(found, bytes);
    assert_eq!(
        cu!(api, cuMemcpyHtoA_v2(first, 12, bytes.as_ptr().cast(), 8)),
        INVALID
    );
}

#[test]
fn context_lives_until_its_last_user_detaches() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let context: CUcontext = handle!(api, cuCtxCreate(_, 0, 0));
    let attached: CUcontext = handle!(api, cuCtxAttach(_, 0));
    assert_eq!(attached, context);
    ok!(api, cuCtxDetach(context));
    ok!(api, cuCtxSynchronize());
    ok!(api, cuCtxDetach(context));
    assert_eq!(
        cu!(api, cuCtxDetach(context)),
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    );
    let mut current = ptr::null_mut();
    ok!(api, cuCtxGetCurrent(&raw mut current));
    assert_eq!(current, fixture.context);
    let properties: CUdevprop = get!(api, cuDeviceGetProperties(_, 0));
    assert_eq!(
        (properties.SIMDWidth, properties.maxThreadsPerBlock),
        (32, 1024)
    );
}

/// Returns the address of a function for these flags.
fn address(fixture: &Fixture, name: &CStr, flags: u64) -> *const c_void {
    let (mut address, mut status) = (ptr::null_mut(), CUdriverProcAddressQueryResult(9));
    let name: *const c_char = name.as_ptr();
    ok!(
        fixture.api,
        cuGetProcAddress_v2(name, &raw mut address, 13050, flags, &raw mut status)
    );
    assert_eq!(
        status,
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
    );
    address
}

#[test]
fn null_stream_of_a_variant_is_that_of_the_thread() {
    type Query = unsafe extern "C" fn(CUstream, *mut u64) -> CUresult;
    let fixture = Fixture::new();
    let number = |query: *const c_void, stream: CUstream| {
        // SAFETY: `cuStreamGetId` has this signature.
        let query: Query = unsafe { std::mem::transmute(query) };
        let mut number = 0;
        // SAFETY: the place is valid, and the stream is a default one.
        assert_eq!(unsafe { query(stream, &raw mut number) }, SUCCESS);
        number
    };
    let [usual, legacy, variant] =
        [0, 1, 2].map(|flags| address(&fixture, c"cuStreamGetId", flags));
    assert!(usual == legacy && usual != variant);
    let none = ptr::null_mut();
    assert_eq!(number(usual, none), number(usual, CU_STREAM_LEGACY));
    assert_eq!(
        number(variant, CU_STREAM_LEGACY),
        number(usual, CU_STREAM_LEGACY)
    );
    assert_eq!(number(variant, none), number(variant, CU_STREAM_PER_THREAD));
    assert_ne!(number(variant, none), number(usual, none));
    let [usual, variant] = [0, 2].map(|flags| address(&fixture, c"cuCtxSynchronize", flags));
    assert_eq!(usual, variant, "it uses no default stream");
}

#[test]
fn synchronous_variant_uses_the_stream_of_the_thread() {
    type Fill = unsafe extern "C" fn(u64, u8, usize) -> CUresult;
    let fixture = Fixture::new();
    let memory = fixture.alloc(4);
    // SAFETY: `cuMemsetD8_v2` has this signature.
    let fill: Fill = unsafe { std::mem::transmute(address(&fixture, c"cuMemsetD8", 2)) };
    let other = fixture.stream(1);
    let gate = fixture.block(other);
    // SAFETY: the memory has four bytes.
    assert_eq!(unsafe { fill(memory, 7, 4) }, SUCCESS);
    ok!(fixture.api, cuStreamSynchronize(CU_STREAM_PER_THREAD));
    gate.open();
    assert_eq!(fixture.download(memory, 4), [7; 4]);
}
