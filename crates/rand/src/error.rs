//! Errors: the operation that failed, the reason, and a hint.

use std::fmt;

use curium_driver::sys::load::{self, LoadError, MissingFunction};
use curium_driver::{CudaError, ErrorClass, LibraryStatus};
use thiserror::Error as ThisError;

use crate::sys::curandStatus_t;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. `Debug` is the text of `Display`.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// cuRAND could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A function of cuRAND returned an error.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] Box<MissingFunction>),
    /// An argument is out of range, or invalid for the generator.
    #[error(transparent)]
    Argument(#[from] Box<ArgumentError>),
    /// An operation of the driver failed.
    #[error("{0}")]
    Driver(#[from] curium_driver::Error),
}

/// A function of cuRAND that returned an error.
pub type CallError = load::CallError<curandStatus_t>;

/// An argument is out of range, or invalid for the generator. The library was not called.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{operation}: {problem}")]
#[non_exhaustive]
pub struct ArgumentError {
    /// The operation, such as `Generator::normal`.
    pub operation: &'static str,
    /// The problem with the values, and after `; ` advice, if any.
    pub problem: Box<str>,
}

impl ArgumentError {
    #[cold]
    pub(crate) fn refused(operation: &'static str, problem: impl Into<Box<str>>) -> Error {
        Error::Argument(Box::new(Self {
            operation,
            problem: problem.into(),
        }))
    }
}

impl fmt::Debug for ArgumentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

// Every variant is a pointer, or an enum of pointers, so that the result of a call is returned in registers.
const _: () = assert!(
    size_of::<Error>() == 2 * size_of::<usize>(),
    "a variant is larger than a pointer"
);

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => fmt::Debug::fmt(error, formatter),
            _ => fmt::Display::fmt(self, formatter),
        }
    }
}

impl CudaError for Error {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        Some(match self {
            Self::Load(error) => &**error,
            Self::Call(error) => &**error,
            Self::Missing(error) => &**error,
            Self::Argument(error) => &**error,
            Self::Driver(error) => error,
        })
    }
}

impl CudaError for ArgumentError {}

impl LibraryStatus for curandStatus_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CURAND_STATUS_ALLOCATION_FAILED => ErrorClass::Resource,
            Self::CURAND_STATUS_NOT_INITIALIZED
            | Self::CURAND_STATUS_TYPE_ERROR
            | Self::CURAND_STATUS_OUT_OF_RANGE
            | Self::CURAND_STATUS_LENGTH_NOT_MULTIPLE => ErrorClass::Usage,
            Self::CURAND_STATUS_VERSION_MISMATCH
            | Self::CURAND_STATUS_DOUBLE_PRECISION_REQUIRED
            | Self::CURAND_STATUS_ARCH_MISMATCH => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CURAND_STATUS_ALLOCATION_FAILED
    }
}
