//! The functions of cuBLASLt.

mod algorithm;
mod descriptor;
mod element;
mod epilogue;
mod handle;
mod matmul;
mod problem;

use curium_blas::sys::cublasStatus_t;
use curium_blas::sys::lt::Api;

/// The result of a function.
type Result<T = ()> = std::result::Result<T, cublasStatus_t>;

const INVALID: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE;
const UNSUPPORTED: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED;

/// Returns the functions that are simulated.
pub(crate) fn api() -> Api {
    let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
    handle::add_to(&mut api);
    descriptor::add_to(&mut api);
    algorithm::add_to(&mut api);
    matmul::add_to(&mut api);
    api
}

/// Converts the result of a function to the code that it returns.
fn code(result: Result) -> cublasStatus_t {
    result
        .err()
        .unwrap_or(cublasStatus_t::CUBLAS_STATUS_SUCCESS)
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn write<T>(place: *mut T, value: T) -> Result {
    if place.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller guarantees that the place is valid for writes.
    unsafe { place.write(value) };
    Ok(())
}
