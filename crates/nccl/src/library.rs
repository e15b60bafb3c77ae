//! NCCL, loaded.

use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use curium_driver::sys::load::{LibraryDescription, LibraryVersion, Origin, Package};
use curium_driver::sys::{call, declare_library};

use crate::error::{CallError, Error, Result};
use crate::sys::{Api, ncclResult_t};

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "NCCL",
    variable: "CURIUM_NCCL_PATH",
    files: &["libnccl.so.2"],
    origin: Origin::Toolkit(&[
        Package {
            name: "nvidia-nccl-cu13",
            folder: "nvidia/nccl/lib",
        },
        Package {
            name: "nvidia-nccl-cu12",
            folder: "nvidia/nccl/lib",
        },
        Package {
            name: "nvidia-nccl-cu11",
            folder: "nvidia/nccl/lib",
        },
    ]),
    companions: &[],
    required: &[c"ncclGetVersion", c"ncclCommInitRankConfig"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

declare_library! {
    /// NCCL, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
    ///
    /// The environment variable `CURIUM_NCCL_PATH` overrides the search. The Python packages are `nvidia-nccl-cu13`, `nvidia-nccl-cu12`
    /// and `nvidia-nccl-cu11`.
    pub struct Nccl {
        // SAFETY: this is the name under which NCCL is installed, and the table declares its functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: version,
        success: ncclResult_t::ncclSuccess,
        error: Error,
        versions_of: "NCCL",
        check: check,
    }
}

impl Nccl {
    /// Returns `true` if both are the same library.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.api, &other.api)
    }
}

fn version(api: &Api) -> Result<LibraryVersion> {
    let mut code = 0;
    // SAFETY: `code` is valid for writes.
    unsafe { call!(api, ncclGetVersion(&raw mut code)) }?;
    Ok(decode(code.try_into().unwrap_or_default()))
}

/// Converts the number that `ncclGetVersion` returns: 23203 for 2.32.3.
const fn decode(code: u32) -> LibraryVersion {
    LibraryVersion {
        major: code / 10_000,
        minor: code / 100 % 100,
        patch: code % 100,
    }
}

/// Returns the number that `ncclGetVersion` returns for a version.
pub(crate) const fn encode(version: LibraryVersion) -> u32 {
    version.major * 10_000 + version.minor * 100 + version.patch
}

/// Converts a code other than success: work in progress is no error.
#[cold]
fn check(api: &Api, function: &'static str, code: ncclResult_t) -> Result<()> {
    if code == ncclResult_t::ncclInProgress {
        Ok(())
    } else {
        Err(failed(api, function, code))
    }
}

/// Returns the error for a code, with NCCL's message.
#[cold]
pub(crate) fn failed(api: &Api, function: &'static str, code: ncclResult_t) -> Error {
    // SAFETY: the function ignores the communicator, and returns null or text that outlives this call.
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
    use curium_driver::sys::FunctionTable as _;

    use super::*;

    #[test]
    fn missing_function_is_dated_by_nccl() {
        let message = Api::EMPTY.missing("ncclAlltoAll").to_string();
        assert_eq!(
            message,
            "ncclAlltoAll: missing function (introduced in NCCL 2.28); use a newer NCCL"
        );
    }

    #[test]
    fn version_is_decoded_and_encoded() {
        let version = decode(22809);
        assert_eq!(
            (version.to_string().as_str(), encode(version)),
            ("2.28.9", 22809)
        );
    }
}
