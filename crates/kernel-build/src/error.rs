//! Errors of a build.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a build of kernels.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of the toolchain is missing. The text names the command that installs it.
    #[error("{0}")]
    Toolchain(String),
    /// The kernels do not compile for the device.
    #[error("the kernels do not compile for the device:\n{}", rendered(.0))]
    Compile(Vec<Diagnostic>),
    /// The kernels compile, but use what kernels must not use.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// A program failed.
    #[error("{program}: failed: {message}")]
    Program {
        /// The name of the program.
        program: String,
        /// Its output.
        message: String,
    },
    /// The source or the manifest of the kernels has a problem.
    #[error("{0}")]
    Source(String),
    /// The prebuilt PTX is missing or does not belong to the source.
    #[error("{0}")]
    Prebuilt(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The result of a build.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

/// An error message of rustc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The message without its source lines.
    pub message: String,
    /// The file, relative to the package.
    pub file: String,
    /// The line in the file, or 0 if the message has no place.
    pub line: u64,
    /// The message as rustc prints it.
    pub rendered: String,
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    let texts: Vec<&str> = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.rendered.trim_end())
        .collect();
    texts.join("\n\n")
}
