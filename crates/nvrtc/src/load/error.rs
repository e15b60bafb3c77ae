//! Why no NVRTC could be loaded.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// No NVRTC could be loaded: every path that was tried, with the reason why it did not serve.
///
/// The text is several lines long: a line for each path, and a last one that says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub struct LoadError {
    /// Every path tried, in order.
    pub attempts: Box<[Attempt]>,
}

/// One path that was tried in vain.
#[derive(Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// What the system's loader was asked for: a path, or a bare name that it searches for.
    pub path: PathBuf,
    /// Why it did not serve.
    pub rejection: Rejection,
}

/// Why a library did not serve as NVRTC.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The system's loader found no such library, or it is no library, or something that it needs is absent.
    #[error("{reason}")]
    Unloadable {
        /// What the system's loader said.
        reason: Box<str>,
    },
    /// The library lacks a function that every NVRTC from CUDA 11.2 on has.
    #[error("a library, but not NVRTC of CUDA 11.2 or newer: it has no {missing}")]
    NotNvrtc {
        /// The first function that it lacks.
        missing: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no NVRTC could be loaded; tried")?;
        for Attempt { path, rejection } in &self.attempts {
            write!(formatter, "\n  {}: {rejection}", path.display())?;
        }
        if self.attempts.is_empty() {
            formatter.write_str(" nothing: it is at no usual place")?;
        }
        formatter.write_str(
            "\nto mend it: install the CUDA toolkit or its NVRTC package, and name the library or its folder in CURIUM_NVRTC_PATH",
        )
    }
}
