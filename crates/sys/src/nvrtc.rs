//! NVRTC: its functions under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.
#![expect(
    unsafe_code,
    reason = "the declarations of NVRTC are trusted, and its functions are called through their addresses"
)]

use crate::generated::nvrtc::functions::for_each_nvrtc_function;
pub use crate::generated::nvrtc::types::*;
use crate::load::{
    LibraryDescription, LibraryError, LibraryVersion, LoadedLibrary, Origin, Package, Rejection,
};
use crate::{ErrorClass, LibraryStatus, call, declare_api, declare_library};

for_each_nvrtc_function!(declare_api);

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "NVRTC",
    variable: "CURIUM_NVRTC_PATH",
    files: if cfg!(windows) {
        &[
            "nvrtc64_130_0.dll",
            "nvrtc64_120_0.dll",
            "nvrtc64_112_0.dll",
        ]
    } else {
        &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
    },
    origin: Origin::Toolkit(if cfg!(windows) {
        &[
            Package {
                name: "nvidia-cuda-nvrtc",
                folder: r"nvidia\cu13\bin\x86_64",
            },
            Package {
                name: "nvidia-cuda-nvrtc-cu12",
                folder: r"nvidia\cuda_nvrtc\bin",
            },
        ]
    } else {
        &[
            Package {
                name: "nvidia-cuda-nvrtc",
                folder: "nvidia/cu13/lib",
            },
            Package {
                name: "nvidia-cuda-nvrtc-cu12",
                folder: "nvidia/cuda_nvrtc/lib",
            },
        ]
    }),
    companions: if cfg!(windows) {
        &["nvrtc-builtins64_"]
    } else {
        &["libnvrtc-builtins.so"]
    },
    required: &[c"nvrtcCompileProgram", c"nvrtcVersion"],
    symbol_versions: &[],
    check,
};

declare_library! {
    /// NVRTC, loaded. Clones are cheap and share the table of functions. The library stays loaded
    /// until the process ends.
    ///
    /// The version is that of CUDA. The environment variable `CURIUM_NVRTC_PATH` overrides the
    /// search. The Python packages are `nvidia-cuda-nvrtc` and `nvidia-cuda-nvrtc-cu12`.
    pub struct Nvrtc {
        // SAFETY: these are the names under which NVRTC is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: version,
        status: nvrtcResult,
        success: [NVRTC_SUCCESS],
    }
}

fn version(api: &Api) -> Result<LibraryVersion, LibraryError<nvrtcResult>> {
    let mut major = 0;
    let mut minor = 0;
    // SAFETY: `major` and `minor` are valid for writes.
    unsafe { call!(api, nvrtcVersion(&raw mut major, &raw mut minor)) }?;
    Ok(LibraryVersion {
        major: major.try_into().unwrap_or_default(),
        minor: minor.try_into().unwrap_or_default(),
        patch: 0,
    })
}

/// Rejects a library that fails to report its version, such as a stub.
fn check(library: &LoadedLibrary) -> Result<(), Rejection> {
    // SAFETY: the library exports the required functions of NVRTC, and the list declares NVRTC's
    // functions.
    match version(&unsafe { library.table() }) {
        Err(LibraryError::Call(error)) => Err(Rejection::NoVersion {
            function: error.function,
            code: error.number,
        }),
        _ => Ok(()),
    }
}

impl LibraryStatus for nvrtcResult {
    fn class(&self) -> ErrorClass {
        if self.is_out_of_memory() {
            ErrorClass::Resource
        } else {
            ErrorClass::Usage
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::NVRTC_ERROR_OUT_OF_MEMORY
    }
}
