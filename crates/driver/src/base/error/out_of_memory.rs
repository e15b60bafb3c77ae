//! Out-of-memory errors, with the memory usage of the device and the resource.

use std::fmt;

use super::CallError;
use super::report::{Note, OneLine, Report, debug_as_report};
use crate::Error;

/// A failed allocation, with the memory usage at that time. Unknown figures are `None`.
#[derive(thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct OutOfMemoryError {
    /// The failed call; `None` if a resource rejected the allocation.
    pub call: Option<CallError>,
    /// The limit of the resource in bytes, if it was reached.
    pub limit: Option<usize>,
    /// The requested size in bytes.
    pub requested: usize,
    /// The bytes in use in the resource that has the limit.
    pub used: Option<usize>,
    /// The free memory of the device in bytes, excluding pools and caches.
    pub free: Option<usize>,
    /// The total memory of the device in bytes.
    pub total: Option<usize>,
    /// The bytes in use in the device's current memory pool.
    pub pool_used: Option<usize>,
    /// The bytes reserved by the device's current memory pool.
    pub pool_reserved: Option<usize>,
    /// The size in bytes of the largest free block, for resources that cache memory.
    pub largest_free: Option<usize>,
    /// The recovery steps that were tried, in order.
    pub attempts: Vec<RecoveryAttempt>,
}

/// One recovery step that was tried.
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
    pub fn new(what: &'static str, error: Option<Error>) -> Self {
        Self { what, error }
    }
}

impl Error {
    /// Creates the error of a resource that rejects `requested` bytes, because of its `limit` or
    /// for another reason.
    #[cold]
    #[must_use]
    pub fn refused_memory(requested: usize, limit: Option<usize>, used: Option<usize>) -> Self {
        let error = OutOfMemoryError {
            limit,
            used,
            ..OutOfMemoryError::bare(requested)
        };
        Self::OutOfMemory(Box::new(error))
    }

    /// Adds recovery steps to an out-of-memory error. Other errors are returned unchanged.
    #[cold]
    #[must_use]
    pub fn with_recovery_attempts(mut self, attempts: Vec<RecoveryAttempt>) -> Self {
        if let Self::OutOfMemory(error) = &mut self {
            error.attempts.extend(attempts);
        }
        self
    }
}

impl OutOfMemoryError {
    /// Creates an error that contains the requested size only.
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

    fn notes(&self) -> Vec<Note<'_>> {
        let attempts: Vec<_> = self.attempts.iter().map(ToString::to_string).collect();
        let tried = (!attempts.is_empty()).then(|| Note::Tried(attempts.join(", ")));
        self.call
            .as_ref()
            .map(Report::notes)
            .unwrap_or_default()
            .into_iter()
            .chain(tried)
            .collect()
    }

    fn logs(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call
            .as_ref()
            .map_or(Ok(()), |call| call.logs(formatter))
    }
}

impl OutOfMemoryError {
    /// Writes the operands of the call, and the requested size if it differs: a resource may
    /// allocate more than the caller requested.
    fn write_request(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requested = format!("{} bytes", self.requested);
        match self
            .call
            .as_ref()
            .map(|call| &*call.subject)
            .filter(|subject| !subject.is_empty())
        {
            Some(subject) if subject.starts_with(&requested) => formatter.write_str(subject),
            Some(subject) => write!(formatter, "{subject} for a request of {requested}"),
            None => formatter.write_str(&requested),
        }
    }

    fn write_figures(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.limit, self.used) {
            (Some(limit), Some(used)) => {
                write!(formatter, ", {used} of {limit} bytes of the limit in use")?;
            }
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
        self.largest_free.map_or(Ok(()), |largest| {
            write!(formatter, ", largest free block {largest} bytes")
        })
    }
}

impl fmt::Display for RecoveryAttempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(formatter, "{} ({error})", self.what),
            None => formatter.write_str(self.what),
        }
    }
}

debug_as_report!(OutOfMemoryError);
