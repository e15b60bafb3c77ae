//! Out-of-memory errors, with the figures of the device and of the resource.

use std::fmt;

use super::CallError;
use super::report::{Note, OneLine, Report, debug_as_report};
use crate::Error;

/// An allocation that failed, with the figures of that moment. Unknown figures are `None`.
#[derive(thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct OutOfMemoryError {
    /// The call that failed; `None` if a resource refused the allocation itself.
    pub call: Option<CallError>,
    /// The limit of the resource in bytes, if it was reached.
    pub limit: Option<usize>,
    /// The bytes requested.
    pub requested: usize,
    /// The bytes in use of the resource with the limit.
    pub used: Option<usize>,
    /// The free bytes of the device, outside of pools and caches.
    pub free: Option<usize>,
    /// The total bytes of the device.
    pub total: Option<usize>,
    /// The bytes in use of the device's current pool.
    pub pool_used: Option<usize>,
    /// The bytes that the device's current pool has reserved.
    pub pool_reserved: Option<usize>,
    /// The bytes of the largest free block, of resources that cache memory.
    pub largest_free: Option<usize>,
    /// The recovery steps that were tried, in order.
    pub attempts: Vec<RecoveryAttempt>,
}

/// A step of out-of-memory recovery that was tried.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecoveryAttempt {
    /// The step, such as `trimming`.
    pub what: &'static str,
    /// The error of the step itself, if it failed.
    pub error: Option<Error>,
}

impl RecoveryAttempt {
    /// Records a step, and its error if it failed.
    #[must_use]
    #[inline]
    pub fn new(what: &'static str, error: Option<Error>) -> Self {
        Self { what, error }
    }
}

impl Error {
    /// Creates the error of a resource that refuses `requested` bytes itself, because of its `limit` or for a reason of its own.
    #[cold]
    #[must_use]
    #[inline]
    pub fn refused_memory(requested: usize, limit: Option<usize>, used: Option<usize>) -> Self {
        let error = OutOfMemoryError { limit, used, ..OutOfMemoryError::bare(requested) };
        Self::OutOfMemory(Box::new(error))
    }

    /// Adds recovery steps to an out-of-memory error. Other errors stay as they are.
    #[cold]
    #[must_use]
    #[inline]
    pub fn with_recovery_attempts(mut self, attempts: Vec<RecoveryAttempt>) -> Self {
        if let Self::OutOfMemory(error) = &mut self {
            error.attempts.extend(attempts);
        }
        self
    }
}

impl OutOfMemoryError {
    /// Returns an error with the bytes requested alone.
    #[inline]
    pub(crate) fn bare(requested: usize) -> Self {
        Self {
            call: None,
            limit: None,
            requested,
            used: None,
            free: None,
            total: None,
            pool_used: None,
            pool_reserved: None,
            largest_free: None,
            attempts: Vec::new(),
        }
    }
}

impl Report for OutOfMemoryError {
    #[inline]
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            Some(call) => write!(formatter, "{}: out of memory (", call.function)?,
            None => formatter.write_str("resource: allocation refused (")?,
        }
        self.write_request(formatter)?;
        self.write_figures(formatter)?;
        if let Some(call) = &self.call {
            formatter.write_str(", ")?;
            call.write_code(formatter)?;
        }
        formatter.write_str(")")
    }

    #[inline]
    fn notes(&self) -> Vec<Note<'_>> {
        let attempts: Vec<_> = self.attempts.iter().map(ToString::to_string).collect();
        let tried = (!attempts.is_empty()).then(|| Note::Tried(attempts.join(", ")));
        self.call.as_ref().map(Report::notes).unwrap_or_default().into_iter().chain(tried).collect()
    }

    #[inline]
    fn logs(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.as_ref().map_or(Ok(()), |call| call.logs(formatter))
    }
}

impl OutOfMemoryError {
    /// Writes the operands of the call, and the bytes requested if they differ: a resource may request more than it was asked for.
    #[inline]
    fn write_request(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requested = format!("{} bytes", self.requested);
        match self.call.as_ref().map(|call| &*call.subject).filter(|subject| !subject.is_empty()) {
            Some(subject) if subject.starts_with(&requested) => formatter.write_str(subject),
            Some(subject) => write!(formatter, "{subject} for a request of {requested}"),
            None => formatter.write_str(&requested),
        }
    }

    #[inline]
    fn write_figures(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.limit, self.used) {
            (Some(limit), Some(used)) => write!(formatter, ", {used} of {limit} bytes of the limit in use")?,
            (Some(limit), None) => write!(formatter, ", limit {limit} bytes")?,
            (None, Some(used)) => write!(formatter, ", {used} bytes in use")?,
            (None, None) => {}
        }
        if let (Some(free), Some(total)) = (self.free, self.total) {
            write!(formatter, ", {free} of {total} bytes of the device free")?;
        }
        if let (Some(used), Some(reserved)) = (self.pool_used, self.pool_reserved) {
            write!(formatter, ", {used} of {reserved} bytes of the pool in use")?;
        }
        self.largest_free.map_or(Ok(()), |largest| write!(formatter, ", largest free block {largest} bytes"))
    }
}

impl fmt::Display for RecoveryAttempt {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(formatter, "{} ({error})", self.what),
            None => formatter.write_str(self.what),
        }
    }
}

debug_as_report!(OutOfMemoryError);
