//! One finding of the doctor.

/// The result of a check, with fixes.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Finding {
    /// The name of the check, which stays the same between versions.
    pub(crate) check: &'static str,
    pub(crate) severity: Severity,
    /// The problem or fact.
    pub(crate) what: String,
    /// Fixes, the most likely first.
    pub(crate) fixes: Vec<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// All is well.
    Good,
    /// Worth knowing.
    Note,
    /// CUDA works with restrictions.
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

    pub(crate) fn warning<const N: usize>(
        check: &'static str,
        what: impl Into<String>,
        fixes: [&str; N],
    ) -> Self {
        Self::new(check, Severity::Warning, what, fixes)
    }

    pub(crate) fn failure<const N: usize>(
        check: &'static str,
        what: impl Into<String>,
        fixes: [&str; N],
    ) -> Self {
        Self::new(check, Severity::Failure, what, fixes)
    }

    fn new<const N: usize>(
        check: &'static str,
        severity: Severity,
        what: impl Into<String>,
        fixes: [&str; N],
    ) -> Self {
        Self {
            check,
            severity,
            what: what.into(),
            fixes: fixes.map(str::to_owned).to_vec(),
        }
    }
}
