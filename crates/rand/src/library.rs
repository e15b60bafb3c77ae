//! cuRAND, loaded.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use curium_driver::CudaVersion;
use curium_driver::sys::load::{LibraryDescription, LoadedLibrary, Origin, Package};
use curium_driver::sys::{ExportedFunction, FunctionTable as _};

use crate::call::call;
use crate::error::{CallError, Error, MissingFunction, Result};
use crate::sys::{Api, curandStatus_t, libraryPropertyType_t};

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "cuRAND",
    variable: "CURIUM_CURAND_PATH",
    files: if cfg!(windows) { &["curand64_10.dll"] } else { &["libcurand.so.10"] },
    origin: Origin::Toolkit(if cfg!(windows) {
        &[
            Package { name: "nvidia-curand", folder: r"nvidia\cu13\bin\x86_64" },
            Package { name: "nvidia-curand-cu12", folder: r"nvidia\curand\bin" },
            Package { name: "nvidia-curand-cu11", folder: r"nvidia\curand\bin" },
        ]
    } else {
        &[
            Package { name: "nvidia-curand", folder: "nvidia/cu13/lib" },
            Package { name: "nvidia-curand-cu12", folder: "nvidia/curand/lib" },
            Package { name: "nvidia-curand-cu11", folder: "nvidia/curand/lib" },
        ]
    }),
    companions: &[],
    required: &[c"curandCreateGenerator", c"curandGetProperty"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

/// cuRAND, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
#[derive(Clone)]
pub struct CuRand {
    api: Arc<Api>,
    version: LibraryVersion,
}

/// A version of cuRAND, whose numbers are its own and not those of CUDA.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LibraryVersion {
    /// The major version, which the name of the library has.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch level.
    pub patch: u32,
}

impl CuRand {
    /// Loads the cuRAND of this machine. Later calls return the same library.
    ///
    /// If the environment variable `CURIUM_CURAND_PATH` names a file, or a folder that contains one, nothing else is tried. Otherwise the
    /// system's loader searches for each name, the newest version first, and then the folders of CUDA toolkits and of the Python packages
    /// `nvidia-curand`, `-cu12` and `-cu11` are searched. Set-uid programs ignore the environment.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths tried and the packages to install. The next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<CuRand> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library.clone());
        }
        // SAFETY: these are the names under which cuRAND is installed.
        let library = unsafe { LIBRARY.load() }.map_err(Box::new)?;
        // SAFETY: the library is cuRAND.
        let library = unsafe { Self::from_library(&library) }?;
        Ok(LOADED.get_or_init(|| library).clone())
    }

    /// Loads the cuRAND at `path`, and no other.
    ///
    /// # Safety
    ///
    /// If the library at `path` exports the names of cuRAND's functions, it is cuRAND: its initializers may run in this process, and its
    /// functions have the signatures and the meaning that cuRAND gives to their names.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] has the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller upholds the same conditions.
        let library = unsafe { LIBRARY.load_from(path.as_ref()) }.map_err(Box::new)?;
        // SAFETY: the caller guarantees that the library is cuRAND.
        unsafe { Self::from_library(&library) }
    }

    /// Uses the functions of a table, such as those of a simulated library.
    ///
    /// # Safety
    ///
    /// The functions have the meaning that cuRAND gives to their names, and stay callable until the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Call`] if the library does not report its version.
    pub unsafe fn from_api(api: Api) -> Result<Self> {
        let version = LibraryVersion {
            major: property(&api, libraryPropertyType_t::MAJOR_VERSION)?,
            minor: property(&api, libraryPropertyType_t::MINOR_VERSION)?,
            patch: property(&api, libraryPropertyType_t::PATCH_LEVEL)?,
        };
        Ok(Self { api: Arc::new(api), version })
    }

    /// # Safety
    ///
    /// The library is cuRAND.
    unsafe fn from_library(library: &LoadedLibrary) -> Result<Self> {
        // SAFETY: the caller guarantees that the library is cuRAND.
        let api = unsafe { library.table() };
        // SAFETY: the functions are those of the library, which stays loaded.
        unsafe { Self::from_api(api) }
    }

    /// Returns the version of the library.
    #[doc(alias = "curandGetProperty")]
    #[must_use]
    pub fn version(&self) -> LibraryVersion {
        self.version
    }

    /// Returns the functions, each `None` if this version lacks it.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }
}

impl fmt::Debug for CuRand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cuRAND {}", self.version)
    }
}

impl fmt::Display for LibraryVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Api {
    /// Converts the code that `function` returned into a result.
    #[inline]
    pub(crate) fn check(&self, function: &'static str, code: curandStatus_t) -> Result<()> {
        if code == curandStatus_t::CURAND_STATUS_SUCCESS {
            Ok(())
        } else {
            Err(Error::Call(CallError { function, code }))
        }
    }

    #[cold]
    pub(crate) fn missing(&self, function: &'static str) -> Error {
        let found = Self::function(function);
        let since = found.map_or(CudaVersion::OLDEST_SUPPORTED, ExportedFunction::since);
        Error::Missing(MissingFunction { function, since, last: found.and_then(ExportedFunction::last) })
    }
}

fn property(api: &Api, property: libraryPropertyType_t) -> Result<u32> {
    let mut value = 0;
    // SAFETY: `value` is valid for writes.
    unsafe { call!(api, curandGetProperty(property, &raw mut value)) }?;
    Ok(value.try_into().unwrap_or_default())
}
