//! Faults of kernels.

use std::ffi::{CStr, c_void};
use std::ptr;

use curium_sys::{CUdeviceptr, CUfunction, CUresult};

use crate::ptx::POKE;
use crate::support::{self, Fixture, cu, get, handle, ok};

fn function(fixture: &Fixture, image: &CStr, name: &CStr) -> CUfunction {
    let module = handle!(fixture.api, cuModuleLoadData(_, image.as_ptr().cast()));
    handle!(fixture.api, cuModuleGetFunction(_, module, name.as_ptr()))
}

/// Launches one thread on the legacy stream.
fn launch(fixture: &Fixture, function: CUfunction, parameters: &mut [*mut c_void]) -> CUresult {
    let parameters = if parameters.is_empty() {
        ptr::null_mut()
    } else {
        parameters.as_mut_ptr()
    };
    cu!(
        fixture.api,
        cuLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            ptr::null_mut(),
            parameters,
            ptr::null_mut()
        )
    )
}

pub(crate) fn poke(fixture: &Fixture, address: CUdeviceptr) -> CUresult {
    let function = function(fixture, POKE, c"poke");
    let mut address = address;
    launch(fixture, function, &mut [(&raw mut address).cast()])
}

#[test]
fn illegal_address_is_sticky() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let memory = fixture.alloc(100);
    let stream = fixture.stream(0);
    assert_eq!(poke(&fixture, memory + 100), support::SUCCESS);
    let illegal = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_eq!(cu!(api, cuCtxSynchronize()), illegal);
    let mut address = 0;
    assert_eq!(cu!(api, cuMemAlloc_v2(&raw mut address, 4)), illegal);
    assert_eq!(cu!(api, cuMemFree_v2(memory)), illegal);
    assert_eq!(cu!(api, cuStreamDestroy_v2(stream)), illegal);
    let mut context = ptr::null_mut();
    assert_eq!(cu!(api, cuCtxCreate_v2(&raw mut context, 0, 0)), illegal);
    assert_eq!(
        cu!(api, cuDevicePrimaryCtxRetain(&raw mut context, 0)),
        illegal
    );
    assert_eq!(handle!(api, cuCtxGetCurrent(_)), fixture.context);
    assert_eq!(get!(api, cuCtxGetDevice(_)), 0);
    let mut kind = 0_u32;
    let attribute = curium_sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    ok!(
        api,
        cuPointerGetAttribute((&raw mut kind).cast(), attribute, memory)
    );
    ok!(api, cuDevicePrimaryCtxRelease_v2(0));
    assert_eq!(
        cu!(api, cuDevicePrimaryCtxRetain(&raw mut context, 0)),
        illegal
    );
    assert_eq!(
        cu!(api, cuMemAlloc_v2(&raw mut address, 4)),
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    );
    let faults = fixture.simulator.reports();
    assert_eq!(
        faults[0]
            .access
            .map(|access| (access.address, access.write)),
        Some((memory + 100, true))
    );
    fixture.simulator.reset_errors();
    ok!(api, cuDevicePrimaryCtxRetain(&raw mut context, 0));
}

#[test]
fn last_bytes_can_be_written() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(100);
    assert_eq!(poke(&fixture, memory + 96), support::SUCCESS);
    ok!(fixture.api, cuCtxSynchronize());
    assert_eq!(fixture.download(memory + 96, 4), [42, 0, 0, 0]);
}

#[test]
fn each_fault_has_its_code() {
    let fixture = Fixture::new();
    let misaligned = fixture.alloc(8) + 2;
    assert_eq!(poke(&fixture, misaligned), support::SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
    );
    let fixture = Fixture::new();
    let stop = function(&fixture, POKE, c"stop");
    assert_eq!(launch(&fixture, stop, &mut []), support::SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_LAUNCH_FAILED
    );
}

#[test]
fn freed_memory_is_illegal() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(64);
    ok!(fixture.api, cuMemFree_v2(memory));
    assert_eq!(poke(&fixture, memory), support::SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

/// Returns a module whose kernel has a local variable.
fn local_kernel(bytes: u32) -> std::ffi::CString {
    std::ffi::CString::new(format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry local() {{ .local .b8 box[{bytes}]; \
         st.local.u8 [box], 1; ret; }}\n"
    ))
    .expect("the text has no zero")
}

/// The local memory of all resident threads would exceed the memory of a device with 80 GB, or that
/// of one thread the maximum.
#[test]
fn launch_needs_memory_for_local_variables() {
    let fixture = Fixture::new();
    let too_large = function(&fixture, &local_kernel(512 << 10), c"local");
    assert_eq!(
        launch(&fixture, too_large, &mut []),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    let small = function(&fixture, &local_kernel(100_000), c"local");
    assert_eq!(launch(&fixture, small, &mut []), support::SUCCESS);
    let large = function(&fixture, &local_kernel(400_000), c"local");
    assert_eq!(
        launch(&fixture, large, &mut []),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY
    );
    ok!(fixture.api, cuCtxSynchronize());
}
