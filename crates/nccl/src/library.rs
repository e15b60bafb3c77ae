//! NCCL, loaded, with its messages and the numbers of its versions.

use std::ffi::CStr;
use std::fmt;
use std::path::Path;
use std::ptr;

use curium_sys::load::LibraryVersion;
use curium_sys::nccl;

use crate::error::{CallError, Error, Result};
use crate::sys::{Api, ncclResult_t};

/// NCCL, loaded. Clones are cheap and share the table of functions. The library stays loaded until
/// the process ends.
///
/// The environment variable `CURIUM_NCCL_PATH` overrides the search. The Python packages are
/// `nvidia-nccl-cu13`, `nvidia-nccl-cu12` and `nvidia-nccl-cu11`.
#[derive(Clone)]
pub struct Nccl(nccl::Nccl);

impl Nccl {
    /// Loads the library of this machine, as [`curium_sys::nccl::Nccl::load`]. Later calls return
    /// the same library.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths tried and the packages to install. The next call tries
    /// again.
    pub fn load() -> Result<Self> {
        Ok(Self(nccl::Nccl::load()?))
    }

    /// Loads the library at `path`, and no other.
    ///
    /// # Safety
    ///
    /// As for [`curium_sys::nccl::Nccl::load_from`].
    ///
    /// # Errors
    ///
    /// [`Error::Load`] has the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        Ok(Self(unsafe { nccl::Nccl::load_from(path) }?))
    }

    /// Uses the functions of a table, such as those of a simulated library.
    ///
    /// # Safety
    ///
    /// As for [`curium_sys::nccl::Nccl::from_api`].
    ///
    /// # Errors
    ///
    /// [`Error::Call`] if the library does not report its version.
    pub unsafe fn from_api(api: Api) -> Result<Self> {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        Ok(Self(unsafe { nccl::Nccl::from_api(api) }?))
    }

    /// Returns the version of the library.
    #[must_use]
    pub fn version(&self) -> LibraryVersion {
        self.0.version()
    }

    /// Returns the functions, each `None` if this version lacks it.
    #[must_use]
    #[inline]
    pub fn api(&self) -> &Api {
        self.0.api()
    }

    /// Returns `true` if both are the same library.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }
}

/// A library that was loaded, or is simulated.
impl From<nccl::Nccl> for Nccl {
    fn from(library: nccl::Nccl) -> Self {
        Self(library)
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

/// Returns the number that `ncclGetVersion` returns for a version.
pub(crate) const fn encode(version: LibraryVersion) -> u32 {
    version.major * 10_000 + version.minor * 100 + version.patch
}

/// Converts the code that `function` returned into a result.
#[inline]
pub(crate) fn check(api: &Api, function: &'static str, code: ncclResult_t) -> Result<()> {
    if code == ncclResult_t::ncclSuccess {
        Ok(())
    } else {
        check_rare(api, function, code)
    }
}

/// Converts a code other than success: work in progress is no error.
#[cold]
fn check_rare(api: &Api, function: &'static str, code: ncclResult_t) -> Result<()> {
    api.check(function, code)
        .map_err(|_| failed(api, function, code))
}

/// Returns the error of a call of `function`, which the library lacks.
#[cold]
pub(crate) fn missing(api: &Api, function: &'static str) -> Error {
    api.missing(function).into()
}

/// Returns the error for a code, with NCCL's message.
#[cold]
pub(crate) fn failed(api: &Api, function: &'static str, code: ncclResult_t) -> Error {
    // SAFETY: the function ignores the communicator, and returns null or text that outlives this
    // call.
    let text = api
        .ncclGetLastError
        .map_or(ptr::null(), |get| unsafe { get(ptr::null_mut()) });
    let message = if text.is_null() {
        String::new()
    } else {
        // SAFETY: the text ends with NUL.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .trim()
            .to_owned()
    };
    Error::Call(Box::new(CallError {
        function,
        code,
        message: message.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_encoded() {
        let version = LibraryVersion {
            major: 2,
            minor: 28,
            patch: 9,
        };
        assert_eq!(encode(version), 22809);
    }
}
