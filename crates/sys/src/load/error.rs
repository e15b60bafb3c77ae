//! Why no driver could be loaded.

use core::fmt;
use std::boxed::Box;
use std::format;
use std::path::PathBuf;
use std::string::ToString as _;

use crate::CudaVersion;

/// No CUDA driver could be loaded: every path that was tried, with the reason why it did not serve.
///
/// The text is several lines long: a line for each path, and a last one that says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadError {
    /// Every path tried, in order.
    pub attempts: Box<[Attempt]>,
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

/// Why a library did not serve as the driver.
#[derive(Debug)]
#[non_exhaustive]
pub enum Rejection {
    /// The system's loader found no such library, or it is no library, or something that it needs is absent.
    Unloadable {
        /// What the system's loader said.
        reason: Box<str>,
    },
    /// The library exports no `cuInit` and `cuDriverGetVersion`.
    NotADriver,
    /// The toolkit's stub, which is there to link against and cannot run anything.
    Stub,
    /// A driver that cannot say its version.
    NoVersion {
        /// The `CUresult` that it returned.
        code: u32,
    },
    /// A driver older than Curium works with.
    TooOld {
        /// The version of this driver.
        found: CudaVersion,
    },
}

impl LoadError {
    /// What a person can do about it.
    fn advice(&self) -> &'static str {
        let any = |matches: fn(&Rejection) -> bool| self.attempts.iter().any(|attempt| matches(&attempt.rejection));
        if any(|rejection| matches!(rejection, Rejection::TooOld { .. })) {
            "update the NVIDIA driver"
        } else if any(|rejection| matches!(rejection, Rejection::Stub)) {
            "install the NVIDIA driver, and take the toolkit's `stubs` folder off the library search path"
        } else {
            "install the NVIDIA driver, or name its library in CURIUM_DRIVER_PATH; in a container, pass the GPU through with the \
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
            formatter.write_str(" nothing: CUDA has no driver for this platform")?;
        }
        write!(formatter, "\nto mend it: {}", self.advice())
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
            Self::NotADriver => {
                formatter.write_str("a library, but not a CUDA driver: it has no cuInit or no cuDriverGetVersion")
            }
            Self::Stub => formatter
                .write_str("the CUDA toolkit's stub library, which is there to link against and has no driver in it"),
            Self::NoVersion { code } => write!(formatter, "cuDriverGetVersion failed with code {code}"),
            Self::TooOld { found } => {
                let needed = CudaVersion::OLDEST_SUPPORTED;
                write!(formatter, "a driver for CUDA {found}, but CUDA {needed} or newer is needed")
            }
        }
    }
}

impl core::error::Error for Rejection {}
