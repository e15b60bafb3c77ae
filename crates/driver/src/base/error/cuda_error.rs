//! The questions that every error of Curium answers.

use std::borrow::Cow;
use std::error::Error as StdError;

use curium_sys::LibraryStatus;
use curium_sys::load::{self, LoadError};

use super::report;
use super::{
    ArgumentError, CallError, Error, ErrorClass, ForkError, OutOfMemoryError, PanicError, Returned,
    TimeoutError,
};

/// The questions that every error of Curium's crates answers: whether memory is exhausted, whether
/// the context is lost, and the remedy.
///
/// [`Error`] has the same questions as inherent methods. The errors of the libraries above, such as
/// cuBLAS, answer them for the error of the driver that they contain, and for the codes of the
/// library. Other crates may implement the trait for errors that wrap one of these: only
/// [`CudaError::wrapped`] is needed.
///
/// ```
/// use curium_driver::{CudaError, Error};
///
/// /// Returns `true` if a smaller batch may succeed.
/// fn is_worth_a_retry(error: &dyn CudaError) -> bool {
///     error.is_out_of_memory() && !error.is_sticky()
/// }
///
/// assert!(is_worth_a_retry(&Error::refused_memory(1 << 30, None, None)));
/// assert!(!is_worth_a_retry(&Error::argument("Net::run", "empty batch")));
/// ```
pub trait CudaError: StdError {
    /// Returns the error that this one wraps, which answers the questions that this one leaves
    /// open.
    fn wrapped(&self) -> Option<&dyn CudaError> {
        None
    }

    /// Returns the error of the driver that is this error or caused it.
    fn driver_error(&self) -> Option<&Error> {
        self.wrapped()?.driver_error()
    }

    /// Returns the class of the failure.
    fn class(&self) -> ErrorClass {
        self.wrapped().map_or(ErrorClass::Usage, CudaError::class)
    }

    /// Returns `true` if a device or host allocation failed.
    fn is_out_of_memory(&self) -> bool {
        self.wrapped().is_some_and(CudaError::is_out_of_memory)
    }

    /// Returns `true` if the context is lost. Every later call that uses the context fails too,
    /// until the process ends.
    fn is_sticky(&self) -> bool {
        self.class() == ErrorClass::Sticky
    }

    /// Returns `true` if earlier asynchronous work, such as a kernel, failed and this operation
    /// only reported the failure.
    fn is_from_earlier_work(&self) -> bool {
        self.wrapped().is_some_and(CudaError::is_from_earlier_work)
    }

    /// Returns the operands of the driver call that failed, such as a size in bytes, a kernel name
    /// or a stream.
    fn operands(&self) -> Option<&str> {
        self.wrapped()?.operands()
    }

    /// Returns the hint, if any.
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self.wrapped() {
            Some(error) => error.hint(),
            // Every text has the form `operation: problem (facts); hint`.
            None => {
                let text = self.to_string();
                report::split(&text)
                    .1
                    .map(|hint| Cow::Owned(hint.to_owned()))
            }
        }
    }
}

impl CudaError for Error {
    fn driver_error(&self) -> Option<&Error> {
        Some(self)
    }

    fn class(&self) -> ErrorClass {
        Self::class(self)
    }

    fn is_out_of_memory(&self) -> bool {
        Self::is_out_of_memory(self)
    }

    fn is_from_earlier_work(&self) -> bool {
        Self::is_from_earlier_work(self)
    }

    fn operands(&self) -> Option<&str> {
        self.call()?.operands()
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Load(error) => CudaError::hint(&**error),
            Self::Fork(error) => CudaError::hint(&**error),
            Self::Missing(error) => CudaError::hint(&**error),
            Self::Call(_)
            | Self::OutOfMemory(_)
            | Self::Argument(_)
            | Self::Panic(_)
            | Self::Timeout(_) => Self::hint(self).map(Cow::Borrowed),
        }
    }
}

impl CudaError for CallError {
    fn class(&self) -> ErrorClass {
        Self::class(self)
    }

    fn is_out_of_memory(&self) -> bool {
        self.code == curium_sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY
    }

    fn is_from_earlier_work(&self) -> bool {
        Self::is_from_earlier_work(self)
    }

    fn operands(&self) -> Option<&str> {
        Some(&*self.subject).filter(|operands| !operands.is_empty())
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}

impl CudaError for OutOfMemoryError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Resource
    }

    fn is_out_of_memory(&self) -> bool {
        true
    }

    fn operands(&self) -> Option<&str> {
        self.call.as_ref()?.operands()
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.call.as_ref()?.hint.as_deref().map(Cow::Borrowed)
    }
}

impl<T> CudaError for Returned<T> {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        Some(&self.error)
    }
}

impl CudaError for ArgumentError {}

impl CudaError for ForkError {}

impl CudaError for PanicError {}

impl CudaError for TimeoutError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Resource
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Self::hint(self).into())
    }
}

impl CudaError for curium_sys::MissingFunction {
    fn class(&self) -> ErrorClass {
        ErrorClass::System
    }
}

impl CudaError for curium_sys::UnknownFunction {}

impl CudaError for load::MissingFunction {
    fn class(&self) -> ErrorClass {
        ErrorClass::System
    }
}

impl CudaError for LoadError {
    fn class(&self) -> ErrorClass {
        ErrorClass::System
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(Self::hint(self)))
    }
}

impl<C: LibraryStatus> CudaError for load::CallError<C> {
    fn class(&self) -> ErrorClass {
        self.code.class()
    }

    fn is_out_of_memory(&self) -> bool {
        self.code.is_out_of_memory()
    }
}

impl<C: LibraryStatus + 'static> CudaError for load::LibraryError<C> {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        match self {
            Self::Load(error) => Some(&**error),
            Self::Call(error) => Some(&**error),
            Self::Missing(error) => Some(&**error),
            _ => None,
        }
    }
}
