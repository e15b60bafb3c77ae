//! The names and descriptions of status codes.

use std::ffi::{CStr, c_char};

use curium_sys::cublas::{Api, cublasStatus_t};

struct Description {
    name: &'static CStr,
    text: &'static CStr,
}

impl Description {
    const fn new(name: &'static CStr, text: &'static CStr) -> Self {
        Self { name, text }
    }
}

fn description(status: cublasStatus_t) -> Description {
    use cublasStatus_t as Status;

    match status {
        Status::CUBLAS_STATUS_SUCCESS => Description::new(c"CUBLAS_STATUS_SUCCESS", c"success"),
        Status::CUBLAS_STATUS_NOT_INITIALIZED => Description::new(
            c"CUBLAS_STATUS_NOT_INITIALIZED",
            c"the library was not initialized",
        ),
        Status::CUBLAS_STATUS_ALLOC_FAILED => Description::new(
            c"CUBLAS_STATUS_ALLOC_FAILED",
            c"the resource allocation failed",
        ),
        Status::CUBLAS_STATUS_INVALID_VALUE => Description::new(
            c"CUBLAS_STATUS_INVALID_VALUE",
            c"an unsupported value or parameter was passed to the function",
        ),
        Status::CUBLAS_STATUS_ARCH_MISMATCH => Description::new(
            c"CUBLAS_STATUS_ARCH_MISMATCH",
            c"the function requires an architectural feature absent from the device",
        ),
        Status::CUBLAS_STATUS_MAPPING_ERROR => Description::new(
            c"CUBLAS_STATUS_MAPPING_ERROR",
            c"an access to GPU memory space failed",
        ),
        Status::CUBLAS_STATUS_EXECUTION_FAILED => Description::new(
            c"CUBLAS_STATUS_EXECUTION_FAILED",
            c"the function failed to launch on the GPU",
        ),
        Status::CUBLAS_STATUS_INTERNAL_ERROR => Description::new(
            c"CUBLAS_STATUS_INTERNAL_ERROR",
            c"an internal operation failed",
        ),
        Status::CUBLAS_STATUS_NOT_SUPPORTED => Description::new(
            c"CUBLAS_STATUS_NOT_SUPPORTED",
            c"the functionality requested is not supported",
        ),
        Status::CUBLAS_STATUS_LICENSE_ERROR => {
            Description::new(c"CUBLAS_STATUS_LICENSE_ERROR", c"the license check failed")
        }
        _ => Description::new(c"unknown", c"unknown status code"),
    }
}

pub(crate) unsafe extern "C" fn status_name(status: cublasStatus_t) -> *const c_char {
    description(status).name.as_ptr()
}

pub(crate) unsafe extern "C" fn status_string(status: cublasStatus_t) -> *const c_char {
    description(status).text.as_ptr()
}

/// Adds the functions on status codes.
pub(super) fn add_to(api: &mut Api) {
    api.cublasGetStatusName = Some(status_name);
    api.cublasGetStatusString = Some(status_string);
}
