//! Names and descriptions of error codes.

use std::ffi::{CStr, c_char};
use std::fmt::Write;
use std::ptr;

use curium_driver::Driver;
use curium_sim::{Config, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::INVALID_VALUE;

/// The largest error code.
const LAST: u32 = CUresult::CUDA_ERROR_UNKNOWN.0;

/// Returns the name and the description of a code, or `None` if the driver does not define it.
fn described(driver: &Driver, code: CUresult) -> Option<[String; 2]> {
    let mut name: *const c_char = ptr::null();
    let mut text: *const c_char = ptr::null();
    let returned = returned!(driver, cuGetErrorName(code, &raw mut name));
    assert_eq!(
        returned!(driver, cuGetErrorString(code, &raw mut text)),
        returned
    );
    if returned == INVALID_VALUE {
        assert!(name.is_null() && text.is_null(), "{code:?}");
        return None;
    }
    Some([name, text].map(|text| {
        // SAFETY: the driver returned static strings.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }))
}

/// The simulator has the names and descriptions of the hardware driver. A code that only one of the
/// two defines is newer than the other.
#[driver_test]
fn code_names_and_texts_match_hardware(test: &TestDriver) -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let simulated = simulator.driver::<Driver>()?;
    let mut count = 0;
    let mut different = String::new();
    for code in (0..=LAST).map(CUresult) {
        let (Some(found), Some(expected)) =
            (described(test.driver(), code), described(&simulated, code))
        else {
            continue;
        };
        count += 1;
        if found != expected {
            writeln!(
                different,
                "{}: {found:?}, the simulator has {expected:?}",
                code.0
            )?;
        }
    }
    assert!(count > 80, "only {count} codes are known");
    assert!(different.is_empty(), "{different}");
    Ok(())
}
