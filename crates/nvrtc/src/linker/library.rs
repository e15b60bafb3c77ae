//! nvJitLink, loaded.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use std::ffi::CString;

use curium_driver::CudaVersion;
use curium_driver::sys::call;
use curium_driver::sys::load::{LibraryDescription, LoadedLibrary, Origin, Package};

use super::api::Api;
use super::{LinkOptions, Linker};
use crate::Result;

/// The library of nvJitLink.
static NVJITLINK: LibraryDescription = LibraryDescription {
    name: "nvJitLink",
    variable: "CURIUM_NVJITLINK_PATH",
    files: if cfg!(windows) {
        &["nvJitLink_130_0.dll", "nvJitLink_120_0.dll"]
    } else {
        &["libnvJitLink.so.13", "libnvJitLink.so.12"]
    },
    origin: Origin::Toolkit(if cfg!(windows) {
        &[
            Package {
                name: "nvidia-nvjitlink",
                folder: r"nvidia\cu13\bin\x86_64",
            },
            Package {
                name: "nvidia-nvjitlink-cu12",
                folder: r"nvidia\nvjitlink\bin",
            },
        ]
    } else {
        &[
            Package {
                name: "nvidia-nvjitlink",
                folder: "nvidia/cu13/lib",
            },
            Package {
                name: "nvidia-nvjitlink-cu12",
                folder: "nvidia/nvjitlink/lib",
            },
        ]
    }),
    companions: &[],
    required: &[c"nvJitLinkComplete"],
    symbol_versions: &SYMBOL_VERSIONS,
    check: |_| Ok(()),
};

/// The symbol suffixes of nvJitLink 12.0 to 12.2, newest first. These releases do not export the plain names.
const SYMBOL_VERSIONS: [&str; 3] = ["_12_2", "_12_1", "_12_0"];

/// NVIDIA's run-time linker, loaded. Clones are cheap and share the library, which stays loaded until the process ends.
#[derive(Clone)]
pub struct NvJitLink {
    api: Arc<Api>,
    version: CudaVersion,
}

impl NvJitLink {
    /// Loads the nvJitLink of this machine. Later calls return the same library.
    ///
    /// Searches the same places as [`Nvrtc::load`](crate::Nvrtc::load), with these names:
    ///
    /// - the environment variable `CURIUM_NVJITLINK_PATH`,
    /// - the Python packages `nvidia-nvjitlink` and `nvidia-nvjitlink-cu12`,
    /// - the libraries `libnvJitLink.so.13` and `libnvJitLink.so.12`; on Windows `nvJitLink_130_0.dll` and
    ///   `nvJitLink_120_0.dll`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) lists the paths tried. The next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<NvJitLink> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library.clone());
        }
        // SAFETY: these are the names under which nvJitLink is installed.
        let library = unsafe { NVJITLINK.load() }.map_err(Box::new)?;
        // SAFETY: the library is nvJitLink.
        let library = unsafe { Self::from_library(&library) }?;
        Ok(LOADED.get_or_init(|| library).clone())
    }

    /// Loads the nvJitLink at `path`.
    ///
    /// # Safety
    ///
    /// A library at `path` that exports the names of nvJitLink's functions implements these functions, and its
    /// initializers may run in this process.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) contains the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller guarantees the library at `path`.
        let library = unsafe { NVJITLINK.load_from(path.as_ref()) }.map_err(Box::new)?;
        // SAFETY: the caller guarantees that the library is nvJitLink.
        unsafe { Self::from_library(&library) }
    }

    /// Returns the CUDA version of this nvJitLink.
    #[doc(alias = "nvJitLinkVersion")]
    #[must_use]
    pub fn version(&self) -> CudaVersion {
        self.version
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
        &self.api
    }

    /// Creates the linker library from its functions.
    ///
    /// # Safety
    ///
    /// The library is nvJitLink.
    unsafe fn from_library(library: &LoadedLibrary) -> Result<Self> {
        // SAFETY: the caller guarantees that the library is nvJitLink, and the list declares nvJitLink's functions.
        let api = unsafe { library.table::<Api>() };
        let version = version(&api, library)?;
        Ok(Self {
            api: Arc::new(api),
            version,
        })
    }
}

impl fmt::Debug for NvJitLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NvJitLink(CUDA {})", self.version)
    }
}

/// Returns the reported version. Releases before CUDA 12.3 report none; the version of their newest symbols is used.
fn version(api: &Api, library: &LoadedLibrary) -> Result<CudaVersion> {
    if api.nvJitLinkVersion.is_none() {
        let newest = SYMBOL_VERSIONS.iter().find(|suffix| {
            let symbol = CString::new(format!("__nvJitLinkComplete{suffix}")).unwrap_or_default();
            !library.address(&symbol).is_null()
        });
        let minor = newest.and_then(|suffix| suffix.rsplit('_').next()?.parse().ok());
        return Ok(CudaVersion::new(12, minor.unwrap_or_default()));
    }
    let mut major = 0;
    let mut minor = 0;
    // SAFETY: `major` and `minor` are valid for writes.
    unsafe { call!(api, nvJitLinkVersion(&raw mut major, &raw mut minor)) }?;
    Ok(CudaVersion::new(major, minor))
}
