//! The error of loading the driver.

use core::fmt;
use std::boxed::Box;
use std::format;
use std::path::PathBuf;
use std::string::ToString as _;

use crate::CudaVersion;

/// No CUDA driver could be loaded: every path that was tried, with the reason why it was rejected.
///
/// The text, of `Display` and `Debug` alike, has a line for each path and a last one with advice.
#[non_exhaustive]
pub struct LoadError {
    /// Every path tried, in order.
    pub attempts: Box<[Attempt]>,
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
#[non_exhaustive]
pub enum Rejection {
    /// The system's loader found no such library, or it is no library, or one of its dependencies is missing.
    Unloadable {
        /// The message of the system's loader.
        reason: Box<str>,
    },
    /// The library exports no `cuInit` and `cuDriverGetVersion`.
    NotADriver,
    /// The toolkit's stub, which serves linking only.
    Stub,
    /// A driver that fails to report its version.
    NoVersion {
        /// The `CUresult` that it returned.
        code: u32,
    },
    /// A driver older than Curium supports.
    TooOld {
        /// The version of this driver.
        found: CudaVersion,
    },
}

impl LoadError {
    /// Returns advice that fits the rejections.
    fn advice(&self) -> &'static str {
        let any = |matches: fn(&Rejection) -> bool| self.attempts.iter().any(|attempt| matches(&attempt.rejection));
        if any(|rejection| matches!(rejection, Rejection::TooOld { .. })) {
            "update the NVIDIA driver"
        } else if any(|rejection| matches!(rejection, Rejection::Stub)) {
            "install the NVIDIA driver, and remove the toolkit's `stubs` folder from the library search path"
        } else {
            "install the NVIDIA driver, or set CURIUM_DRIVER_PATH to its library; in a container, pass the GPU through with the \
             NVIDIA container toolkit"
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no CUDA driver could be loaded; tried")?;
        for attempt in &self.attempts {
            write!(formatter, "\n  {attempt}")?;
        }
        if self.attempts.is_empty() {
            formatter.write_str(" nothing (CUDA has no driver for this platform)")?;
        }
        write!(formatter, "\nto fix it: {}", self.advice())
    }
}

impl core::error::Error for LoadError {}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, reason) = (format!("{}: ", self.path.display()), self.rejection.to_string());
        // The system's own words often begin with the path.
        write!(formatter, "{path}{}", reason.strip_prefix(&path).unwrap_or(&reason))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unloadable { reason } => formatter.write_str(reason),
            Self::NotADriver => formatter.write_str("not a CUDA driver (cuInit or cuDriverGetVersion is missing)"),
            Self::Stub => formatter.write_str("the CUDA toolkit's stub library, which serves linking only"),
            Self::NoVersion { code } => write!(formatter, "cuDriverGetVersion failed (code {code})"),
            Self::TooOld { found } => {
                let needed = CudaVersion::OLDEST_SUPPORTED;
                write!(formatter, "a driver for CUDA {found} (CUDA {needed} or newer is required)")
            }
        }
    }
}

impl core::error::Error for Rejection {}

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
