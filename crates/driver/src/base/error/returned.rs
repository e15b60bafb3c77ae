//! The error of an operation that consumes a value, with the value.

use std::fmt;

use super::Error;

/// The error of an operation that consumes a value and failed, with the value.
///
/// `?` converts it into [`Error`] and drops the value. Match on the fields, or call [`into_parts`](Self::into_parts), to use the value
/// again.
///
/// ```
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new()).expect("a simulator can be created");
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
    /// The value, as it was before the operation.
    pub value: T,
    /// The reason for the failure.
    pub error: Error,
}

impl<T> Returned<T> {
    /// Creates the error of an operation that returns `value`.
    #[inline]
    pub fn new(value: T, error: Error) -> Self {
        Self { value, error }
    }

    /// Returns the value and the error.
    #[inline]
    pub fn into_parts(self) -> (T, Error) {
        (self.value, self.error)
    }

    /// Replaces the value by `convert` of it.
    #[inline]
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Returned<U> {
        Returned { value: convert(self.value), error: self.error }
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
    #[inline]
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl<T> From<Returned<T>> for Error {
    /// Drops the value. A value whose release failed tries again when it is dropped.
    #[inline]
    fn from(returned: Returned<T>) -> Self {
        returned.error
    }
}
