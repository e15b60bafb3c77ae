//! The error of an operation that consumes a value, with the value.

use std::fmt;

use super::Error;

/// The error of a failed operation that takes ownership of a value, together with the value.
///
/// `?` converts it into [`Error`] and drops the value. To use the value again, match on the fields
/// or call [`into_parts`](Self::into_parts).
///
/// ```
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new()).expect("failed to create a simulator");
/// # let driver = simulator.driver::<curium_driver::Driver>()?;
/// use curium_driver::{Error, Returned, Stream};
///
/// # let context = driver.device(0)?.primary_context()?;
/// let stream = context.stream()?;
/// let clone = stream.clone();
/// let stream = match stream.close() {
///     Ok(()) => unreachable!("a clone of the stream exists"),
///     Err(Returned { value: stream, error }) => {
///         eprintln!("{error}");
///         stream
///     }
/// };
/// drop(clone);
/// stream.close()?;
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct Returned<T> {
    /// The value, unchanged by the operation.
    pub value: T,
    /// The reason for the failure.
    pub error: Error,
}

impl<T> Returned<T> {
    /// Creates the error of an operation that returns `value` to the caller.
    pub fn new(value: T, error: Error) -> Self {
        Self { value, error }
    }

    /// Returns the value and the error.
    pub fn into_parts(self) -> (T, Error) {
        (self.value, self.error)
    }

    /// Applies `convert` to the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Returned<U> {
        Returned {
            value: convert(self.value),
            error: self.error,
        }
    }
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
    /// Drops the value. If its release failed, dropping it tries again.
    fn from(returned: Returned<T>) -> Self {
        returned.error
    }
}
