//! A call in a forked process.

use std::fmt;

use curium_sys::Function;

use super::report::{Note, OneLine, Report, debug_as_report};

/// A driver call in a process that was forked after CUDA was initialized. The driver does not work
/// there.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct ForkError {
    /// The function, which was not called.
    pub function: Function,
}

impl ForkError {
    #[inline]
    pub(crate) fn new(function: Function) -> Self {
        Self { function }
    }
}

impl Report for ForkError {
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: not called (this process was forked after CUDA was initialized)",
            self.function
        )
    }

    #[inline]
    fn notes(&self) -> Vec<Note<'_>> {
        vec![Note::Hint(
            "fork before `Driver::load`, or start a new program".into(),
        )]
    }
}

debug_as_report!(ForkError);
