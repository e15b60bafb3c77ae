//! Errors of recording activities with CUPTI.

use curium_driver::declare_library_error;
use curium_driver::sys::cupti::CUptiResult;

declare_library_error! {
    library: "CUPTI",
    status: CUptiResult,
    /// The activities cannot be recorded now, because another trace or profiler records them.
    Activities(ActivitiesError),
}

/// Calls a function of the library: [`curium_driver::sys::call!`] with the error of traces.
macro_rules! cupti_call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        curium_driver::sys::call!($api, $function($($argument),*))
            .map_err($crate::trace::error::Error::from)
    };
}

pub(crate) use cupti_call;
