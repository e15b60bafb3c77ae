//! The functions of cuRAND.

mod algorithm;
mod distribution;
mod engine;
mod generator;
mod jump;
mod sobol;

use curium_sys::curand::{Api, curandStatus_t};

/// The result of a function.
type Result<T = ()> = std::result::Result<T, curandStatus_t>;

/// Returns the functions that are simulated.
pub(crate) fn api() -> Api {
    let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
    generator::add_to(&mut api);
    distribution::add_to(&mut api);
    api
}

/// Converts the result of a function to the code that it returns.
fn code(result: Result) -> curandStatus_t {
    result
        .err()
        .unwrap_or(curandStatus_t::CURAND_STATUS_SUCCESS)
}
