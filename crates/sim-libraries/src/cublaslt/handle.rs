//! Handles, which have no state, and the version.

use std::collections::HashSet;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use curium_blas::sys::lt::Api;
use curium_blas::sys::{cublasLtHandle_t, cublasStatus_t, libraryPropertyType_t};

use super::{INVALID, Result, code, write};

/// The version that the library reports.
const VERSION: [c_int; 3] = [13, 10, 0];

/// The live handles by their numbers, which are not reused.
#[derive(Default)]
struct Handles {
    live: HashSet<usize>,
    last: usize,
}

static HANDLES: LazyLock<Mutex<Handles>> = LazyLock::new(Mutex::default);

/// Handles are multiples of this, as addresses would be.
const STEP: usize = 64;

fn handles() -> MutexGuard<'static, Handles> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks that a handle is live. As in NVIDIA's library, a handle of cuBLAS is one, too.
pub(super) fn expect_live(handle: cublasLtHandle_t) -> Result {
    if handles().live.contains(&handle.addr()) || crate::cublas::has_handle(handle.cast()) {
        return Ok(());
    }
    Err(cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED)
}

unsafe extern "C" fn create(place: *mut cublasLtHandle_t) -> cublasStatus_t {
    if place.is_null() {
        return INVALID;
    }
    let mut handles = handles();
    handles.last += STEP;
    let number = handles.last;
    handles.live.insert(number);
    // SAFETY: the caller passes a place for the handle.
    code(unsafe { write(place, ptr::without_provenance_mut(number)) })
}

unsafe extern "C" fn destroy(handle: cublasLtHandle_t) -> cublasStatus_t {
    let was_live = handles().live.remove(&handle.addr());
    if was_live {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS
    } else {
        cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED
    }
}

unsafe extern "C" fn get_version() -> usize {
    (VERSION[0] * 10000 + VERSION[1] * 100 + VERSION[2]) as usize
}

unsafe extern "C" fn get_property(
    property: libraryPropertyType_t,
    value: *mut c_int,
) -> cublasStatus_t {
    let Some(number) = VERSION.get(property.0 as usize) else {
        return INVALID;
    };
    // SAFETY: the caller passes a place for the value.
    code(unsafe { write(value, *number) })
}

unsafe extern "C" fn get_status_name(status: cublasStatus_t) -> *const c_char {
    let name = match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => c"CUBLAS_STATUS_SUCCESS",
        cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED => c"CUBLAS_STATUS_NOT_INITIALIZED",
        cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE => c"CUBLAS_STATUS_INVALID_VALUE",
        cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED => c"CUBLAS_STATUS_EXECUTION_FAILED",
        cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => c"CUBLAS_STATUS_NOT_SUPPORTED",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtCreate = Some(create);
    api.cublasLtDestroy = Some(destroy);
    api.cublasLtGetVersion = Some(get_version);
    api.cublasLtGetProperty = Some(get_property);
    api.cublasLtGetStatusName = Some(get_status_name);
}
