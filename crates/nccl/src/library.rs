//! NCCL, loaded.

use std::ffi::CStr;
use std::fmt;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, OnceLock};

use curium_driver::sys::load::{LibraryDescription, LoadedLibrary, Origin, Package};
use curium_driver::sys::{CudaVersion, ExportedFunction, FunctionTable as _};

use crate::call::call;
use crate::error::{CallError, Error, MissingFunction, Result};
use crate::sys::{Api, ncclResult_t};

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "NCCL",
    variable: "CURIUM_NCCL_PATH",
    files: &["libnccl.so.2"],
    origin: Origin::Toolkit(&[
        Package { name: "nvidia-nccl-cu13", folder: "nvidia/nccl/lib" },
        Package { name: "nvidia-nccl-cu12", folder: "nvidia/nccl/lib" },
        Package { name: "nvidia-nccl-cu11", folder: "nvidia/nccl/lib" },
    ]),
    companions: &[],
    required: &[c"ncclGetVersion", c"ncclCommInitRankConfig"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

/// NCCL, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
#[derive(Clone)]
pub struct Nccl {
    api: Arc<Api>,
    version: NcclVersion,
}

/// A version of NCCL, whose numbers are its own and not those of CUDA.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NcclVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch level.
    pub patch: u32,
}

impl Nccl {
    /// Loads the NCCL of this machine. Later calls return the same library.
    ///
    /// If the environment variable `CURIUM_NCCL_PATH` names a file, or a folder that contains one, nothing else is tried. Otherwise the
    /// system's loader searches for `libnccl.so.2`, and then the folders of CUDA toolkits and of the Python packages `nvidia-nccl-cu13`,
    /// `-cu12` and `-cu11` are searched. Set-uid programs ignore the environment.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths tried and the packages to install. The next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<Nccl> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library.clone());
        }
        // SAFETY: this is the name under which NCCL is installed.
        let library = unsafe { LIBRARY.load() }.map_err(Box::new)?;
        // SAFETY: the library is NCCL.
        let library = unsafe { Self::from_library(&library) }?;
        Ok(LOADED.get_or_init(|| library).clone())
    }

    /// Loads the NCCL at `path`, and no other.
    ///
    /// # Safety
    ///
    /// If the library at `path` exports the names of NCCL's functions, it is NCCL: its initializers may run in this process, and its
    /// functions have the signatures and the meaning that NCCL gives to their names.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] has the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller upholds the same conditions.
        let library = unsafe { LIBRARY.load_from(path.as_ref()) }.map_err(Box::new)?;
        // SAFETY: the caller guarantees that the library is NCCL.
        unsafe { Self::from_library(&library) }
    }

    /// Uses the functions of a table, such as those of a simulated library.
    ///
    /// # Safety
    ///
    /// The functions have the meaning that NCCL gives to their names, and stay callable until the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Call`] if the library does not report its version.
    pub unsafe fn from_api(api: Api) -> Result<Self> {
        let mut code = 0;
        // SAFETY: `code` is valid for writes.
        unsafe { call!(&api, ncclGetVersion(&raw mut code)) }?;
        let version = NcclVersion::from_code(code.try_into().unwrap_or_default());
        Ok(Self { api: Arc::new(api), version })
    }

    /// # Safety
    ///
    /// The library is NCCL.
    unsafe fn from_library(library: &LoadedLibrary) -> Result<Self> {
        // SAFETY: the caller guarantees that the library is NCCL.
        let api = unsafe { library.table() };
        // SAFETY: the functions are those of the library, which stays loaded.
        unsafe { Self::from_api(api) }
    }

    /// Returns the version of the library.
    #[doc(alias = "ncclGetVersion")]
    #[must_use]
    pub fn version(&self) -> NcclVersion {
        self.version
    }

    /// Returns the functions, each `None` if this version lacks it.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Returns `true` if both are the same library.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.api, &other.api)
    }
}

impl NcclVersion {
    /// Converts the number that `ncclGetVersion` returns: 23203 for 2.32.3.
    const fn from_code(code: u32) -> Self {
        Self { major: code / 10_000, minor: code / 100 % 100, patch: code % 100 }
    }

    /// Returns the number that `ncclGetVersion` returns.
    pub(crate) const fn code(self) -> u32 {
        self.major * 10_000 + self.minor * 100 + self.patch
    }

    /// Converts a version in the list of functions: 2280 for 2.28.
    const fn from_listed(version: CudaVersion) -> Self {
        Self { major: version.major(), minor: version.minor(), patch: 0 }
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NCCL {}", self.version)
    }
}

impl fmt::Display for NcclVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Api {
    /// Converts the code that `function` returned into a result. Work in progress is no error.
    #[inline]
    pub(crate) fn check(&self, function: &'static str, code: ncclResult_t) -> Result<()> {
        if matches!(code, ncclResult_t::ncclSuccess | ncclResult_t::ncclInProgress) {
            Ok(())
        } else {
            Err(self.failed(function, code))
        }
    }

    /// Returns the error for a code, with NCCL's message.
    #[cold]
    pub(crate) fn failed(&self, function: &'static str, code: ncclResult_t) -> Error {
        // SAFETY: the function ignores the communicator, and returns null or text that outlives this call.
        let text = self.ncclGetLastError.map_or(ptr::null(), |get| unsafe { get(ptr::null_mut()) });
        let message = if text.is_null() {
            String::new()
        } else {
            // SAFETY: the text ends with NUL.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
        };
        Error::Call(Box::new(CallError { function, code, message: message.into() }))
    }

    #[cold]
    pub(crate) fn missing(&self, function: &'static str) -> Error {
        let found = Self::function(function);
        let since = found.map_or(CudaVersion::from_raw(0), ExportedFunction::since);
        let last = found.and_then(ExportedFunction::last).map(NcclVersion::from_listed);
        Error::Missing(MissingFunction { function, since: NcclVersion::from_listed(since), last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_function_is_dated_by_nccl() {
        let message = Api::EMPTY.missing("ncclAlltoAll").to_string();
        assert_eq!(message, "ncclAlltoAll: missing function (introduced in NCCL 2.28); use a newer NCCL");
    }

    #[test]
    fn version_is_that_of_its_code() {
        let version = NcclVersion::from_code(22809);
        assert_eq!((version.to_string().as_str(), version.code()), ("2.28.9", 22809));
    }
}
