//! The functions of NVRTC.

use std::ffi::CStr;

use crate::api::declare_api;
use crate::error::{CallError, Error, MissingFunction, Result};
use crate::generated::nvrtc::functions::for_each_nvrtc_function;
pub(crate) use crate::generated::nvrtc::types::*;

for_each_nvrtc_function!(declare_api);

impl Api {
    /// Turns what `function` returned into a result.
    pub(crate) fn check(&self, function: &'static str, code: nvrtcResult) -> Result<()> {
        if code == nvrtcResult::NVRTC_SUCCESS {
            return Ok(());
        }
        Err(Error::Call(CallError { function, code: code.0, name: self.name(code) }))
    }

    #[cold]
    pub(crate) fn missing(&self, function: &'static str) -> Error {
        Error::Missing(MissingFunction { library: "NVRTC", function, since: Self::since(function) })
    }

    /// NVRTC's name for a code.
    fn name(&self, code: nvrtcResult) -> Box<str> {
        let Some(function) = self.nvrtcGetErrorString else { return Box::from("an unnamed code") };
        // SAFETY: the function takes any code at any time.
        let text = unsafe { function(code) };
        if text.is_null() {
            return Box::from("an unknown code");
        }
        // SAFETY: NVRTC answers with a string that ends in NUL and lives as long as the library; it is copied at once.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into()
    }
}
