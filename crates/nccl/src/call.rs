//! The one form in which the functions of the library are called.

/// Calls one function: `call!(api, ncclGetVersion(version))` is a `Result<(), Error>`. An operation in progress is no error. Returns an
/// error if the library lacks the function.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let api = $api;
        match api.$function {
            Some(function) => api.check(stringify!($function), function($($argument),*)),
            None => Err(api.missing(stringify!($function))),
        }
    }};
}

pub(crate) use call;
