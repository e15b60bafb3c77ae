//! One thing that the doctor says.

use serde::Serialize;

/// What a check found, with what to do about it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// The name of the check, which stays the same between versions.
    pub(crate) check: &'static str,
    pub(crate) severity: Severity,
    /// What is so.
    pub(crate) what: String,
    /// What a person can do, the likelier first.
    pub(crate) fixes: Vec<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// CUDA works, but not all of it, or not for long.
    Warning,
    /// CUDA does not work for this reason.
    Failure,
}

impl Finding {
    pub(crate) fn good(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Severity::Good, what, [])
    }

    pub(crate) fn note(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Severity::Note, what, [])
    }

    pub(crate) fn warning<const N: usize>(check: &'static str, what: impl Into<String>, fixes: [&str; N]) -> Self {
        Self::new(check, Severity::Warning, what, fixes)
    }

    pub(crate) fn failure<const N: usize>(check: &'static str, what: impl Into<String>, fixes: [&str; N]) -> Self {
        Self::new(check, Severity::Failure, what, fixes)
    }

    fn new<const N: usize>(check: &'static str, severity: Severity, what: impl Into<String>, fixes: [&str; N]) -> Self {
        Self { check, severity, what: what.into(), fixes: fixes.map(str::to_owned).to_vec() }
    }
}
