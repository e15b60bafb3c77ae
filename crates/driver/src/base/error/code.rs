//! The driver's result codes: their names and meaning.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use curium_sys::CUresult;

use crate::Driver;

/// Returns `true` if a sticky `code` results from work on the device, and not from the call that
/// returned it.
pub(super) fn is_work_failure(code: CUresult) -> bool {
    !matches!(
        code,
        CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED
            | CUresult::CUDA_ERROR_CDP_VERSION_MISMATCH
    )
}

/// Returns the driver's name and description of `code`; both are empty if the driver does not
/// define it.
pub(super) fn names(driver: &Driver, code: CUresult) -> (Cow<'static, str>, Cow<'static, str>) {
    let name = driver
        .api()
        .cuGetErrorName
        .and_then(|function| text(function, code));
    let description = driver
        .api()
        .cuGetErrorString
        .and_then(|function| text(function, code));
    (name.unwrap_or_default(), description.unwrap_or_default())
}

/// Returns the text that `function` returns for `code`.
fn text(
    function: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult,
    code: CUresult,
) -> Option<Cow<'static, str>> {
    let mut text = std::ptr::null();
    // SAFETY: `text` is valid for writes, and both functions take any code at any time.
    let result = unsafe { function(code, &raw mut text) };
    if result != CUresult::CUDA_SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: the driver returns a NUL-terminated string that lives as long as the driver; it is
    // copied immediately.
    let text = unsafe { CStr::from_ptr(text) };
    Some(Cow::Owned(text.to_string_lossy().into_owned()))
}
