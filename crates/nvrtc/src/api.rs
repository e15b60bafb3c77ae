//! The functions of NVRTC, as its documentation declares them.

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::Library;

use crate::error::{CallError, Error, Result};

/// What every function returns but the one that explains it; 0 is success.
pub(crate) type RawResult = c_int;

/// NVRTC's handle of a program.
pub(crate) type RawProgram = *mut c_void;

macro_rules! declare {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions of one NVRTC, each under its own name.
        #[derive(Clone, Copy, Debug)]
        #[expect(non_snake_case, reason = "these are C's names")]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($parameter: $ty),*) -> $result,)*
        }

        impl Api {
            /// The functions that `library` exports, or the name of the first that it lacks.
            ///
            /// # Safety
            ///
            /// - If the library exports the names of NVRTC's functions, they are NVRTC's functions.
            /// - The library stays loaded for as long as the table, or a copy of it, is used.
            pub(crate) unsafe fn from_library(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($name), "\0").as_bytes();
                        // SAFETY: the caller vouches that a symbol of this name is NVRTC's function, which has this signature.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn($($parameter: $ty),*) -> $result>(name) };
                        *symbol.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

declare! {
    fn nvrtcGetErrorString(code: RawResult) -> *const c_char;
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> RawResult;
    fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> RawResult;
    fn nvrtcGetSupportedArchs(architectures: *mut c_int) -> RawResult;
    fn nvrtcCreateProgram(
        program: *mut RawProgram,
        source: *const c_char,
        name: *const c_char,
        header_count: c_int,
        headers: *const *const c_char,
        header_names: *const *const c_char,
    ) -> RawResult;
    fn nvrtcDestroyProgram(program: *mut RawProgram) -> RawResult;
    fn nvrtcCompileProgram(program: RawProgram, option_count: c_int, options: *const *const c_char) -> RawResult;
    fn nvrtcGetPTXSize(program: RawProgram, size: *mut usize) -> RawResult;
    fn nvrtcGetPTX(program: RawProgram, ptx: *mut c_char) -> RawResult;
    fn nvrtcGetProgramLogSize(program: RawProgram, size: *mut usize) -> RawResult;
    fn nvrtcGetProgramLog(program: RawProgram, log: *mut c_char) -> RawResult;
}

/// Calls one function of NVRTC: `call!(api, nvrtcVersion(major, minor))` is a `Result<(), Error>`.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let api: &$crate::api::Api = $api;
        api.check(stringify!($function), (api.$function)($($argument),*))
    }};
}

pub(crate) use call;

impl Api {
    /// Turns what `function` returned into a result.
    pub(crate) fn check(&self, function: &'static str, code: RawResult) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(Error::Call(CallError { function, code, name: self.name(code) })) }
    }

    /// NVRTC's name for a code.
    pub(crate) fn name(&self, code: RawResult) -> Box<str> {
        // SAFETY: the function takes any code at any time.
        let text = unsafe { (self.nvrtcGetErrorString)(code) };
        if text.is_null() {
            return Box::from("an unknown code");
        }
        // SAFETY: NVRTC answers with a string that ends in NUL and lives as long as the library; it is copied at once.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into()
    }
}
