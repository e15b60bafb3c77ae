//! What can go wrong, and what is said about it.

use std::fmt;

use curium_driver::{ComputeCapability, CudaVersion};
use thiserror::Error as ThisError;

use crate::{Diagnostic, LoadError, Severity};

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// NVRTC or nvJitLink could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A program was not compiled.
    #[error(transparent)]
    Compile(#[from] Box<CompileError>),
    /// A program was not linked.
    #[error(transparent)]
    Link(#[from] Box<LinkError>),
    /// Another function of NVRTC or nvJitLink returned an error.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The library lacks a function, mostly because it is too old.
    #[error(transparent)]
    Missing(#[from] MissingFunction),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] curium_driver::Error),
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
    /// A program was asked for what its options do not make.
    #[error("`{name}` was not compiled to {wanted}: {advice}")]
    NoOutput {
        /// The name of the program.
        name: Box<str>,
        /// What was asked for, such as `a cubin`.
        wanted: &'static str,
        /// Which options make it.
        advice: &'static str,
    },
    /// A name was looked up that the program was not compiled with.
    #[error("`{expression}` is no name expression of `{program}`: add it with `Program::with_name_expression`")]
    UnknownName {
        /// The name of the program.
        program: Box<str>,
        /// What was looked up.
        expression: Box<str>,
    },
    /// The compilation was cancelled.
    #[error("the compilation of `{name}` was cancelled")]
    Cancelled {
        /// The name of the program.
        name: Box<str>,
    },
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file or folder.
        path: Box<str>,
        /// Why not.
        error: std::io::Error,
    },
}

/// A program was not compiled. The text is every diagnostic with the line of the source that it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompileError {
    /// The name that was given to the source.
    pub name: Box<str>,
    /// What NVRTC returned.
    pub call: CallError,
    /// What the compiler wrote.
    pub log: Box<str>,
    /// The errors and warnings in the log.
    pub diagnostics: Vec<Diagnostic>,
}

/// A program was not linked. The text is what the linker wrote.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LinkError {
    /// What nvJitLink returned.
    pub call: CallError,
    /// What was linked, such as the name of an input; empty if it is the whole.
    pub subject: Box<str>,
    /// What the linker wrote.
    pub log: Box<str>,
}

/// A function of NVRTC or nvJitLink returned an error.
#[derive(Clone, Debug, Eq, PartialEq, ThisError)]
#[error("{function} failed with {name} ({code})")]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub function: &'static str,
    /// The `nvrtcResult` or `nvJitLinkResult` that it returned.
    pub code: u32,
    /// The name of the code, such as `NVRTC_ERROR_COMPILATION`.
    pub name: Box<str>,
}

/// The library lacks a function, mostly because it is too old.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ThisError)]
#[error("this {library} has no {function}, which came with CUDA {since}")]
#[non_exhaustive]
pub struct MissingFunction {
    /// `NVRTC` or `nvJitLink`.
    pub library: &'static str,
    /// The function.
    pub function: &'static str,
    /// The CUDA version that introduced it; 11.8 for what is older.
    pub since: CudaVersion,
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
        if self.errors().next().is_none() && !self.log.trim().is_empty() {
            return write!(formatter, "\n{}", self.log.trim_end());
        }
        self.diagnostics.iter().try_for_each(|diagnostic| write!(formatter, "\n\n{diagnostic}"))
    }
}

impl std::error::Error for CompileError {}

impl fmt::Display for LinkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.call)?;
        if !self.subject.is_empty() {
            write!(formatter, " for {}", self.subject)?;
        }
        let log = self.log.trim_end();
        if log.is_empty() { Ok(()) } else { write!(formatter, "\n{log}") }
    }
}

impl std::error::Error for LinkError {}
