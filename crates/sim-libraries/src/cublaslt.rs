//! The functions of cuBLASLt.

mod algorithm;
mod descriptor;
mod element;
mod epilogue;
mod handle;
mod matmul;
mod problem;

use curium_sys::cublas::cublasStatus_t;
use curium_sys::cublas::lt::Api;

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

/// Runs the body of a function, and converts its result to the code that it returns.
fn entry(body: impl FnOnce() -> Result) -> cublasStatus_t {
    code(body())
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn write<T>(output: *mut T, value: T) -> Result {
    if output.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller guarantees that the output is valid for writes.
    unsafe { output.write(value) };
    Ok(())
}
