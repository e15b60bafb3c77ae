//! The functions of cuBLAS.

mod call;
mod dense;
mod grouped;
mod handle;
mod level1;
mod level2;
mod level3;
mod memory;
mod mixed;
mod number;
mod operand;
mod routines;
mod status;

use curium_sys::cublas::{Api, cublasHandle_t, cublasStatus_t};

use self::call::Call;
use self::dense::Dense;
use self::number::Number;
use self::operand::Scalar;
pub(crate) use self::status::{status_name, status_string};

/// The result of a function.
type Result<T = ()> = std::result::Result<T, cublasStatus_t>;

const INVALID: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE;

/// Returns the functions that are simulated.
pub(crate) fn api() -> Api {
    let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
    handle::add_to(&mut api);
    routines::add_to(&mut api);
    mixed::add_to(&mut api);
    grouped::add_to(&mut api);
    status::add_to(&mut api);
    api
}

/// Returns `true` if the handle is live.
pub(crate) fn has_handle(handle: cublasHandle_t) -> bool {
    handle::look_up(handle).is_ok()
}

/// Converts the result of a function to the code that it returns.
fn code(result: Result) -> cublasStatus_t {
    result
        .err()
        .unwrap_or(cublasStatus_t::CUBLAS_STATUS_SUCCESS)
}

/// Returns a size that a function got.
fn size(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| INVALID)
}
