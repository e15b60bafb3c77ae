//! Errors that return a value.

use std::fmt;

use curium_driver::CudaError;

use super::Error;

/// An error with the value that the failed operation consumed. With `?`, the value is dropped.
#[must_use]
pub struct Returned<T> {
    /// The value, unchanged by the operation.
    pub value: T,
    /// The reason for the failure.
    pub error: Error,
}

impl<T> fmt::Display for Returned<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl<T> fmt::Debug for Returned<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, formatter)
    }
}

impl<T> std::error::Error for Returned<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<T> From<Returned<T>> for Error {
    fn from(returned: Returned<T>) -> Self {
        returned.error
    }
}

impl<T> CudaError for Returned<T> {
    fn wrapped(&self) -> Option<&dyn CudaError> {
        Some(&self.error)
    }
}
