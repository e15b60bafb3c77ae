//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::declare_library_error;

use crate::sys::curandStatus_t;

declare_library_error! {
    library: "cuRAND",
    status: curandStatus_t,
    /// An argument is out of range, or invalid for the generator. The library was not called.
    Argument(ArgumentError),
}

/// Calls a function of the library: [`curium_sys::call!`] with the error of this crate.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        curium_sys::call!($api, $function($($argument),*)).map_err($crate::Error::from)
    };
}

pub(crate) use call;
