//! The functions of a compiler's library, as a table made from the generated list, and the one form in which they are called.

/// Declares the table `Api` of the functions in a generated list, each under its own name.
macro_rules! declare_api {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal;)*) => {
        /// The functions of one library. One that it lacks is `None`.
        #[derive(Clone, Copy, Debug)]
        #[expect(non_snake_case, reason = "these are C's names")]
        pub(crate) struct Api {
            $(pub(crate) $name: Option<unsafe extern "C" fn($($ty),*) -> $result>,)*
        }

        impl Api {
            /// The functions that `library` exports under one of the names that `symbols` gives for each.
            ///
            /// # Safety
            ///
            /// - If the library exports such a name, it is the function that the list declares.
            /// - The library stays loaded for as long as the table, or a copy of it, is used.
            pub(crate) unsafe fn from_library<const N: usize>(
                library: &::libloading::Library,
                symbols: impl Fn(&str) -> [String; N],
            ) -> Self {
                Self {
                    $($name: symbols(stringify!($name)).into_iter().find_map(|symbol| {
                        // SAFETY: the caller vouches that a symbol of this name has this signature.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn($($ty),*) -> $result>(symbol.as_bytes()) };
                        symbol.ok().map(|symbol| *symbol)
                    }),)*
                }
            }

            /// The CUDA version that introduced `function`.
            pub(crate) fn since(function: &str) -> ::curium_driver::CudaVersion {
                let since = match function {
                    $(stringify!($name) => $since,)*
                    _ => 0,
                };
                ::curium_driver::CudaVersion::from_raw(since)
            }
        }
    };
}

/// Calls one function of a library: `call!(api, nvrtcVersion(major, minor))` is a `Result<(), Error>`. A function that the library
/// lacks is an error and not called.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let api = $api;
        match api.$function {
            Some(function) => api.check(stringify!($function), function($($argument),*)),
            None => Err(api.missing(stringify!($function))),
        }
    }};
}

pub(crate) use {call, declare_api};
