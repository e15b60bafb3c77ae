//! Handles, which have no state, and the version.

use std::collections::HashSet;
use std::ffi::c_int;
use std::ptr;
use std::sync::LazyLock;

use curium_sys::cublas::lt::Api;
use curium_sys::cublas::{cublasLtHandle_t, cublasStatus_t, libraryPropertyType_t};
use parking_lot::{Mutex, MutexGuard};

use super::{INVALID, Result, code, write};
use crate::cublas::{status_name, status_string};

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
    HANDLES.lock()
}

/// Checks that a handle is live. As in NVIDIA's library, a handle of cuBLAS is one, too.
pub(super) fn check_live(handle: cublasLtHandle_t) -> Result {
    if handles().live.contains(&handle.addr()) || crate::cublas::has_handle(handle.cast()) {
        return Ok(());
    }
    Err(cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED)
}

unsafe extern "C" fn create(handle: *mut cublasLtHandle_t) -> cublasStatus_t {
    if handle.is_null() {
        return INVALID;
    }
    let mut handles = handles();
    handles.last += STEP;
    let number = handles.last;
    handles.live.insert(number);
    // SAFETY: by the contract of the C function, `handle` is null or valid for writes.
    code(unsafe { write(handle, ptr::without_provenance_mut(number)) })
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
    // SAFETY: by the contract of the C function, `value` is null or valid for writes.
    code(unsafe { write(value, *number) })
}

/// Returns the version of the CUDA runtime that the library was built with.
unsafe extern "C" fn get_cudart_version() -> usize {
    (VERSION[0] * 1000) as usize
}

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtCreate = Some(create);
    api.cublasLtDestroy = Some(destroy);
    api.cublasLtGetVersion = Some(get_version);
    api.cublasLtGetProperty = Some(get_property);
    api.cublasLtGetCudartVersion = Some(get_cudart_version);
    api.cublasLtGetStatusName = Some(status_name);
    api.cublasLtGetStatusString = Some(status_string);
}
