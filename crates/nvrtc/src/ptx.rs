//! What compiling gives.

use std::fmt;

use crate::Diagnostic;

/// A compiled program: PTX, and what the compiler had to say about the source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ptx {
    pub(crate) text: String,
    pub(crate) log: String,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Ptx {
    /// The PTX text, as a module or library takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the compiler wrote, such as warnings; mostly empty.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The warnings and remarks in the log.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The PTX text by value.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }
}

impl AsRef<str> for Ptx {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Ptx {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
