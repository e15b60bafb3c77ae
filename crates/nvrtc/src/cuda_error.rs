//! The questions that the errors answer like those of the other crates.

use curium_driver::{CudaError, ErrorClass};

use crate::{CallError, CompileError, Error, LinkError};
use curium_sys::nvrtc::nvrtcResult;

impl CudaError for Error {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        match self {
            Self::Load(error) => Some(&**error),
            Self::Compile(error) => Some(&**error),
            Self::Link(error) => Some(&**error),
            Self::Call(error) => Some(error),
            Self::Missing(error) => Some(error),
            Self::Driver(error) => Some(error),
            _ => None,
        }
    }
}

impl CudaError for CompileError {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        Some(&self.call)
    }
}

impl CudaError for LinkError {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        Some(&self.call)
    }
}

impl CudaError for CallError {
    fn class(&self) -> ErrorClass {
        if self.is_out_of_memory() {
            ErrorClass::Resource
        } else {
            ErrorClass::Usage
        }
    }

    /// nvJitLink has no code for it.
    fn is_out_of_memory(&self) -> bool {
        self.function.starts_with("nvrtc") && self.code == nvrtcResult::NVRTC_ERROR_OUT_OF_MEMORY.0
    }
}
