//! Calls before the driver is initialized, and queries that need no context.

use std::ffi::{CStr, c_char};
use std::ptr;

use curium_sim::{Config, Simulator};
use curium_sys::{
    Api, CUdevice_attribute, CUdriverProcAddressQueryResult, CUprocessState, CUresult,
};
use curium_tests::{TestDriver, TestResult, driver_test, in_own_process, uses_cuda};

use super::{INVALID_VALUE, OK};

/// Calls a function of a function table, which must contain it.
macro_rules! direct {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the output pointers are valid, and the driver rejects the other arguments.
        unsafe { $api.$function.expect("the driver has it")($($argument),*) }
    };
}

/// Runs a test with a driver that has not been initialized.
fn with_fresh_driver(test: impl FnOnce(&Api)) {
    in_own_process(|| {
        if uses_cuda() {
            test(&Api::load().expect("CURIUM_TEST_DRIVER=cuda needs a driver"));
        } else {
            let simulator = Simulator::new(Config::new()).expect("failed to create a simulator");
            test(&simulator.api());
        }
    });
}

/// Calls before initialization are refused but for a few.
#[test]
fn most_calls_fail_before_initialization() {
    with_fresh_driver(|api| {
        let mut number = 0;
        let mut address = 0;
        let mut context = ptr::null_mut();
        let refused = CUresult::CUDA_ERROR_NOT_INITIALIZED;
        assert_eq!(direct!(api, cuDeviceGetCount(&raw mut number)), refused);
        assert_eq!(direct!(api, cuDeviceGet(&raw mut number, 0)), refused);
        assert_eq!(direct!(api, cuCtxGetCurrent(&raw mut context)), refused);
        assert_eq!(direct!(api, cuMemAlloc_v2(&raw mut address, 16)), refused);
        let mut text: *const c_char = ptr::null();
        let mut function = ptr::null_mut();
        assert_eq!(direct!(api, cuDriverGetVersion(&raw mut number)), OK);
        assert_eq!(direct!(api, cuGetErrorName(refused, &raw mut text)), OK);
        assert_eq!(direct!(api, cuGetErrorString(refused, &raw mut text)), OK);
        let symbol = c"cuInit".as_ptr();
        let status = ptr::null_mut();
        assert_eq!(
            direct!(
                api,
                cuGetProcAddress_v2(symbol, &raw mut function, 11080, 0, status)
            ),
            OK
        );
        assert!(!function.is_null());
        assert_eq!(direct!(api, cuInit(1)), INVALID_VALUE, "there are no flags");
        assert_eq!(direct!(api, cuInit(0)), OK);
        assert_eq!(direct!(api, cuDeviceGetCount(&raw mut number)), OK);
    });
}

#[driver_test]
fn unknown_code_has_no_name(test: &TestDriver) {
    let mut text: *const c_char = c"something".as_ptr();
    assert_eq!(
        returned!(
            test.driver(),
            cuGetErrorName(CUresult(12_345), &raw mut text)
        ),
        INVALID_VALUE
    );
    assert!(text.is_null());
    text = c"something".as_ptr();
    assert_eq!(
        returned!(
            test.driver(),
            cuGetErrorString(CUresult(12_345), &raw mut text)
        ),
        INVALID_VALUE
    );
    assert!(text.is_null());
}

#[driver_test]
fn invalid_ordinals_and_attributes_are_refused(test: &TestDriver) {
    let driver = test.driver();
    let device = test.device().as_raw();
    let mut number = 0;
    for ordinal in [-1, 1000] {
        let code = returned!(driver, cuDeviceGet(&raw mut number, ordinal));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_DEVICE, "{ordinal}");
    }
    for attribute in [0, 10_000] {
        let attribute = CUdevice_attribute(attribute);
        let code = returned!(
            driver,
            cuDeviceGetAttribute(&raw mut number, attribute, device)
        );
        assert_eq!(code, INVALID_VALUE, "{attribute:?}");
    }
}

#[driver_test]
fn name_is_cut_to_its_buffer_and_ends_in_a_nul(test: &TestDriver) -> TestResult {
    let device = test.device();
    let mut name = [1_u8; 8];
    let output = name.as_mut_ptr().cast::<c_char>();
    assert_eq!(
        returned!(test.driver(), cuDeviceGetName(output, 5, device.as_raw())),
        OK
    );
    let cut = CStr::from_bytes_until_nul(&name)?.to_str()?;
    assert_eq!((cut.len(), &name[5..]), (4, [1; 3].as_slice()));
    assert!(device.name()?.starts_with(cut));
    Ok(())
}

/// A function is looked up by its base name and a version.
#[driver_test]
fn function_lookup_takes_base_name_and_version(test: &TestDriver) {
    let driver = test.driver();
    let mut function = ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    let mut look_up = |name: &CStr, version| {
        let name = name.as_ptr();
        let output = &raw mut function;
        let told = &raw mut status;
        (
            returned!(driver, cuGetProcAddress_v2(name, output, version, 0, told)),
            status.0,
            function.addr(),
        )
    };
    let oldest = look_up(c"cuCtxCreate", 3020);
    let later = look_up(c"cuCtxCreate", 11_040);
    assert_eq!([(oldest.0, oldest.1), (later.0, later.1)], [(OK, 0); 2]);
    assert!(
        oldest.2 != 0 && later.2 != 0 && oldest.2 != later.2,
        "the functions are distinct"
    );
    assert_eq!(
        look_up(c"cuCtxCreate_v2", 11_040),
        (OK, 1, 0),
        "its name is not known in this version"
    );
    assert_eq!(look_up(c"cuNothing", 11_040), (OK, 1, 0));
    assert_eq!(look_up(c"cuMemAllocAsync", 3020), (OK, 2, 0), "it is newer");
    assert_eq!(
        look_up(c"cuCtxCreate", 99_000).0,
        INVALID_VALUE,
        "the version is newer than the driver"
    );
}

/// A process that has not initialized CUDA has no state, and one that does not exist is another
/// error.
#[test]
fn process_state_follows_initialization() {
    with_fresh_driver(|api| {
        let own = i32::try_from(std::process::id()).expect("process numbers are positive");
        let mut state = CUprocessState(u32::MAX);
        for (process, code) in [
            (own, CUresult::CUDA_ERROR_NOT_INITIALIZED),
            (1, CUresult::CUDA_ERROR_NOT_INITIALIZED),
            (999_999_999, CUresult::CUDA_ERROR_OPERATING_SYSTEM),
            (0, CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        ] {
            let returned = direct!(api, cuCheckpointProcessGetState(process, &raw mut state));
            assert_eq!(returned, code, "{process}");
        }
        let null = direct!(api, cuCheckpointProcessGetState(own, ptr::null_mut()));
        assert_eq!(null, INVALID_VALUE);
        assert_eq!(direct!(api, cuInit(0)), OK);
        let returned = direct!(api, cuCheckpointProcessGetState(own, &raw mut state));
        assert_eq!(returned, OK);
        assert_eq!(state, CUprocessState::CU_PROCESS_STATE_RUNNING);
    });
}
