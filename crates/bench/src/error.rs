//! Errors of measurements.

use curium_driver::sys::CUresult;
use curium_driver::{CudaError, ErrorClass, Function};
use thiserror::Error as DeriveError;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a measurement failed.
#[derive(Debug, DeriveError)]
#[non_exhaustive]
pub enum Error {
    /// Curium failed.
    #[error("{0}")]
    Driver(#[from] curium_driver::Error),
    /// The twin failed.
    #[error("{function} returned {code} in the C counterpart", code = .code.0)]
    Twin {
        /// The function.
        function: Function,
        /// The code that it returned.
        code: CUresult,
    },
    /// The driver lacks a function that the twin calls.
    #[error("the driver lacks {0}, which the C counterpart calls")]
    Missing(Function),
    /// The callback failed.
    #[error("a measurement could not be written")]
    Observer(#[from] std::io::Error),
}

impl CudaError for Error {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        match self {
            Self::Driver(error) => Some(error),
            Self::Twin { .. } | Self::Missing(_) | Self::Observer(_) => None,
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Driver(error) => error.class(),
            Self::Twin { code, .. } => ErrorClass::of(*code),
            Self::Missing(_) | Self::Observer(_) => ErrorClass::System,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Driver(error) => error.is_out_of_memory(),
            Self::Twin { code, .. } => *code == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            Self::Missing(_) | Self::Observer(_) => false,
        }
    }
}

/// Checks a code, as a C program does.
#[inline]
pub(crate) fn checked(function: Function, code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(Error::Twin { function, code })
    }
}
