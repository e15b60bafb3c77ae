//! nvJitLink, loaded.

use std::fmt;
use std::path::Path;

use curium_driver::CudaVersion;
use curium_sys::nvjitlink::{self, Api};

use super::{LinkOptions, Linker};
use crate::Result;

/// NVIDIA's run-time linker, loaded. Clones are cheap and share the library, which stays loaded
/// until the process ends.
#[derive(Clone)]
pub struct NvJitLink(nvjitlink::NvJitLink);

impl NvJitLink {
    /// Loads the nvJitLink of this machine. Later calls return the same library.
    ///
    /// Searches the same places as [`Nvrtc::load`](crate::Nvrtc::load), with these names:
    ///
    /// - the environment variable `CURIUM_NVJITLINK_PATH`,
    /// - the Python packages `nvidia-nvjitlink` and `nvidia-nvjitlink-cu12`,
    /// - the libraries `libnvJitLink.so.13` and `libnvJitLink.so.12`; on Windows
    ///   `nvJitLink_130_0.dll` and `nvJitLink_120_0.dll`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) lists the paths tried. The next call tries again.
    pub fn load() -> Result<Self> {
        Ok(Self(nvjitlink::NvJitLink::load()?))
    }

    /// Loads the nvJitLink at `path`.
    ///
    /// # Safety
    ///
    /// A library at `path` that exports the names of nvJitLink's functions implements these
    /// functions, and its initializers may run in this process.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) contains the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        Ok(Self(unsafe { nvjitlink::NvJitLink::load_from(path) }?))
    }

    /// Returns the CUDA version of this nvJitLink.
    #[doc(alias = "nvJitLinkVersion")]
    #[must_use]
    pub fn version(&self) -> CudaVersion {
        let version = self.0.version();
        CudaVersion::new(version.major, version.minor)
    }

    /// Starts a link.
    ///
    /// # Errors
    ///
    /// [`Error::Link`](crate::Error::Link) if an option or the architecture is not supported.
    #[doc(alias = "nvJitLinkCreate")]
    pub fn linker(&self, options: &LinkOptions) -> Result<Linker> {
        Linker::new(self, options)
    }

    pub(super) fn api(&self) -> &Api {
        self.0.api()
    }
}

impl fmt::Debug for NvJitLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NvJitLink(CUDA {})", self.version())
    }
}
