//! Errors: the operation that failed, the reason, and a hint.

use std::fmt;

use curium_driver::sys::load::{self, LoadError, MissingFunction};
use curium_driver::{CudaError, ErrorClass, LibraryStatus};
use thiserror::Error as ThisError;

use crate::sys::cublasStatus_t;

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. `Debug` is the text of `Display`.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// cuBLAS could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A function of cuBLAS returned an error.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] Box<MissingFunction>),
    /// The operands of an operation do not agree with each other or with their memory.
    #[error(transparent)]
    Shape(#[from] Box<ShapeError>),
    /// A plan could not be created: the library has no algorithm, or a stored plan cannot be used.
    #[error(transparent)]
    Plan(#[from] Box<PlanError>),
    /// An operation of the driver failed.
    #[error("{0}")]
    Driver(#[from] curium_driver::Error),
}

/// A function of cuBLAS that returned an error.
pub type CallError = load::CallError<cublasStatus_t>;

/// The operands of an operation do not agree with each other or with their memory. The library was not called.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{operation}: {problem}")]
#[non_exhaustive]
pub struct ShapeError {
    /// The operation, such as `Blas::gemm`.
    pub operation: &'static str,
    /// The problem with the shapes, and after `; ` advice, if any.
    pub problem: Box<str>,
}

/// A plan could not be created: cuBLASLt has no algorithm for the product, or a stored plan is damaged or belongs to another library or
/// device.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{operation}: {problem}")]
#[non_exhaustive]
pub struct PlanError {
    /// The operation, such as `MatmulPlan::new`.
    pub operation: &'static str,
    /// The problem with the product, and after `; ` advice, if any.
    pub problem: Box<str>,
}

impl PlanError {
    #[cold]
    pub(crate) fn refused(operation: &'static str, problem: impl Into<Box<str>>) -> Error {
        Error::Plan(Box::new(Self {
            operation,
            problem: problem.into(),
        }))
    }
}

impl fmt::Debug for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
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
            Self::Plan(error) => &**error,
            Self::Driver(error) => error,
        })
    }
}

impl CudaError for ShapeError {}

impl CudaError for PlanError {}

impl LibraryStatus for cublasStatus_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUBLAS_STATUS_ALLOC_FAILED => ErrorClass::Resource,
            Self::CUBLAS_STATUS_NOT_INITIALIZED | Self::CUBLAS_STATUS_INVALID_VALUE => {
                ErrorClass::Usage
            }
            Self::CUBLAS_STATUS_ARCH_MISMATCH
            | Self::CUBLAS_STATUS_NOT_SUPPORTED
            | Self::CUBLAS_STATUS_LICENSE_ERROR => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUBLAS_STATUS_ALLOC_FAILED
    }
}
