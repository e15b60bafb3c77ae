//! NCCL: its functions under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C. Versions are those of NCCL.
#![expect(
    unsafe_code,
    reason = "the declarations of NCCL are trusted, and its functions are called through their addresses"
)]

use crate::generated::nccl::functions::for_each_nccl_function;
pub use crate::generated::nccl::types::*;
use crate::load::{LibraryDescription, LibraryError, LibraryVersion, Origin, Package};
use crate::{ErrorClass, LibraryStatus, call, declare_api, declare_library};

for_each_nccl_function!(declare_api);

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
    /// NCCL, loaded. Clones are cheap and share the table of functions. The library stays loaded
    /// until the process ends.
    ///
    /// The environment variable `CURIUM_NCCL_PATH` overrides the search. The Python packages are
    /// `nvidia-nccl-cu13`, `nvidia-nccl-cu12` and `nvidia-nccl-cu11`.
    pub struct Nccl {
        // SAFETY: this is the name under which NCCL is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: version,
        status: ncclResult_t,
        // Work in progress is no error.
        success: [ncclSuccess, ncclInProgress],
        product: "NCCL",
    }
}

fn version(api: &Api) -> Result<LibraryVersion, LibraryError<ncclResult_t>> {
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

impl LibraryStatus for ncclResult_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::ncclInvalidArgument | Self::ncclInvalidUsage => ErrorClass::Usage,
            Self::ncclSystemError | Self::ncclRemoteError => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    /// NCCL has no code for it.
    fn is_out_of_memory(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;
    use crate::FunctionTable as _;

    #[test]
    fn missing_function_is_dated_by_nccl() {
        let message = Api::EMPTY.missing("ncclAlltoAll").to_string();
        assert_eq!(
            message,
            "ncclAlltoAll: missing function (introduced in NCCL 2.28); use a newer NCCL"
        );
    }

    #[test]
    fn version_is_decoded() {
        assert_eq!(decode(22809).to_string(), "2.28.9");
    }

    #[test]
    fn work_in_progress_is_no_error() {
        let result = Api::EMPTY.check("ncclCommFinalize", ncclResult_t::ncclInProgress);
        assert!(result.is_ok(), "{result:?}");
    }
}
