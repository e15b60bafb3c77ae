//! The functions of cuFFT.

mod compute;
mod execute;
mod layout;
mod plan;
mod typed;

use curium_sys::cufft::{Api, cufftResult};

/// The result of a function.
type Result<T = ()> = std::result::Result<T, cufftResult>;

/// Returns the functions that are simulated.
pub(crate) fn api() -> Api {
    let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
    plan::add_to(&mut api);
    execute::add_to(&mut api);
    typed::add_to(&mut api);
    api
}

/// Converts the result of a function to the code that it returns.
fn code(result: Result) -> cufftResult {
    result.err().unwrap_or(cufftResult::CUFFT_SUCCESS)
}
