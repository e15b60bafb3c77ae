//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::declare_library_error;

use crate::sys::cufftResult;

declare_library_error! {
    library: "cuFFT",
    status: cufftResult,
    /// A shape is invalid, or does not fit the memory. The library was not called.
    Shape(ShapeError),
}

/// Calls a function of the library: [`curium_sys::call!`] with the error of this crate.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        curium_sys::call!($api, $function($($argument),*)).map_err($crate::Error::from)
    };
}

pub(crate) use call;
