//! What can go wrong, and what is said about it.

use std::fmt;

use curium_driver::ComputeCapability;
use thiserror::Error as ThisError;

use crate::{Diagnostic, LoadError, Severity};

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// No NVRTC could be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A program was not compiled.
    #[error(transparent)]
    Compile(#[from] Box<CompileError>),
    /// Another function of NVRTC returned an error.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Text with a NUL in it was to be passed to the compiler, which would read it to there only.
    #[error("{what} has a NUL at byte {position}")]
    Nul {
        /// What the text is.
        what: Box<str>,
        /// Where the NUL is, in bytes.
        position: usize,
    },
    /// The device is older than everything that this NVRTC compiles for.
    #[error("the oldest architecture that this NVRTC compiles for is {oldest}, and the device's is {device}")]
    TooOldDevice {
        /// The oldest architecture that it compiles for.
        oldest: ComputeCapability,
        /// The architecture of the device.
        device: ComputeCapability,
    },
}

/// A program was not compiled. The text is the compiler's log under a line that says what was compiled.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompileError {
    /// The name that was given to the source.
    pub name: Box<str>,
    /// What NVRTC returned.
    pub call: CallError,
    /// What the compiler wrote.
    pub log: Box<str>,
    /// The errors and warnings in the log that have a place in the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// A function of NVRTC returned an error.
#[derive(Clone, Debug, Eq, PartialEq, ThisError)]
#[error("{function} failed with {name} ({code})")]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub function: &'static str,
    /// The `nvrtcResult` that it returned.
    pub code: i32,
    /// NVRTC's name for the code, such as `NVRTC_ERROR_COMPILATION`.
    pub name: Box<str>,
}

impl CompileError {
    /// The errors among the diagnostics.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` was not compiled: {}", self.name, self.call)?;
        let log = self.log.trim_end();
        if log.is_empty() { Ok(()) } else { write!(formatter, "\n{log}") }
    }
}

impl std::error::Error for CompileError {}
