//! Modules: images that do not load, and names that are not found.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use curium_driver::{Driver, Function};
use curium_sys::{CUjit_option, CUresult};
use curium_tests::{TestDriver, TestResult, driver_test, in_own_process, on_driver, skip};

use super::{INVALID_HANDLE, INVALID_VALUE, NOT_FOUND, OK, in_context, loaded};

const HEADER: &str = ".version 7.8\n.target sm_75\n.address_size 64\n";

fn load(driver: &Driver, image: &CStr) -> CUresult {
    let mut module = ptr::null_mut();
    returned!(
        driver,
        cuModuleLoadData(&raw mut module, image.as_ptr().cast())
    )
}

fn load_text(driver: &Driver, text: &str) -> TestResult<CUresult> {
    Ok(load(driver, &CString::new(text)?))
}

#[driver_test]
fn unknown_images_are_distinguished_from_invalid_code(test: &TestDriver) -> TestResult {
    in_context(test, |driver| -> TestResult {
        let mut module = ptr::null_mut();
        assert_eq!(
            returned!(driver, cuModuleLoadData(&raw mut module, ptr::null())),
            INVALID_VALUE
        );
        assert_eq!(load(driver, c""), CUresult::CUDA_ERROR_INVALID_IMAGE);
        assert_eq!(
            load(driver, c"this is not code"),
            CUresult::CUDA_ERROR_INVALID_IMAGE
        );
        assert_eq!(
            load(driver, c".target sm_75\n.version 7.8\n.address_size 64\n"),
            CUresult::CUDA_ERROR_INVALID_IMAGE,
            "the version is not the first directive"
        );
        let path = c"/nowhere/at-all.cubin".as_ptr();
        let code = returned!(driver, cuModuleLoad(&raw mut module, path));
        assert_eq!(code, CUresult::CUDA_ERROR_FILE_NOT_FOUND);
        let wrong = CUresult::CUDA_ERROR_INVALID_PTX;
        assert_eq!(
            load_text(
                driver,
                &format!("{HEADER}.entry k() {{ mov.u32 %r1, 1; ret; }}")
            )?,
            wrong
        );
        assert_eq!(
            load_text(driver, &HEADER.replace("sm_75", "sm_999"))?,
            wrong,
            "an invalid target"
        );
        // The next compute capability above 9.0 is 10.0, and so on.
        let above = if test.device().compute_capability()?.major < 10 {
            100
        } else {
            130
        };
        let above = HEADER
            .replace("7.8", "8.7")
            .replace("sm_75", &format!("sm_{above}"));
        assert_eq!(
            load_text(driver, &format!("{above}.entry k() {{ ret; }}"))?,
            wrong,
            "a target above the device"
        );
        let narrow = HEADER.replace("64", "32");
        assert_eq!(
            load_text(driver, &format!("{narrow}.entry k() {{ ret; }}"))?,
            wrong,
            "32-bit addresses"
        );
        let open = format!("{HEADER}.extern .func f();\n.visible .entry k() {{ call f; ret; }}");
        assert_eq!(
            load_text(driver, &open)?,
            wrong,
            "a function that does not exist"
        );
        let newer = HEADER.replace("7.8", "99.0");
        assert_eq!(
            load_text(driver, &newer)?,
            CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        );
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn error_in_ptx_is_logged_with_its_line(test: &TestDriver) -> TestResult {
    let text = CString::new(format!(
        "{HEADER}.visible .entry k()\n{{\n  nonsense.u32 %r1;\n}}\n"
    ))?;
    let mut log = [0_u8; 2048];
    let mut module = ptr::null_mut();
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values: [*mut c_void; 2] = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(log.len()),
    ];
    in_context(test, |driver| {
        let image = text.as_ptr().cast();
        let options = options.as_mut_ptr();
        let values = values.as_mut_ptr();
        let code = returned!(
            driver,
            cuModuleLoadDataEx(&raw mut module, image, 2, options, values)
        );
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    });
    let said = CStr::from_bytes_until_nul(&log)?.to_string_lossy();
    assert!(said.contains("line 6; error"), "{said}");
    Ok(())
}

/// Names that a module does not have are not found and no name is refused.
#[driver_test]
fn unknown_names_are_not_found_in_a_module(test: &TestDriver) -> TestResult {
    in_context(test, |driver| -> TestResult {
        let (module, _) = loaded(driver)?;
        let mut function = ptr::null_mut();
        let mut address = 0;
        let mut size = 0;
        for (name, expected) in [(c"nothing", NOT_FOUND), (c"", INVALID_VALUE)] {
            let name = name.as_ptr();
            assert_eq!(
                returned!(driver, cuModuleGetFunction(&raw mut function, module, name)),
                expected
            );
            let result = returned!(
                driver,
                cuModuleGetGlobal_v2(&raw mut address, &raw mut size, module, name)
            );
            assert_eq!(result, expected);
        }
        assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn parameters_are_described_up_to_the_last(test: &TestDriver) -> TestResult {
    if !test.driver().has(Function::cuFuncGetParamInfo) {
        return skip("the driver lacks cuFuncGetParamInfo");
    }
    in_context(test, |driver| -> TestResult {
        let (module, function) = loaded(driver)?;
        let describe = |index| {
            let mut offset = 0;
            let mut size = 0;
            (
                returned!(
                    driver,
                    cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut size)
                ),
                offset,
                size,
            )
        };
        assert_eq!(
            [describe(0), describe(1), describe(2)],
            [(OK, 0, 8), (OK, 8, 4), (OK, 12, 4)]
        );
        assert_eq!(describe(3).0, INVALID_VALUE);
        assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn module_is_unloaded_once() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            in_context(test, |driver| -> TestResult {
                let (module, _) = loaded(driver)?;
                assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
                assert_eq!(returned!(driver, cuModuleUnload(module)), INVALID_HANDLE);
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}
