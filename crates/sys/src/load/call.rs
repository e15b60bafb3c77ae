//! Calls of library functions, and their errors.

use core::fmt;
use std::boxed::Box;
use std::format;
use std::string::String;

use thiserror::Error;

use super::LoadError;
use crate::{CudaVersion, ExportedFunction, FunctionTable};

/// Calls one function of a library: `call!(api, curandGetVersion(version))` is a
/// `Result<(), Error>`. Returns an error if the library lacks the function.
///
/// The table `api` has two methods: `check` converts the function's name and its result, and
/// `missing` converts the name of a function that is `None`.
/// [`declare_library!`](crate::declare_library) writes both.
#[macro_export]
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let api = $api;
        match api.$function {
            Some(function) => api.check(stringify!($function), function($($argument),*)),
            None => Err(api.missing(stringify!($function))),
        }
    }};
}

/// Calls one function of a library, like [`call!`], with the error `crate::Error` of the calling
/// crate.
#[macro_export]
#[expect(
    clippy::crate_in_macro_def,
    reason = "the error is that of the calling crate"
)]
macro_rules! library_call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::call!($api, $function($($argument),*)).map_err(crate::Error::from)
    };
}

/// The reason why a library could not be loaded, or a call of one of its functions failed. `C` is
/// the type of the library's codes.
#[derive(Error)]
#[non_exhaustive]
pub enum LibraryError<C: fmt::Debug + 'static> {
    /// The library could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A function returned an error.
    #[error(transparent)]
    Call(#[from] Box<CallError<C>>),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] Box<MissingFunction>),
}

/// A library function that returned an error. `C` is the type of the library's codes.
#[derive(Clone, Copy, Eq, Error, PartialEq)]
#[error("{function}: failed ({code:?} = {number})")]
#[non_exhaustive]
pub struct CallError<C: fmt::Debug> {
    /// The function.
    pub function: &'static str,
    /// The code that it returned.
    pub code: C,
    /// The code as a number.
    pub number: u32,
}

/// A function that the library lacks, usually because it is too old.
#[derive(Clone, Copy, Eq, Error, PartialEq)]
#[error("{function}: missing function (introduced in {product} {since}{}); use {} {library}", self.removal(), self.advice())]
#[non_exhaustive]
pub struct MissingFunction {
    /// The library, such as `cuRAND`.
    pub library: &'static str,
    /// The function.
    pub function: &'static str,
    /// The product that the versions belong to: `CUDA`, or a library with releases of its own.
    pub product: &'static str,
    /// The version that introduced the function; the oldest that Curium supports for older
    /// functions.
    pub since: CudaVersion,
    /// The last version with the function, if newer ones lack it.
    pub last: Option<CudaVersion>,
}

impl<C: fmt::Debug> LibraryError<C> {
    /// Creates the error of a call of `function` that returned `code`, which is `number`.
    #[cold]
    #[must_use]
    pub fn from_code(function: &'static str, code: C, number: u32) -> Self {
        Self::Call(Box::new(CallError::new(function, code, number)))
    }

    /// Converts the error into that of a crate above.
    #[cold]
    #[must_use]
    pub fn into_error<E>(self) -> E
    where
        E: From<Box<LoadError>> + From<Box<CallError<C>>> + From<Box<MissingFunction>>,
    {
        match self {
            Self::Load(error) => error.into(),
            Self::Call(error) => error.into(),
            Self::Missing(error) => error.into(),
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for LibraryError<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl<C: fmt::Debug> CallError<C> {
    /// Creates the error of a call that returned `code`, which is `number`.
    #[cold]
    pub fn new(function: &'static str, code: C, number: u32) -> Self {
        Self {
            function,
            code,
            number,
        }
    }
}

impl MissingFunction {
    /// Creates the error of a call of `function`, which is `None` in the table of `library`.
    #[cold]
    #[must_use]
    pub fn new<T: FunctionTable>(library: &'static str, function: &'static str) -> Self {
        let exported = T::function(function);
        let since = exported.map_or(CudaVersion::OLDEST_SUPPORTED, ExportedFunction::since);
        Self {
            library,
            function,
            product: "CUDA",
            since,
            last: exported.and_then(ExportedFunction::last),
        }
    }

    /// Sets the product that the versions belong to.
    #[must_use]
    pub fn with_product(self, product: &'static str) -> Self {
        Self { product, ..self }
    }

    fn removal(&self) -> String {
        let Self { product, last, .. } = self;
        last.map(|last| format!(", removed after {product} {last}"))
            .unwrap_or_default()
    }

    fn advice(&self) -> &'static str {
        if self.last.is_some() {
            "an older"
        } else {
            "a newer"
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for CallError<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for MissingFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use self::example::Api;
    use super::*;

    #[expect(unreachable_pub, reason = "the macro declares a public table")]
    mod example {
        crate::declare_api! {
            fn exampleNew() -> u32 = 12080;
            fn exampleOld() -> u32 = 11080 ..= 12090;
        }
    }

    impl Api {
        fn check(&self, function: &'static str, code: u32) -> Result<(), String> {
            if code == 0 {
                Ok(())
            } else {
                Err(CallError::new(function, code, code).to_string())
            }
        }

        fn missing(&self, function: &'static str) -> String {
            MissingFunction::new::<Self>("cuExample", function).to_string()
        }
    }

    unsafe extern "C" fn fails() -> u32 {
        7
    }

    #[test]
    fn errors_name_function_code_and_version() {
        let api = Api {
            exampleNew: Some(fails),
            ..FunctionTable::EMPTY
        };
        // SAFETY: `fails` has no precondition.
        let error = unsafe { call!(&api, exampleNew()) };
        assert_eq!(error, Err("exampleNew: failed (7 = 7)".into()));
        // SAFETY: `fails` has no precondition.
        let error = unsafe { call!(&api, exampleOld()) };
        let expected = "exampleOld: missing function (introduced in CUDA 11.8, removed after CUDA 12.9); use an older cuExample";
        assert_eq!(error, Err(expected.into()));
    }

    #[test]
    fn versions_may_be_the_librarys() {
        let error = MissingFunction::new::<Api>("NCCL", "exampleNew")
            .with_product("NCCL")
            .to_string();
        assert_eq!(
            error,
            "exampleNew: missing function (introduced in NCCL 12.8); use a newer NCCL"
        );
    }
}
