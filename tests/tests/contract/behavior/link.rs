//! Linking: symbols that several files of PTX define.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use curium_driver::Driver;
use curium_sys::{
    CUdeviceptr, CUfunction, CUjit_option, CUjitInputType, CUlinkState, CUmodule, CUresult,
};
use curium_tests::on_driver;

use super::call::{alloc, create, download, succeed, word};
use super::{OK, in_created_context};

/// The code and the log of a link that failed.
type LinkError = (CUresult, String);

/// Links texts, and loads the result. The driver reads the names of the options once: they are
/// other names afterward.
fn link(driver: &Driver, texts: &[String]) -> Result<CUmodule, LinkError> {
    let mut log = [0_u8; 200];
    let mut names = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(log.len()),
    ];
    let mut link: CUlinkState = ptr::null_mut();
    succeed!(
        driver,
        cuLinkCreate_v2(2, names.as_mut_ptr(), values.as_mut_ptr(), &raw mut link)
    );
    names.fill(CUjit_option::CU_JIT_WALL_TIME);
    for (number, text) in texts.iter().enumerate() {
        let text = CString::new(text.as_str()).expect("PTX has no NUL");
        let name = CString::new(format!("{number}.ptx")).expect("the name has no NUL");
        let code = returned!(
            driver,
            cuLinkAddData_v2(
                link,
                CUjitInputType::CU_JIT_INPUT_PTX,
                text.as_ptr().cast_mut().cast(),
                text.as_bytes_with_nul().len(),
                name.as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut()
            )
        );
        if code != OK {
            succeed!(driver, cuLinkDestroy(link));
            let log = CStr::from_bytes_until_nul(&log).expect("the log ends");
            return Err((code, log.to_string_lossy().into_owned()));
        }
    }
    let mut image = ptr::null_mut();
    let mut size = 0;
    let code = returned!(driver, cuLinkComplete(link, &raw mut image, &raw mut size));
    if code != OK {
        succeed!(driver, cuLinkDestroy(link));
        let log = CStr::from_bytes_until_nul(&log).expect("the log ends");
        return Err((code, log.to_string_lossy().into_owned()));
    }
    let module: CUmodule = create!(driver, cuModuleLoadData(_, image));
    succeed!(driver, cuLinkDestroy(link));
    Ok(module)
}

/// Launches a kernel in one thread with at most one parameter, and waits.
fn launch(driver: &Driver, module: CUmodule, name: &CStr, mut argument: CUdeviceptr) {
    let function: CUfunction = create!(driver, cuModuleGetFunction(_, module, name.as_ptr()));
    let mut parameters: [*mut c_void; 1] = [(&raw mut argument).cast()];
    succeed!(
        driver,
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
            parameters.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    succeed!(driver, cuCtxSynchronize());
}

/// Returns a text with a private counter and helper, and a kernel that adds to the counter and
/// stores it.
fn counting(kernel: &str, step: u32) -> String {
    format!(
        "
.version 7.0
.target sm_70
.address_size 64
.global .u32 count;
.func (.param .b32 r) next(.param .b32 by)
{{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [by];
    atom.global.add.u32 %r2, [count], %r1;
    add.u32 %r2, %r2, %r1;
    st.param.b32 [r], %r2;
    ret;
}}
.visible .entry {kernel}(.param .u64 out)
{{
    .reg .b64 %rd1;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [out];
    mov.b32 %r1, {step};
    {{
        .param .b32 by;
        .param .b32 r;
        st.param.b32 [by], %r1;
        call.uni (r), next, (by);
        ld.param.b32 %r2, [r];
    }}
    st.global.u32 [%rd1], %r2;
    ret;
}}
"
    )
}

#[test]
fn local_symbols_are_not_shared() {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let module = link(driver, &[counting("first", 1), counting("second", 10)])
                .expect("the symbols are local");
            let memory = alloc(driver, 4);
            let counts = [c"first", c"second", c"first", c"second"].map(|kernel| {
                launch(driver, module, kernel, memory);
                word(driver, memory)
            });
            assert_eq!(counts, [1, 10, 2, 20]);
            succeed!(driver, cuModuleUnload(module));
        });
    });
}

/// Returns a text with a declaration of `s`, and a kernel that adds one to its first element.
fn adding(declaration: &str, kernel: &str) -> String {
    format!(
        "
.version 7.8
.target sm_75
.address_size 64
{declaration}
.visible .entry {kernel}()
{{
    .reg .u32 %v;
    atom.global.add.u32 %v, [s], 1;
    ret;
}}
"
    )
}

const EXTERN: &str = ".extern .global .align 4 .u32 s;";
const COMMON: &str = ".common .global .align 4 .u32 s;";
const COMMON_OF_FOUR: &str = ".common .global .align 4 .u32 s[4];";
const VISIBLE: &str = ".visible .global .align 4 .u32 s = 7;";
const WEAK: &str = ".weak .global .align 4 .u32 s = 9;";

#[test]
fn common_symbols_are_one_variable() {
    // The declaration of each file, and the values of `s` after a kernel of each file has added
    // one.
    let cases: [(&str, &str, &[u32]); 8] = [
        (COMMON, COMMON, &[2]),
        (COMMON, COMMON_OF_FOUR, &[2, 0, 0, 0]),
        (COMMON_OF_FOUR, COMMON, &[2, 0, 0, 0]),
        (COMMON, VISIBLE, &[9]),
        (VISIBLE, COMMON, &[9]),
        (WEAK, COMMON, &[11]),
        (WEAK, VISIBLE, &[9]),
        (EXTERN, COMMON, &[2]),
    ];
    on_driver(|test| {
        for (first, second, expected) in cases {
            in_created_context(test, |driver, _| {
                let module = link(driver, &[adding(first, "a"), adding(second, "b")])
                    .expect("the definitions agree");
                launch(driver, module, c"a", 0);
                launch(driver, module, c"b", 0);
                let mut address = 0;
                let mut bytes = 0;
                succeed!(
                    driver,
                    cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, c"s".as_ptr())
                );
                let expected: Vec<u8> = expected
                    .iter()
                    .flat_map(|value| value.to_ne_bytes())
                    .collect();
                let values = download(driver, address, bytes);
                assert_eq!(values, expected, "{first} {second}");
                succeed!(driver, cuModuleUnload(module));
            });
        }
    });
}

#[test]
fn contradictory_definitions_are_rejected_by_name() {
    let larger = "Common symbol 's' in file '0.ptx' has larger size than initialization";
    let cases = [
        (COMMON_OF_FOUR, VISIBLE, larger),
        (COMMON_OF_FOUR, WEAK, larger),
        (
            VISIBLE,
            ".visible .global .align 4 .u32 s;",
            "Multiple definition of 's' in '1.ptx', first defined in '0.ptx'",
        ),
        (
            WEAK,
            ".weak .global .align 4 .u32 s[4];",
            "Size doesn't match for 's' in '1.ptx', first specified in '0.ptx'",
        ),
    ];
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            for (first, second, message) in cases {
                let (code, log) = link(driver, &[adding(first, "a"), adding(second, "b")])
                    .expect_err("the definitions contradict each other");
                // The code depends on the version of the driver.
                let codes = [
                    CUresult::CUDA_ERROR_UNKNOWN,
                    CUresult::CUDA_ERROR_INVALID_SOURCE,
                ];
                assert!(codes.contains(&code), "{first} {second}: {code:?}");
                assert_eq!(log, format!("error   : {message}"), "{first} {second}");
            }
            let (_, log) = link(driver, &[adding(WEAK, "same"), adding(WEAK, "same")])
                .expect_err("a kernel is defined twice");
            assert_eq!(
                log,
                "error   : Multiple definition of 'same' in '1.ptx', first defined in '0.ptx'"
            );
        });
    });
}

#[test]
fn undefined_functions_are_reported_by_name() {
    const CALLING: &str = "
.version 7.0
.target sm_70
.address_size 64
.extern .func missing();
.visible .entry calling()
{
    call.uni missing;
    ret;
}
";
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let texts = [adding(VISIBLE, "a"), CALLING.to_owned()];
            let (code, log) = link(driver, &texts).expect_err("a function is undefined");
            // The code depends on the version of the driver.
            let codes = [
                CUresult::CUDA_ERROR_UNKNOWN,
                CUresult::CUDA_ERROR_INVALID_SOURCE,
            ];
            assert!(codes.contains(&code), "{code:?}");
            assert_eq!(
                log.trim_end(),
                "error   : Undefined reference to 'missing' in '1.ptx'"
            );
        });
    });
}
