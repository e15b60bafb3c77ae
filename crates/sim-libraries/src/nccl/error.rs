//! The messages of errors.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use curium_sys::nccl::{Api, ncclComm_t, ncclResult_t};
use parking_lot::Mutex;

use super::message::Failure;

/// The message of the last error, with the NUL that C requires.
static LAST_ERROR: Mutex<Cow<'static, [u8]>> = Mutex::new(Cow::Borrowed(b"\0"));

/// Records the message of an error, and returns its code.
pub(super) fn failed(code: ncclResult_t, message: impl Into<String>) -> ncclResult_t {
    let mut text = message.into().into_bytes();
    text.push(0);
    *LAST_ERROR.lock() = Cow::Owned(text);
    code
}

/// Records the message of a failure of the communicator, like [`failed`].
pub(super) fn raised((code, text): Failure) -> ncclResult_t {
    failed(code, text)
}

#[allow(non_snake_case, reason = "this is C's name")]
unsafe extern "C" fn ncclGetLastError(_communicator: ncclComm_t) -> *const c_char {
    let mut last = LAST_ERROR.lock();
    // Messages that are returned are few, and outlive the next error.
    let text = match std::mem::take(&mut *last) {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => text.leak(),
    };
    *last = Cow::Borrowed(text);
    text.as_ptr().cast()
}

#[allow(non_snake_case, reason = "this is C's name")]
unsafe extern "C" fn ncclGetErrorString(code: ncclResult_t) -> *const c_char {
    description(code).as_ptr()
}

fn description(code: ncclResult_t) -> &'static CStr {
    match code {
        ncclResult_t::ncclSuccess => c"no error",
        ncclResult_t::ncclUnhandledCudaError => c"CUDA error",
        ncclResult_t::ncclSystemError => c"system error",
        ncclResult_t::ncclInternalError => c"internal error",
        ncclResult_t::ncclInvalidArgument => c"invalid argument",
        ncclResult_t::ncclInvalidUsage => c"invalid usage",
        ncclResult_t::ncclRemoteError => c"remote error",
        ncclResult_t::ncclInProgress => c"operation in progress",
        _ => c"unknown result code",
    }
}

/// Adds the functions to a table.
pub(super) fn add_to(api: &mut Api) {
    api.ncclGetLastError = Some(ncclGetLastError);
    api.ncclGetErrorString = Some(ncclGetErrorString);
}
