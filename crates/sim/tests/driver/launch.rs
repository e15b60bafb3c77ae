//! Launches.

use std::ffi::{CStr, c_void};
use std::ptr;

use curium_sim::Config;
use curium_sys::{CUdeviceptr, CUfunction, CUlaunchConfig, CUresult, CUstream};

use crate::ptx::{POKE, SAXPY};
use crate::support::{self, Fixture, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

fn function(fixture: &Fixture, image: &CStr, name: &CStr) -> CUfunction {
    let module = handle!(fixture.api, cuModuleLoadData(_, image.as_ptr().cast()));
    handle!(fixture.api, cuModuleGetFunction(_, module, name.as_ptr()))
}

/// Launches with a one-dimensional grid and block.
fn launch(
    fixture: &Fixture,
    function: CUfunction,
    (grid, block): (u32, u32),
    stream: CUstream,
    parameters: &mut [*mut c_void],
) -> CUresult {
    let parameters = if parameters.is_empty() {
        ptr::null_mut()
    } else {
        parameters.as_mut_ptr()
    };
    cu!(
        fixture.api,
        cuLaunchKernel(
            function,
            grid,
            1,
            1,
            block,
            1,
            1,
            0,
            stream,
            parameters,
            ptr::null_mut()
        )
    )
}

pub(crate) fn poke(fixture: &Fixture, address: CUdeviceptr) -> CUresult {
    let function = function(fixture, POKE, c"poke");
    let mut address = address;
    launch(
        fixture,
        function,
        (1, 1),
        ptr::null_mut(),
        &mut [(&raw mut address).cast()],
    )
}

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn saxpy_equals_the_hosts_result() {
    let fixture = Fixture::new();
    let saxpy = function(&fixture, SAXPY, c"saxpy");
    let n = 1000_u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let y: Vec<f32> = (0..n).map(|i| 1.0 - i as f32).collect();
    let (mut dx, mut dy, mut a, mut count) = (fixture.alloc(4000), fixture.alloc(4000), 3.0_f32, n);
    fixture.upload(dx, &floats(&x));
    fixture.upload(dy, &floats(&y));
    let mut parameters: [*mut c_void; 4] = [
        (&raw mut dx).cast(),
        (&raw mut dy).cast(),
        (&raw mut a).cast(),
        (&raw mut count).cast(),
    ];
    assert_eq!(
        launch(&fixture, saxpy, (8, 128), ptr::null_mut(), &mut parameters),
        support::SUCCESS
    );
    // The parameters were copied by the launch.
    (dx, dy, a, count) = (0, dy, 0.0, 0);
    assert_eq!((dx, a, count), (0, 0.0, 0));
    let expected: Vec<f32> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| 3.0_f32.mul_add(*x, *y))
        .collect();
    assert_eq!(fixture.download(dy, 4000), floats(&expected));
}

#[test]
fn parameters_in_a_buffer_serve_as_well_as_pointers() {
    let fixture = Fixture::new();
    let poke = function(&fixture, POKE, c"poke");
    let memory = fixture.alloc(4);
    let mut buffer = memory.to_le_bytes();
    let mut size = 8_usize;
    let mut extra: [*mut c_void; 5] = [
        curium_sys::CU_LAUNCH_PARAM_BUFFER_POINTER,
        buffer.as_mut_ptr().cast(),
        curium_sys::CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut size).cast(),
        curium_sys::CU_LAUNCH_PARAM_END,
    ];
    let null = ptr::null_mut();
    ok!(
        fixture.api,
        cuLaunchKernel(
            poke,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            ptr::null_mut(),
            null,
            extra.as_mut_ptr()
        )
    );
    assert_eq!(fixture.download(memory, 4), [42, 0, 0, 0]);
    let pointers = &mut [(&raw mut buffer).cast()];
    let both = cu!(
        fixture.api,
        cuLaunchKernel(
            poke,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            extra.as_mut_ptr()
        )
    );
    assert_eq!(both, INVALID);
}

#[test]
fn launch_with_a_shape_or_parameters_that_do_not_fit_is_an_invalid_value() {
    let fixture = Fixture::new();
    let module = handle!(fixture.api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let get = |name: &CStr| -> CUfunction {
        handle!(fixture.api, cuModuleGetFunction(_, module, name.as_ptr()))
    };
    let (count, limited, saxpy) = (get(c"count"), get(c"limited"), get(c"saxpy"));
    let try_shape =
        |function, grid, block| launch(&fixture, function, (grid, block), ptr::null_mut(), &mut []);
    assert_eq!(try_shape(count, 0, 1), INVALID);
    assert_eq!(try_shape(count, 1, 0), INVALID);
    assert_eq!(try_shape(count, 1, 1025), INVALID);
    assert_eq!(try_shape(count, 1 << 31, 1), INVALID);
    assert_eq!(try_shape(limited, 1, 65), INVALID);
    assert_eq!(try_shape(limited, 1, 64), support::SUCCESS);
    assert_eq!(try_shape(saxpy, 1, 1), INVALID, "parameters are missing");
    assert_eq!(
        try_shape(ptr::null_mut(), 1, 1),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    let null = ptr::null_mut();
    let shared = |bytes| {
        cu!(
            fixture.api,
            cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, bytes, ptr::null_mut(), null, null)
        )
    };
    assert_eq!(shared(48 << 10), support::SUCCESS);
    assert_eq!(shared((48 << 10) + 1), INVALID);
    let attribute =
        curium_sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    ok!(fixture.api, cuFuncSetAttribute(count, attribute, 100 << 10));
    assert_eq!(shared(100 << 10), support::SUCCESS);
}

#[test]
fn function_of_another_context_is_an_invalid_handle() {
    let fixture = Fixture::new();
    let count = function(&fixture, SAXPY, c"count");
    let other = handle!(fixture.api, cuCtxCreate_v2(_, 0, 0));
    assert_eq!(
        launch(&fixture, count, (1, 1), ptr::null_mut(), &mut []),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    ok!(fixture.api, cuCtxDestroy_v2(other));
    assert_eq!(
        launch(&fixture, count, (1, 1), ptr::null_mut(), &mut []),
        support::SUCCESS
    );
}

#[test]
fn kernel_of_a_library_is_launched_in_any_context() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let none = ptr::null_mut();
    let library = handle!(
        api,
        cuLibraryLoadData(
            _,
            SAXPY.as_ptr().cast(),
            ptr::null_mut(),
            none,
            0,
            ptr::null_mut(),
            none,
            0
        )
    );
    let kernel = handle!(api, cuLibraryGetKernel(_, library, c"count".as_ptr()));
    let read_counter = || {
        let (mut address, mut size) = (0, 0);
        ok!(
            api,
            cuLibraryGetGlobal(
                &raw mut address,
                &raw mut size,
                library,
                c"counter".as_ptr()
            )
        );
        assert_eq!(size, 4);
        fixture.download(address, 4)[0]
    };
    let as_function: CUfunction = kernel.cast();
    assert_eq!(
        launch(&fixture, as_function, (3, 32), ptr::null_mut(), &mut []),
        support::SUCCESS
    );
    assert_eq!(read_counter(), 7 + 96);
    let other = handle!(api, cuCtxCreate_v2(_, 0, 0));
    assert_eq!(read_counter(), 7);
    ok!(api, cuCtxDestroy_v2(other));
    ok!(api, cuLibraryUnload(library));
    assert_eq!(
        launch(&fixture, as_function, (1, 1), ptr::null_mut(), &mut []),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
}

#[test]
fn launch_on_a_stream_needs_no_current_context() {
    let fixture = Fixture::new();
    let count = function(&fixture, SAXPY, c"count");
    let stream = fixture.stream(1);
    ok!(fixture.api, cuCtxSetCurrent(ptr::null_mut()));
    assert_eq!(
        launch(&fixture, count, (1, 1), stream, &mut []),
        support::SUCCESS
    );
    ok!(fixture.api, cuStreamSynchronize(stream));
    assert_eq!(
        launch(&fixture, count, (1, 1), ptr::null_mut(), &mut []),
        CUresult::CUDA_ERROR_INVALID_CONTEXT
    );
}

#[test]
fn write_outside_of_all_memory_is_reported_later_and_sticks() {
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
fn last_bytes_of_an_allocation_can_be_written() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(100);
    assert_eq!(poke(&fixture, memory + 96), support::SUCCESS);
    ok!(fixture.api, cuCtxSynchronize());
    assert_eq!(fixture.download(memory + 96, 4), [42, 0, 0, 0]);
}

#[test]
fn each_fault_has_its_code() {
    let fault_of = |run: &dyn Fn(&Fixture)| {
        let fixture = Fixture::new();
        run(&fixture);
        cu!(fixture.api, cuCtxSynchronize())
    };
    let misaligned =
        fault_of(&|fixture| assert_eq!(poke(fixture, fixture.alloc(8) + 2), support::SUCCESS));
    assert_eq!(misaligned, CUresult::CUDA_ERROR_MISALIGNED_ADDRESS);
    let stop = |fixture: &Fixture| {
        let stop = function(fixture, POKE, c"stop");
        assert_eq!(
            launch(fixture, stop, (1, 1), ptr::null_mut(), &mut []),
            support::SUCCESS
        );
    };
    assert_eq!(fault_of(&stop), CUresult::CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
fn freed_memory_is_an_illegal_address_to_a_kernel() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(64);
    ok!(fixture.api, cuMemFree_v2(memory));
    assert_eq!(poke(&fixture, memory), support::SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

#[test]
fn kernel_writes_pinned_memory_in_place() {
    let fixture = Fixture::new();
    let pinned = handle!(fixture.api, cuMemHostAlloc(_, 4, 0));
    assert_eq!(
        poke(&fixture, pinned.expose_provenance() as CUdeviceptr),
        support::SUCCESS
    );
    ok!(fixture.api, cuCtxSynchronize());
    // SAFETY: the memory holds 4 bytes, and the kernel that wrote it has ended.
    assert_eq!(unsafe { pinned.cast::<u32>().read() }, 42);
}

#[test]
fn launch_by_configuration_takes_hints_and_clusters_that_the_grid_is_made_of() {
    use curium_sys::{CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue};

    let fixture = Fixture::new();
    let count = function(&fixture, SAXPY, c"count");
    let with = |id, value| {
        let mut attribute = CUlaunchAttribute {
            id,
            pad: [0; 4],
            value,
        };
        let config = CUlaunchConfig {
            gridDimX: 6,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: ptr::null_mut(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        cu!(
            fixture.api,
            cuLaunchKernelEx(&raw const config, count, ptr::null_mut(), ptr::null_mut())
        )
    };
    let priority = CUlaunchAttributeValue { priority: -1 };
    assert_eq!(
        with(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY, priority),
        support::SUCCESS
    );
    let cluster = |x| {
        let mut cluster = CUlaunchAttributeValue { pad: [0; 64] };
        cluster.clusterDim =
            curium_sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y: 1, z: 1 };
        with(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            cluster,
        )
    };
    assert_eq!([1, 2, 6].map(cluster), [support::SUCCESS; 3]);
    assert_eq!([0, 4].map(cluster), [INVALID; 2]);
    assert_eq!(with(CUlaunchAttributeID(99), priority), INVALID);
}

#[test]
fn cooperative_launch_that_does_not_fit_is_too_large() {
    let fixture = Fixture::with(Config::new().with_workers(2));
    let count = function(&fixture, SAXPY, c"count");
    let cooperative = |grid| {
        cu!(
            fixture.api,
            cuLaunchCooperativeKernel(
                count,
                grid,
                1,
                1,
                1024,
                1,
                1,
                0,
                ptr::null_mut(),
                ptr::null_mut()
            )
        )
    };
    assert_eq!(cooperative(4), support::SUCCESS);
    assert_eq!(
        cooperative(100_000),
        CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
    );
    ok!(fixture.api, cuCtxSynchronize());
}
