//! nvJitLink, loaded.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use curium_driver::CudaVersion;
use libloading::Library;

use super::api::Api;
use super::{LinkOptions, Linker};
use crate::Result;
use crate::api::call;
use crate::load::{self, Product};

/// How nvJitLink is found.
static NVJITLINK: Product = Product {
    name: "nvJitLink",
    variable: "CURIUM_NVJITLINK_PATH",
    files: if cfg!(windows) {
        &["nvJitLink_130_0.dll", "nvJitLink_120_0.dll"]
    } else {
        &["libnvJitLink.so.13", "libnvJitLink.so.12"]
    },
    packages: if cfg!(windows) {
        &[r"nvidia\cu13\bin\x86_64", r"nvidia\nvjitlink\bin"]
    } else {
        &["nvidia/cu13/lib", "nvidia/nvjitlink/lib"]
    },
    companion: None,
    symbols: &["nvJitLinkComplete", "__nvJitLinkComplete_12_0"],
};

/// The versions of nvJitLink that export functions only under names with a version in them, the newest first.
const VERSIONED: [u32; 3] = [2, 1, 0];

/// NVIDIA's linker, loaded. Clones are cheap and stand for the same library, which stays loaded until the process ends.
#[derive(Clone)]
pub struct NvJitLink {
    api: Arc<Api>,
    version: CudaVersion,
}

impl NvJitLink {
    /// Loads the nvJitLink of this machine; later calls give the same.
    ///
    /// It is looked for as [NVRTC is](crate::Nvrtc::load): the environment variable is `CURIUM_NVJITLINK_PATH`, the packages are
    /// `nvidia-nvjitlink` and `-cu12`, the names are `libnvJitLink.so.13` and `libnvJitLink.so.12`, on Windows `nvJitLink_130_0.dll`
    /// and `nvJitLink_120_0.dll`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) lists the paths tried. A failure is not remembered: the next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<NvJitLink> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library.clone());
        }
        // SAFETY: the library was found under the names of nvJitLink, or the user chose it.
        let library = unsafe { Self::from_library(load::installed(&NVJITLINK)?) }?;
        Ok(LOADED.get_or_init(|| library).clone())
    }

    /// Loads the nvJitLink at `path`, and no other.
    ///
    /// # Safety
    ///
    /// The library at `path`, if it exports the names of nvJitLink's functions, is nvJitLink: its initialisers may run in this process,
    /// and its functions have the signatures and the meaning that nvJitLink gives to their names.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) says why the library did not serve.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller vouches for the library.
        let library = unsafe { load::from(&NVJITLINK, path.as_ref()) }?;
        // SAFETY: as above.
        unsafe { Self::from_library(library) }
    }

    /// The CUDA version that this nvJitLink is of.
    #[doc(alias = "nvJitLinkVersion")]
    #[must_use]
    pub fn version(&self) -> CudaVersion {
        self.version
    }

    /// Begins a link.
    ///
    /// # Errors
    ///
    /// [`Error::Link`](crate::Error::Link) if an option or the architecture is not known.
    #[doc(alias = "nvJitLinkCreate")]
    pub fn linker(&self, options: &LinkOptions) -> Result<Linker> {
        Linker::new(self, options)
    }

    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    /// # Safety
    ///
    /// The library is nvJitLink.
    unsafe fn from_library(library: Library) -> Result<Self> {
        let symbols = |function: &str| {
            let [newest, middle, oldest] = VERSIONED.map(|minor| format!("__{function}_12_{minor}"));
            [function.to_owned(), newest, middle, oldest]
        };
        // SAFETY: the caller vouches for the library, which is never closed.
        let api = unsafe { Api::from_library(&library, symbols) };
        let version = version(&api, &library)?;
        std::mem::forget(library);
        Ok(Self { api: Arc::new(api), version })
    }
}

impl fmt::Debug for NvJitLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NvJitLink(CUDA {})", self.version)
    }
}

/// What the library says, or, before CUDA 12.3, the newest version that it has symbols of.
fn version(api: &Api, library: &Library) -> Result<CudaVersion> {
    if api.nvJitLinkVersion.is_none() {
        let has = |minor: &u32| {
            let symbol = format!("__nvJitLinkComplete_12_{minor}");
            // SAFETY: the symbol is only looked for.
            unsafe { library.get::<*const ()>(symbol.as_bytes()) }.is_ok()
        };
        return Ok(CudaVersion::new(12, VERSIONED.into_iter().find(has).unwrap_or_default()));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: `major` and `minor` are valid places for the answers.
    unsafe { call!(api, nvJitLinkVersion(&raw mut major, &raw mut minor)) }?;
    Ok(CudaVersion::new(major, minor))
}
