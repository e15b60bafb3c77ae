//! The macro that calls library functions.

/// Calls one function of a library: `call!(api, nvrtcVersion(major, minor))` is a `Result<(), Error>`. Returns an error if the library
/// lacks the function.
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
