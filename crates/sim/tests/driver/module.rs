//! Modules, libraries, functions and kernels.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use curium_sim::Config;
use curium_sys::{
    CUfunction, CUfunction_attribute, CUjit_option, CUjitInputType, CUkernel, CUlibrary, CUmodule,
    CUresult, CudaVersion,
};

use crate::ptx::SAXPY;
use crate::support::{Fixture, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

fn load(fixture: &Fixture, image: &[u8]) -> CUresult {
    let mut module = ptr::null_mut();
    cu!(
        fixture.api,
        cuModuleLoadData(&raw mut module, image.as_ptr().cast())
    )
}

/// Loads an image with a log buffer, and returns the code and the log.
fn load_with_log(fixture: &Fixture, image: &CStr) -> (CUresult, String) {
    let mut log = [0_u8; 256];
    let mut names = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values: [*mut c_void; 2] = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(log.len()),
    ];
    let mut module = ptr::null_mut();
    let image = image.as_ptr().cast();
    let code = cu!(
        fixture.api,
        cuModuleLoadDataEx(
            &raw mut module,
            image,
            2,
            names.as_mut_ptr(),
            values.as_mut_ptr()
        )
    );
    let length = values[1].addr();
    (code, String::from_utf8_lossy(&log[..length]).into_owned())
}

#[test]
fn images_without_ptx_are_distinguished() {
    let fixture = Fixture::new();
    assert_eq!(load(&fixture, b"\0"), CUresult::CUDA_ERROR_INVALID_IMAGE);
    assert_eq!(
        load(&fixture, b"garbage\0"),
        CUresult::CUDA_ERROR_INVALID_IMAGE
    );
    assert_eq!(
        load(&fixture, b"\x7fELF\x02\x01\0"),
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
    );
    let empty_fat_binary = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        load(&fixture, &empty_fat_binary),
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
    );
    let mut module = ptr::null_mut();
    assert_eq!(
        cu!(fixture.api, cuModuleLoadData(&raw mut module, ptr::null())),
        INVALID
    );
    let missing = cu!(
        fixture.api,
        cuModuleLoad(&raw mut module, c"/no/such/file.ptx".as_ptr())
    );
    assert_eq!(missing, CUresult::CUDA_ERROR_FILE_NOT_FOUND);
}

/// Fat binaries of nvcc 13.5 from a kernel `add(int* x, int y)` for several targets: uncompressed, and with both compressions.
const FAT_BINARIES: [&[u8]; 3] = [
    include_bytes!("../images/plain.fatbin"),
    include_bytes!("../images/lz4.fatbin"),
    include_bytes!("../images/zstd.fatbin"),
];

/// Adds 5 to 4 in one thread.
fn add(fixture: &Fixture, function: CUfunction) {
    let memory = fixture.alloc(4);
    fixture.upload(memory, &[4, 0, 0, 0]);
    let (mut address, mut addend) = (memory, 5_i32);
    let mut values: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut addend).cast()];
    let none = ptr::null_mut();
    let launch = cu!(
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
            values.as_mut_ptr(),
            none
        )
    );
    assert_eq!(launch, CUresult::CUDA_SUCCESS);
    assert_eq!(fixture.download(memory, 4), [9, 0, 0, 0]);
}

#[test]
fn fat_binary_with_ptx_is_loaded_by_every_loader() {
    /// The record that CUDA C++ compilers emit into the data of a program.
    #[repr(C)]
    struct Record {
        magic: u32,
        version: u32,
        binary: *const c_void,
        unused: *const c_void,
    }
    for binary in FAT_BINARIES {
        let fixture = Fixture::new();
        let api = &fixture.api;
        let data: *const c_void = binary.as_ptr().cast();
        let record = Record {
            magic: 0x4662_43b1,
            version: 1,
            binary: data,
            unused: ptr::null(),
        };
        let record: *const c_void = (&raw const record).cast();
        let none = ptr::null_mut();
        for image in [data, record] {
            let modules: [CUmodule; 2] = [
                handle!(api, cuModuleLoadData(_, image)),
                handle!(api, cuModuleLoadFatBinary(_, image)),
            ];
            for module in modules {
                add(
                    &fixture,
                    handle!(api, cuModuleGetFunction(_, module, c"add".as_ptr())),
                );
            }
            let library: CUlibrary = handle!(
                api,
                cuLibraryLoadData(
                    _,
                    image,
                    none,
                    ptr::null_mut(),
                    0,
                    ptr::null_mut(),
                    ptr::null_mut(),
                    0
                )
            );
            let kernel: CUkernel = handle!(api, cuLibraryGetKernel(_, library, c"add".as_ptr()));
            add(&fixture, kernel.cast());
        }
        let mut link = ptr::null_mut();
        ok!(
            api,
            cuLinkCreate_v2(0, none, ptr::null_mut(), &raw mut link)
        );
        let kind = CUjitInputType::CU_JIT_INPUT_FATBINARY;
        let size = binary.len();
        ok!(
            api,
            cuLinkAddData_v2(
                link,
                kind,
                data.cast_mut(),
                size,
                ptr::null(),
                0,
                none,
                ptr::null_mut()
            )
        );
        let (mut image, mut size) = (ptr::null_mut(), 0);
        ok!(api, cuLinkComplete(link, &raw mut image, &raw mut size));
        let module: CUmodule = handle!(api, cuModuleLoadData(_, image));
        add(
            &fixture,
            handle!(api, cuModuleGetFunction(_, module, c"add".as_ptr())),
        );
    }
}

#[test]
fn error_in_ptx_is_logged_with_its_line() {
    let fixture = Fixture::new();
    let image =
        c".version 8.0\n.target sm_75\n.address_size 64\n.entry k() {\n  frobnicate.u32 %r1;\n}\n";
    let (code, log) = load_with_log(&fixture, image);
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(log.contains("line 5; error"), "{log}");
}

#[test]
fn instruction_that_is_not_supported_is_refused_by_name_at_load() {
    let fixture = Fixture::new();
    let image =
        c".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n  wgmma.fence.sync.aligned;\n  ret;\n}\n";
    let (code, log) = load_with_log(&fixture, image);
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(log.contains("wgmma"), "{log}");
}

#[test]
fn instruction_of_a_later_version_or_target_is_refused_with_its_requirement() {
    let fixture = Fixture::new();
    for (header, needed) in [
        (".version 7.0\n.target sm_75", "target sm_80 or higher"),
        (
            ".version 6.5\n.target sm_75",
            "PTX ISA version 7.0 or later",
        ),
    ] {
        let text = format!(
            "{header}\n.address_size 64\n.entry k() {{\n.reg .b32 %r<2>;\n  redux.sync.add.s32 %r0, %r1, -1;\n  ret;\n}}\n"
        );
        let (code, log) = load_with_log(&fixture, &CString::new(text).expect("there is no NUL"));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(
            log.contains("line 6; error") && log.contains(&format!("{needed} for 'redux'")),
            "{log}"
        );
    }
}

#[test]
fn log_is_cut_to_its_buffer() {
    let fixture = Fixture::new();
    let mut log = [1_u8; 8];
    let mut names = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
    ];
    let mut values: [*mut c_void; 2] = [ptr::without_provenance_mut(6), log.as_mut_ptr().cast()];
    let mut module = ptr::null_mut();
    let image = c".version 8.0 nonsense".as_ptr().cast();
    let code = cu!(
        fixture.api,
        cuModuleLoadDataEx(
            &raw mut module,
            image,
            2,
            names.as_mut_ptr(),
            values.as_mut_ptr()
        )
    );
    assert_ne!(code, CUresult::CUDA_SUCCESS);
    assert_eq!(log[5..], [0, 1, 1]);
    assert_eq!(values[0].addr(), 5);
}

#[test]
fn ptx_newer_than_the_driver_is_an_unsupported_version() {
    let old = Fixture::with(Config::new().with_driver_version(CudaVersion::new(11, 8)));
    assert_eq!(
        load(&old, SAXPY.to_bytes_with_nul()),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    );
    let new = Fixture::with(Config::new().with_driver_version(CudaVersion::new(12, 0)));
    assert_eq!(
        load(&new, SAXPY.to_bytes_with_nul()),
        CUresult::CUDA_SUCCESS
    );
}

#[test]
fn ptx_for_a_newer_device_is_invalid() {
    let fixture = Fixture::new();
    let image = c".version 8.8\n.target sm_100\n.address_size 64\n.entry k() { ret; }\n";
    assert_eq!(
        load(&fixture, image.to_bytes_with_nul()),
        CUresult::CUDA_ERROR_INVALID_PTX
    );
}

#[test]
fn names_are_found_or_not() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let mut function = ptr::null_mut();
    let mut get = |name: *const _| cu!(api, cuModuleGetFunction(&raw mut function, module, name));
    assert_eq!(get(c"saxpy".as_ptr()), CUresult::CUDA_SUCCESS);
    assert_eq!(get(c"nothing".as_ptr()), CUresult::CUDA_ERROR_NOT_FOUND);
    assert_eq!(get(c"".as_ptr()), INVALID);
    assert_eq!(get(ptr::null()), INVALID);
    let (mut address, mut size) = (0, 0);
    let missing = cu!(
        api,
        cuModuleGetGlobal_v2(&raw mut address, &raw mut size, module, c"nothing".as_ptr())
    );
    assert_eq!(missing, CUresult::CUDA_ERROR_NOT_FOUND);
    let name = {
        let mut name = ptr::null();
        ok!(api, cuFuncGetName(&raw mut name, function));
        // SAFETY: the name is text that lives as long as the module.
        unsafe { CStr::from_ptr(name) }
    };
    assert_eq!(name, c"saxpy");
}

#[test]
fn variables_hold_their_initial_values_and_addresses() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let global = |name: &CStr| {
        let (mut address, mut size) = (0, 0);
        ok!(
            api,
            cuModuleGetGlobal_v2(&raw mut address, &raw mut size, module, name.as_ptr())
        );
        (address, fixture.download(address, size))
    };
    let (counter, value) = global(c"counter");
    assert_eq!(value, 7_u32.to_le_bytes());
    assert_eq!(global(c"address_of_counter").1, counter.to_le_bytes());
}

#[test]
fn module_is_unloaded_once_and_its_functions_with_it() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let function = handle!(api, cuModuleGetFunction(_, module, c"count".as_ptr()));
    assert_eq!(fixture.simulator.live_handles().modules, 1);
    ok!(api, cuModuleUnload(module));
    assert_eq!(
        cu!(api, cuModuleUnload(module)),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    let mut value = 0;
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
    let stale = cu!(api, cuFuncGetAttribute(&raw mut value, attribute, function));
    assert_eq!(stale, CUresult::CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(fixture.simulator.live_handles().modules, 0);
}

#[test]
fn module_of_a_destroyed_context_is_of_a_destroyed_context() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let context = handle!(api, cuCtxCreate_v2(_, 0, 0));
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    ok!(api, cuCtxDestroy_v2(context));
    assert_eq!(
        cu!(api, cuModuleUnload(module)),
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    );
}

#[test]
fn parameters_are_described_up_to_the_last() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let saxpy = handle!(api, cuModuleGetFunction(_, module, c"saxpy".as_ptr()));
    let info = |index| {
        let (mut offset, mut size) = (99, 99);
        (
            cu!(
                api,
                cuFuncGetParamInfo(saxpy, index, &raw mut offset, &raw mut size)
            ),
            offset,
            size,
        )
    };
    let ok = CUresult::CUDA_SUCCESS;
    assert_eq!(
        [info(0), info(1), info(2), info(3)],
        [(ok, 0, 8), (ok, 8, 8), (ok, 16, 4), (ok, 20, 4)]
    );
    assert_eq!(info(4).0, INVALID);
}

#[test]
fn attributes_of_a_function_follow_its_directives() {
    use CUfunction_attribute as Attribute;

    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let limited = handle!(api, cuModuleGetFunction(_, module, c"limited".as_ptr()));
    let read = |attribute| get!(api, cuFuncGetAttribute(_, attribute, limited));
    assert_eq!(read(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
    assert_eq!(read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
    assert_eq!(read(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION), 75);
    assert_eq!(read(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
    assert_eq!(
        read(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        47 << 10
    );
    let dynamic = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_eq!(
        cu!(api, cuFuncSetAttribute(limited, dynamic, 232_448)),
        INVALID
    );
    ok!(api, cuFuncSetAttribute(limited, dynamic, 232_448 - 1024));
}

#[test]
fn occupancy_is_that_of_the_device_model() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let count = handle!(api, cuModuleGetFunction(_, module, c"count".as_ptr()));
    let active = |block, shared| {
        get!(
            api,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(_, count, block, shared)
        )
    };
    assert_eq!(active(1024, 0), 2);
    assert_eq!(active(32, 0), 32);
    assert_eq!(active(32, 48 << 10), 4);
    let (mut grid, mut block): (i32, i32) = (0, 0);
    ok!(
        api,
        cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, count, None, 0, 0)
    );
    assert_eq!((grid, block), (2 * 132, 1024));
}
