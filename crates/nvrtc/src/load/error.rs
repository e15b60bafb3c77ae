//! Why NVRTC or nvJitLink could not be loaded.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::Product;

/// NVRTC or nvJitLink could not be loaded: every path that was tried, with the reason why it did not serve.
///
/// The text is several lines long: a line for each path, one with the folders that hold none, and a last one that says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub struct LoadError {
    /// `NVRTC` or `nvJitLink`.
    pub product: &'static str,
    /// Every path tried, in order.
    pub attempts: Box<[Attempt]>,
    /// The folders that were searched and hold no such library.
    pub folders: Box<[PathBuf]>,
    variable: &'static str,
}

/// One path that was tried in vain. The text is the path and the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// What the system's loader was asked for: a path, or a bare name that it searches for.
    pub path: PathBuf,
    /// Why it did not serve.
    pub rejection: Rejection,
}

/// Why a library did not serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The system's loader found no such library, or it is no library, or something that it needs is absent.
    #[error("{reason}")]
    Unloadable {
        /// What the system's loader said.
        reason: Box<str>,
    },
    /// The library lacks a function that every version has.
    #[error("a library, but not {product}: it has no {missing}")]
    OtherLibrary {
        /// What it should be.
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
            formatter.write_str(" nothing: it is at no usual place")?;
        }
        if !folders.is_empty() {
            formatter.write_str("\n  and it is not in")?;
            for (index, folder) in folders.iter().enumerate() {
                write!(formatter, "{} {}", if index > 0 { "," } else { "" }, folder.display())?;
            }
        }
        let package = if *product == "NVRTC" { "nvidia-cuda-nvrtc" } else { "nvidia-nvjitlink" };
        write!(
            formatter,
            "\nto mend it: `pip install {package}-cu12` (or `{package}` for CUDA 13), or install the CUDA toolkit, or name the library or its folder \
             in {variable}"
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
