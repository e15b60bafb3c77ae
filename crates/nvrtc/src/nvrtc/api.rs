//! The functions of NVRTC.

use std::ffi::CStr;

use curium_driver::CudaVersion;
use curium_driver::sys::load::MissingFunction;
use curium_driver::sys::{call, declare_api};

use crate::error::{CallError, Error, Result};
use crate::generated::nvrtc::functions::for_each_nvrtc_function;
pub(crate) use crate::generated::nvrtc::types::*;

for_each_nvrtc_function!(declare_api);

impl Api {
    /// Converts the code that `function` returned into a result.
    pub(crate) fn check(&self, function: &'static str, code: nvrtcResult) -> Result<()> {
        if code == nvrtcResult::NVRTC_SUCCESS {
            return Ok(());
        }
        Err(Error::Call(CallError {
            function,
            code: code.0,
            name: self.name(code),
        }))
    }

    #[cold]
    pub(crate) fn missing(&self, function: &'static str) -> Error {
        Error::Missing(MissingFunction::new::<Self>("NVRTC", function))
    }

    /// Returns the CUDA version of this NVRTC.
    pub(super) fn version(&self) -> Result<CudaVersion> {
        let mut major = 0;
        let mut minor = 0;
        // SAFETY: `major` and `minor` are valid for writes.
        unsafe { call!(self, nvrtcVersion(&raw mut major, &raw mut minor)) }?;
        Ok(CudaVersion::new(
            major.try_into().unwrap_or_default(),
            minor.try_into().unwrap_or_default(),
        ))
    }

    /// Returns NVRTC's name of a code.
    fn name(&self, code: nvrtcResult) -> Box<str> {
        let Some(function) = self.nvrtcGetErrorString else {
            return Box::from("an unnamed code");
        };
        // SAFETY: the function accepts every code.
        let text = unsafe { function(code) };
        if text.is_null() {
            return Box::from("an unknown code");
        }
        // SAFETY: NVRTC returns a NUL-terminated string that lives as long as the library.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into()
    }
}
