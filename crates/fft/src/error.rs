//! Errors: the operation that failed, the reason, and a hint.

use std::fmt;

use curium_driver::sys::load::{self, LoadError, MissingFunction};
use curium_driver::{CudaError, ErrorClass, LibraryStatus};
use thiserror::Error as ThisError;

use crate::sys::cufftResult;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. `Debug` is the text of `Display`.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// cuFFT could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A function of cuFFT returned an error.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] Box<MissingFunction>),
    /// A shape is invalid, or does not fit the memory.
    #[error(transparent)]
    Shape(#[from] Box<ShapeError>),
    /// An operation of the driver failed.
    #[error("{0}")]
    Driver(#[from] curium_driver::Error),
}

/// A function of cuFFT that returned an error.
pub type CallError = load::CallError<cufftResult>;

/// A shape is invalid, or does not fit the memory. The library was not called.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{operation}: {problem}")]
#[non_exhaustive]
pub struct ShapeError {
    /// The operation, such as `Plan::forward`.
    pub operation: &'static str,
    /// The problem with the shape, and after `; ` advice, if any.
    pub problem: Box<str>,
}

impl ShapeError {
    #[cold]
    pub(crate) fn refused(operation: &'static str, problem: impl Into<Box<str>>) -> Error {
        Error::Shape(Box::new(Self {
            operation,
            problem: problem.into(),
        }))
    }
}

impl fmt::Debug for ShapeError {
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
            Self::Shape(error) => &**error,
            Self::Driver(error) => error,
        })
    }
}

impl CudaError for ShapeError {}

impl LibraryStatus for cufftResult {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUFFT_ALLOC_FAILED => ErrorClass::Resource,
            Self::CUFFT_INVALID_PLAN
            | Self::CUFFT_INVALID_TYPE
            | Self::CUFFT_INVALID_VALUE
            | Self::CUFFT_INVALID_SIZE
            | Self::CUFFT_UNALIGNED_DATA
            | Self::CUFFT_INVALID_DEVICE
            | Self::CUFFT_NO_WORKSPACE => ErrorClass::Usage,
            Self::CUFFT_NOT_IMPLEMENTED
            | Self::CUFFT_NOT_SUPPORTED
            | Self::CUFFT_MISSING_DEPENDENCY => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUFFT_ALLOC_FAILED
    }
}
