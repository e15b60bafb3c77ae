//! The one form in which the functions of the library are called.

/// Calls one function: `call!(api, cufftGetProperty(property, value))` is a `Result<(), Error>`. Returns an error if the library lacks the
/// function.
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
