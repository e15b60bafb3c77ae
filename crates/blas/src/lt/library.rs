//! cuBLASLt, loaded.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use curium_driver::CudaVersion;
use curium_driver::sys::load::{LibraryDescription, LoadedLibrary, Origin, Package};
use curium_driver::sys::{ExportedFunction, FunctionTable as _};

use crate::call::call;
use crate::error::{CallError, Error, MissingFunction, Result};
use crate::library::LibraryVersion;
use crate::sys::lt::Api;
use crate::sys::{cublasStatus_t, libraryPropertyType_t};

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "cuBLASLt",
    variable: "CURIUM_CUBLASLT_PATH",
    files: if cfg!(windows) {
        &["cublasLt64_13.dll", "cublasLt64_12.dll", "cublasLt64_11.dll"]
    } else {
        &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"]
    },
    origin: Origin::Toolkit(if cfg!(windows) {
        &[
            Package { name: "nvidia-cublas", folder: r"nvidia\cu13\bin\x86_64" },
            Package { name: "nvidia-cublas-cu12", folder: r"nvidia\cublas\bin" },
            Package { name: "nvidia-cublas-cu11", folder: r"nvidia\cublas\bin" },
        ]
    } else {
        &[
            Package { name: "nvidia-cublas", folder: "nvidia/cu13/lib" },
            Package { name: "nvidia-cublas-cu12", folder: "nvidia/cublas/lib" },
            Package { name: "nvidia-cublas-cu11", folder: "nvidia/cublas/lib" },
        ]
    }),
    companions: &[],
    required: &[c"cublasLtCreate", c"cublasLtGetProperty"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

/// cuBLASLt, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
#[derive(Clone)]
pub struct CuBlasLt {
    api: Arc<Api>,
    version: LibraryVersion,
}

impl CuBlasLt {
    /// Loads the cuBLASLt of this machine, as [`CuBlas::load`](crate::CuBlas::load) loads cuBLAS. The environment variable is
    /// `CURIUM_CUBLASLT_PATH`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths tried and the packages to install. The next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<CuBlasLt> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library.clone());
        }
        // SAFETY: these are the names under which cuBLASLt is installed.
        let library = unsafe { LIBRARY.load() }.map_err(Box::new)?;
        // SAFETY: the library is cuBLASLt.
        let library = unsafe { Self::from_library(&library) }?;
        Ok(LOADED.get_or_init(|| library).clone())
    }

    /// Loads the cuBLASLt at `path`, and no other.
    ///
    /// # Safety
    ///
    /// If the library at `path` exports the names of cuBLASLt's functions, it is cuBLASLt: its initializers may run in this process, and
    /// its functions have the signatures and the meaning that cuBLASLt gives to their names.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] has the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller upholds the same conditions.
        let library = unsafe { LIBRARY.load_from(path.as_ref()) }.map_err(Box::new)?;
        // SAFETY: the caller guarantees that the library is cuBLASLt.
        unsafe { Self::from_library(&library) }
    }

    /// Uses the functions of a table, such as those of a simulated library.
    ///
    /// # Safety
    ///
    /// The functions have the meaning that cuBLASLt gives to their names, and stay callable until the process ends.
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
    /// The library is cuBLASLt.
    unsafe fn from_library(library: &LoadedLibrary) -> Result<Self> {
        // SAFETY: the caller guarantees that the library is cuBLASLt.
        let api = unsafe { library.table() };
        // SAFETY: the functions are those of the library, which stays loaded.
        unsafe { Self::from_api(api) }
    }

    /// Returns the version of the library.
    #[doc(alias = "cublasLtGetProperty")]
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

impl fmt::Debug for CuBlasLt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cuBLASLt {}", self.version)
    }
}

impl Api {
    /// Converts the code that `function` returned into a result.
    #[inline]
    pub(crate) fn check(&self, function: &'static str, code: cublasStatus_t) -> Result<()> {
        if code == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
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
    unsafe { call!(api, cublasLtGetProperty(property, &raw mut value)) }?;
    Ok(value.try_into().unwrap_or_default())
}
