//! Waits that did not end in time.

use std::fmt;
use std::time::Duration;

use super::report::{Note, OneLine, Report, debug_as_report};

/// A wait that did not end in time. The work continues.
#[derive(thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct TimeoutError {
    /// The operation whose end was awaited, such as `Stream::completion`.
    pub operation: &'static str,
    /// The point that was not reached in time; for a wait for several, those that were not, up to
    /// eight of them.
    pub subject: Box<str>,
    /// The time limit.
    pub limit: Duration,
}

impl TimeoutError {
    pub(crate) fn new(operation: &'static str, subject: String, limit: Duration) -> Self {
        Self {
            operation,
            subject: subject.into(),
            limit,
        }
    }

    /// Returns the hint.
    #[must_use]
    pub fn hint(&self) -> &str {
        "the work continues; `Timeout::into_inner` continues the wait"
    }
}

impl Report for TimeoutError {
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: not complete after {:?} ({})",
            self.operation, self.limit, self.subject
        )
    }

    fn notes(&self) -> Vec<Note<'_>> {
        vec![Note::Hint(self.hint().into())]
    }
}

debug_as_report!(TimeoutError);
