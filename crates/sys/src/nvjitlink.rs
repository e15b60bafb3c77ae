//! nvJitLink: its functions under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.
#![expect(
    unsafe_code,
    reason = "the declarations of nvJitLink are trusted, and its functions are called through their addresses"
)]

use std::ffi::CString;
use std::format;

use crate::generated::nvjitlink::functions::for_each_nvjitlink_function;
pub use crate::generated::nvjitlink::types::*;
use crate::load::{
    LibraryDescription, LibraryError, LibraryVersion, LoadedLibrary, Origin, Package,
};
use crate::{ErrorClass, LibraryStatus, call, declare_api, declare_library};

for_each_nvjitlink_function!(declare_api);

static LIBRARY: LibraryDescription = LibraryDescription {
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

/// The symbol suffixes of nvJitLink 12.0 to 12.2, newest first. These releases do not export the
/// plain names.
const SYMBOL_VERSIONS: [&str; 3] = ["_12_2", "_12_1", "_12_0"];

declare_library! {
    /// nvJitLink, loaded. Clones are cheap and share the table of functions. The library stays
    /// loaded until the process ends.
    ///
    /// The version is that of CUDA. The environment variable `CURIUM_NVJITLINK_PATH` overrides the
    /// search. The Python packages are `nvidia-nvjitlink` and `nvidia-nvjitlink-cu12`.
    pub struct NvJitLink {
        // SAFETY: these are the names under which nvJitLink is installed, and the table declares
        // its functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: version,
        version_of_symbols: version_of_symbols,
        status: nvJitLinkResult,
        success: [NVJITLINK_SUCCESS],
    }
}

fn version(api: &Api) -> Result<LibraryVersion, LibraryError<nvJitLinkResult>> {
    let mut major = 0;
    let mut minor = 0;
    // SAFETY: `major` and `minor` are valid for writes.
    unsafe { call!(api, nvJitLinkVersion(&raw mut major, &raw mut minor)) }?;
    Ok(LibraryVersion {
        major,
        minor,
        patch: 0,
    })
}

/// Returns the version of the newest symbols of a release before CUDA 12.3, which reports none.
fn version_of_symbols(library: &LoadedLibrary) -> Option<LibraryVersion> {
    if !library.address(c"nvJitLinkVersion").is_null() {
        return None;
    }
    let newest = SYMBOL_VERSIONS.iter().find(|suffix| {
        let symbol = CString::new(format!("__nvJitLinkComplete{suffix}")).unwrap_or_default();
        !library.address(&symbol).is_null()
    });
    let minor = newest.and_then(|suffix| suffix.rsplit('_').next()?.parse().ok());
    Some(LibraryVersion {
        major: 12,
        minor: minor.unwrap_or_default(),
        patch: 0,
    })
}

impl LibraryStatus for nvJitLinkResult {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    /// nvJitLink has no code for it.
    fn is_out_of_memory(&self) -> bool {
        false
    }
}
