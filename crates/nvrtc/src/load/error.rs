//! The error of loading NVRTC or nvJitLink.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::Product;

/// NVRTC or nvJitLink could not be loaded: every path that was tried, with the reason why it was rejected.
///
/// The text, of `Display` and `Debug` alike, has a line for each path, one with the folders that were searched, and a last one with
/// advice.
#[derive(Error)]
#[non_exhaustive]
pub struct LoadError {
    /// `NVRTC` or `nvJitLink`.
    pub product: &'static str,
    /// Every path tried, in order.
    pub attempts: Box<[Attempt]>,
    /// The folders that were searched in vain.
    pub folders: Box<[PathBuf]>,
    variable: &'static str,
}

/// One path that was tried. The text is the path and the reason why it was rejected.
#[non_exhaustive]
pub struct Attempt {
    /// The argument of the system's loader: a path, or a name that it searches for.
    pub path: PathBuf,
    /// The reason.
    pub rejection: Rejection,
}

/// The reason why a library was rejected.
#[derive(Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The system's loader found no such library, or it is no library, or one of its dependencies is missing.
    #[error("{reason}")]
    Unloadable {
        /// The message of the system's loader.
        reason: Box<str>,
    },
    /// The library lacks a function that every version has.
    #[error("not {product} ({missing} is missing)")]
    OtherLibrary {
        /// The library that was expected.
        product: &'static str,
        /// The function that it lacks.
        missing: &'static str,
    },
}

impl LoadError {
    pub(super) fn new(product: &Product, attempts: Vec<Attempt>, folders: Vec<PathBuf>) -> Self {
        let (attempts, folders) = (attempts.into(), folders.into());
        Self { product: product.name, attempts, folders, variable: product.variable }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { product, attempts, folders, variable } = self;
        write!(formatter, "no {product} could be loaded; tried")?;
        for attempt in attempts {
            write!(formatter, "\n  {attempt}")?;
        }
        if attempts.is_empty() {
            formatter.write_str(" nothing (no usual path holds it)")?;
        }
        if !folders.is_empty() {
            formatter.write_str("\n  not found in")?;
            for (index, folder) in folders.iter().enumerate() {
                write!(formatter, "{} {}", if index > 0 { "," } else { "" }, folder.display())?;
            }
        }
        let package = if *product == "NVRTC" { "nvidia-cuda-nvrtc" } else { "nvidia-nvjitlink" };
        write!(
            formatter,
            "\nto fix it: `pip install {package}-cu12` (or `{package}` for CUDA 13), or install the CUDA toolkit, or set {variable} to the \
             library or its folder"
        )
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, reason) = (format!("{}: ", self.path.display()), self.rejection.to_string());
        // The system's own words often begin with the path.
        write!(formatter, "{path}{}", reason.strip_prefix(&path).unwrap_or(&reason))
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
