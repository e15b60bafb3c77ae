//! Modules, libraries, functions and kernels.

use crate::TestResult;
use std::ffi::{CStr, CString, c_void};
use std::ptr;

use curium_sim::Config;
use curium_sys::{
    CUfunction, CUjit_option, CUjitInputType, CUkernel, CUlibrary, CUmodule, CUresult, CudaVersion,
};

use crate::ptx::SAXPY;
use crate::support::{Fixture, cu, get, handle, ok};

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

/// Fat binaries of nvcc 13.5 from a kernel `add(int* x, int y)` for several targets: uncompressed,
/// and with both compressions.
const FAT_BINARIES: [&[u8]; 3] = [
    include_bytes!("../images/plain.fatbin"),
    include_bytes!("../images/lz4.fatbin"),
    include_bytes!("../images/zstd.fatbin"),
];

/// Adds 5 to 4 in one thread.
fn add(fixture: &Fixture, function: CUfunction) {
    let memory = fixture.alloc(4);
    fixture.upload(memory, &[4, 0, 0, 0]);
    let mut address = memory;
    let mut addend = 5_i32;
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
fn fat_binary_is_loaded() {
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
        let mut image = ptr::null_mut();
        let mut size = 0;
        ok!(api, cuLinkComplete(link, &raw mut image, &raw mut size));
        let module: CUmodule = handle!(api, cuModuleLoadData(_, image));
        add(
            &fixture,
            handle!(api, cuModuleGetFunction(_, module, c"add".as_ptr())),
        );
    }
}

#[test]
fn unsupported_instruction() {
    let fixture = Fixture::new();
    let image =
        c".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n  wgmma.fence.sync.aligned;\n  ret;\n}\n";
    let (code, log) = load_with_log(&fixture, image);
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(log.contains("wgmma"), "{log}");
}

#[test]
fn instruction_needs_its_version() -> TestResult {
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
        let (code, log) = load_with_log(&fixture, &CString::new(text)?);
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(
            log.contains("line 6; error") && log.contains(&format!("redux: requires {needed}")),
            "{log}"
        );
    }
    Ok(())
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
fn newer_ptx_is_unsupported() {
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
fn newer_target_is_invalid() {
    let fixture = Fixture::new();
    let image = c".version 8.8\n.target sm_100\n.address_size 64\n.entry k() { ret; }\n";
    assert_eq!(
        load(&fixture, image.to_bytes_with_nul()),
        CUresult::CUDA_ERROR_INVALID_PTX
    );
}

#[test]
fn occupancy_follows_the_model() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, SAXPY.as_ptr().cast()));
    let count = handle!(api, cuModuleGetFunction(_, module, c"count".as_ptr()));
    for (block, shared, expected) in [(1024, 0, 2), (32, 0, 32), (32, 48 << 10, 4)] {
        let blocks: i32 = get!(
            api,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(_, count, block, shared)
        );
        assert_eq!(blocks, expected);
    }
    let mut grid = 0;
    let mut block = 0;
    ok!(
        api,
        cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, count, None, 0, 0)
    );
    assert_eq!((grid, block), (2 * 132, 1024));
}

/// A program that ignores the code of a refused image still leaves a report.
#[test]
fn refused_image_is_reported() {
    let fixture = Fixture::new();
    let image = c".version 8.0\n.target sm_75\n.address_size 64\n.entry k() { nonsense; }\n";
    let mut module = ptr::null_mut();
    for _ in 0..2 {
        assert_eq!(
            cu!(
                fixture.api,
                cuModuleLoadData(&raw mut module, image.as_ptr().cast())
            ),
            CUresult::CUDA_ERROR_INVALID_PTX
        );
    }
    let reports = fixture.simulator.reports();
    let [report] = &reports[..] else {
        panic!("{reports:?}")
    };
    let text = report.to_string();
    assert!(text.starts_with("warning: refused image: "), "{text}");
    assert!(text.contains("line 4"), "{text}");
}
