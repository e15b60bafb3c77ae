//! The error of loading a library.

use core::fmt;
use std::boxed::Box;
use std::format;
use std::path::PathBuf;
use std::string::{String, ToString as _};
use std::vec::Vec;

use thiserror::Error;

use super::{LibraryDescription, Origin, Package};
use crate::CudaVersion;

/// A library could not be loaded.
///
/// The text of `Display` and `Debug` has one line for each path tried, one line with the searched
/// folders that do not contain the library, and a last line with a hint.
#[derive(Error)]
#[non_exhaustive]
pub struct LoadError {
    /// The library, such as `CUDA driver`.
    pub library: &'static str,
    /// Every path tried, in order.
    pub attempts: Box<[Attempt]>,
    /// The folders that were searched and do not contain the library.
    pub folders: Box<[PathBuf]>,
    variable: &'static str,
    origin: Origin,
}

/// A path that was tried. Its text is the path and the reason for the rejection.
#[non_exhaustive]
pub struct Attempt {
    /// The argument passed to the system's loader: a path, or a file name to search for.
    pub path: PathBuf,
    /// The reason.
    pub rejection: Rejection,
}

/// The reason why a library was rejected.
#[derive(Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The file does not exist, is not a library, or depends on a missing library.
    #[error("{reason}")]
    Unloadable {
        /// The message of the system's loader.
        reason: Box<str>,
    },
    /// The library lacks a function that every version of the described library exports.
    #[error("not the library of the {library} (missing function {missing})")]
    OtherLibrary {
        /// The library that was expected.
        library: &'static str,
        /// The missing function.
        missing: &'static str,
    },
    /// The toolkit's stub library, which is for linking only.
    #[error("the CUDA toolkit's stub library, which is for linking only")]
    Stub,
    /// The library failed to report its version.
    #[error("{function} failed (code {code})")]
    NoVersion {
        /// The function that failed.
        function: &'static str,
        /// The result code.
        code: u32,
    },
    /// The library is older than Curium supports.
    #[error("too old (CUDA {found}; CUDA {needed} or newer is required)")]
    TooOld {
        /// The CUDA version of the library.
        found: CudaVersion,
        /// The oldest version that Curium supports.
        needed: CudaVersion,
    },
}

impl LoadError {
    pub(super) fn new(
        library: &LibraryDescription,
        attempts: Vec<Attempt>,
        folders: Vec<PathBuf>,
    ) -> Self {
        let LibraryDescription {
            name,
            variable,
            origin,
            ..
        } = *library;
        Self {
            library: name,
            attempts: attempts.into(),
            folders: folders.into(),
            variable,
            origin,
        }
    }

    /// Returns the hint: the package to install, or the variable to set.
    #[must_use]
    pub fn hint(&self) -> String {
        match self.origin {
            Origin::Driver => self.driver_advice(),
            Origin::Toolkit(packages) => self.toolkit_advice(packages),
        }
    }

    fn driver_advice(&self) -> String {
        let mut rejections = self.attempts.iter().map(|attempt| &attempt.rejection);
        if rejections
            .clone()
            .any(|rejection| matches!(rejection, Rejection::TooOld { .. }))
        {
            "update the NVIDIA driver".into()
        } else if rejections.any(|rejection| matches!(rejection, Rejection::Stub)) {
            "install the NVIDIA driver, and remove the toolkit's `stubs` folder from the library search path".into()
        } else {
            format!(
                "install the NVIDIA driver, or set {} to its library; in a container, pass the GPU through with the NVIDIA Container \
                 Toolkit",
                self.variable
            )
        }
    }

    fn toolkit_advice(&self, packages: &[Package]) -> String {
        let commands: Vec<_> = packages
            .iter()
            .map(|package| format!("`pip install {}`", package.name))
            .collect();
        let variable = self.variable;
        format!(
            "{}, or install the CUDA toolkit, or set {variable} to the library or its folder",
            commands.join(" or ")
        )
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "no {} could be loaded; tried", self.library)?;
        for attempt in &self.attempts {
            write!(formatter, "\n  {attempt}")?;
        }
        if self.attempts.is_empty() {
            formatter.write_str(" nothing (no candidate on this platform)")?;
        }
        for (index, folder) in self.folders.iter().enumerate() {
            let before = if index == 0 {
                "\n  not found in "
            } else {
                ", "
            };
            write!(formatter, "{before}{}", folder.display())?;
        }
        write!(formatter, "\nto fix it: {}", self.hint())
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = format!("{}: ", self.path.display());
        let reason = self.rejection.to_string();
        // The system's message often starts with the path.
        write!(
            formatter,
            "{path}{}",
            reason.strip_prefix(&path).unwrap_or(&reason)
        )
    }
}

impl fmt::Debug for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
