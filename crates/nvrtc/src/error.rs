//! Errors: the operation that failed, the reason, and a hint.

use std::fmt;
use std::path::PathBuf;

use curium_driver::ComputeCapability;
use curium_sys::load::{self, LibraryError, LoadError, MissingFunction};
use thiserror::Error as ThisError;

use crate::{Diagnostic, Severity};

/// A `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason for a failed operation. `Debug` writes the text of `Display` with hints and sources
/// on their own lines.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// NVRTC or nvJitLink could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A program could not be compiled.
    #[error(transparent)]
    Compile(#[from] Box<CompileError>),
    /// A program could not be linked.
    #[error(transparent)]
    Link(#[from] Box<LinkError>),
    /// Another function of NVRTC or nvJitLink returned an error.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The library lacks a function, usually because it is too old.
    #[error(transparent)]
    Missing(#[from] MissingFunction),
    /// An operation of the driver failed.
    #[error("{0}")]
    Driver(#[from] curium_driver::Error),
    /// A text for the compiler contains a NUL.
    #[error("{what}: NUL character (byte {position})")]
    Nul {
        /// The text, such as `the source`.
        what: Box<str>,
        /// The position of the NUL in bytes.
        position: usize,
    },
    /// The device is older than every architecture that this NVRTC supports.
    #[error(
        "NVRTC: unsupported device (compute capability {device}, NVRTC supports {oldest} and newer); use an older NVRTC"
    )]
    TooOldDevice {
        /// The oldest architecture that NVRTC supports.
        oldest: ComputeCapability,
        /// The architecture of the device.
        device: ComputeCapability,
    },
    /// The program was compiled with options that do not produce this output.
    #[error("`{name}`: not compiled to {wanted}; {advice}")]
    NoOutput {
        /// The name of the program.
        name: Box<str>,
        /// The output, such as `a cubin`.
        wanted: &'static str,
        /// The options that produce it.
        advice: &'static str,
    },
    /// The program was compiled without this name expression.
    #[error(
        "`{program}`: unknown name expression (`{expression}`); add it with `Program::with_name_expression`"
    )]
    UnknownName {
        /// The name of the program.
        program: Box<str>,
        /// The name expression.
        expression: Box<str>,
    },
    /// The compilation was cancelled.
    #[error("`{name}`: compilation cancelled")]
    Cancelled {
        /// The name of the program.
        name: Box<str>,
    },
    /// A header of CUDA is not installed.
    #[error(
        "CUDA headers: `{header}` not found (searched {}); install the Python package `{package}`, or set CUDA_HOME to a CUDA toolkit or CURIUM_CUDA_INCLUDE_PATH to the folders",
        list(.folders)
    )]
    Headers {
        /// The header.
        header: &'static str,
        /// The packages that have it.
        package: &'static str,
        /// The folders that were searched.
        folders: Vec<PathBuf>,
    },
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file or folder.
        path: Box<str>,
        /// The error of the system.
        error: std::io::Error,
    },
}

/// A program that could not be compiled. The text contains every diagnostic with its source line.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[non_exhaustive]
pub struct CompileError {
    /// The name of the source.
    pub name: Box<str>,
    /// The call that failed.
    pub call: CallError,
    /// The compiler's log.
    pub log: Box<str>,
    /// The errors and warnings in the log.
    pub diagnostics: Vec<Diagnostic>,
}

/// A program that could not be linked. The text contains the linker's log.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[non_exhaustive]
pub struct LinkError {
    /// The call that failed.
    pub call: CallError,
    /// The operand, such as the name of an input; empty for the whole program.
    pub subject: Box<str>,
    /// The linker's log.
    pub log: Box<str>,
}

/// A function of NVRTC or nvJitLink that returned an error code.
#[derive(Clone, Eq, PartialEq, ThisError)]
#[error("{function}: failed ({name} = {code})")]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub function: &'static str,
    /// The `nvrtcResult` or `nvJitLinkResult` that it returned.
    pub code: u32,
    /// The name of the code, such as `NVRTC_ERROR_COMPILATION`.
    pub name: Box<str>,
}

impl<C: fmt::Debug> From<LibraryError<C>> for Error {
    fn from(error: LibraryError<C>) -> Self {
        error.into_error()
    }
}

impl<C: fmt::Debug> From<Box<load::CallError<C>>> for Error {
    fn from(error: Box<load::CallError<C>>) -> Self {
        Self::Call(CallError {
            function: error.function,
            code: error.number,
            name: format!("{:?}", error.code).into(),
        })
    }
}

impl From<Box<MissingFunction>> for Error {
    fn from(error: Box<MissingFunction>) -> Self {
        Self::Missing(*error)
    }
}

impl CompileError {
    /// Returns the errors among the diagnostics.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: not compiled ({})", self.name, self.call)?;
        if self.errors().next().is_none() && !self.log.trim().is_empty() {
            return write!(formatter, "\n{}", self.log.trim_end());
        }
        self.diagnostics
            .iter()
            .try_for_each(|diagnostic| write!(formatter, "\n\n{diagnostic}"))
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallError {
            function,
            code,
            name,
        } = &self.call;
        write!(formatter, "{function}: failed (")?;
        if !self.subject.is_empty() {
            write!(formatter, "{}, ", self.subject)?;
        }
        write!(formatter, "{name} = {code})")?;
        let log = self.log.trim_end();
        if log.is_empty() {
            Ok(())
        } else {
            write!(formatter, "\n{log}")
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => fmt::Debug::fmt(error, formatter),
            Self::Driver(error) => fmt::Debug::fmt(error, formatter),
            // Logs are not split.
            Self::Compile(_) | Self::Link(_) => fmt::Display::fmt(self, formatter),
            _ => write_lines(formatter, self),
        }
    }
}

/// Joins folders with commas.
fn list(folders: &[PathBuf]) -> String {
    let folders: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    if folders.is_empty() {
        "no folder".to_owned()
    } else {
        folders.join(", ")
    }
}

/// Writes the text of `error` with its hint on its own line.
fn write_lines(formatter: &mut fmt::Formatter<'_>, error: &impl fmt::Display) -> fmt::Result {
    let text = error.to_string();
    match text.split_once("; ") {
        Some((problem, hint)) => write!(formatter, "{problem}\n  hint: {hint}"),
        None => formatter.write_str(&text),
    }
}

impl fmt::Debug for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for LinkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
