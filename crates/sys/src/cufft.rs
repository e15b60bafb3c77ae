//! cuFFT: its functions under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.
#![expect(
    unsafe_code,
    reason = "the declarations of cuFFT are trusted, and its functions are called through their addresses"
)]

use crate::generated::cufft::functions::for_each_cufft_function;
pub use crate::generated::cufft::types::*;
use crate::load::LibraryDescription;
use crate::{ErrorClass, LibraryStatus, declare_api, declare_library, toolkit_packages};

for_each_cufft_function!(declare_api);

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "cuFFT",
    variable: "CURIUM_CUFFT_PATH",
    files: if cfg!(windows) {
        &["cufft64_12.dll", "cufft64_11.dll", "cufft64_10.dll"]
    } else {
        &["libcufft.so.12", "libcufft.so.11", "libcufft.so.10"]
    },
    origin: toolkit_packages!("cufft"),
    companions: &[],
    required: &[c"cufftCreate", c"cufftGetProperty"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

declare_library! {
    /// cuFFT, loaded. Clones are cheap and share the table of functions. The library stays loaded
    /// until the process ends.
    ///
    /// The environment variable `CURIUM_CUFFT_PATH` overrides the search. The Python packages are
    /// `nvidia-cufft`, `nvidia-cufft-cu12` and `nvidia-cufft-cu11`.
    pub struct CuFft {
        // SAFETY: these are the names under which cuFFT is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: cufftGetProperty(libraryPropertyType_t),
        status: cufftResult,
        success: [CUFFT_SUCCESS],
    }
}

impl LibraryStatus for cufftResult {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUFFT_ALLOC_FAILED => ErrorClass::Resource,
            Self::CUFFT_INVALID_PLAN
            | Self::CUFFT_INVALID_TYPE
            | Self::CUFFT_INVALID_VALUE
            | Self::CUFFT_INVALID_SIZE
            | Self::CUFFT_UNALIGNED_DATA
            | Self::CUFFT_INVALID_DEVICE
            | Self::CUFFT_NO_WORKSPACE => ErrorClass::Usage,
            Self::CUFFT_NOT_IMPLEMENTED
            | Self::CUFFT_NOT_SUPPORTED
            | Self::CUFFT_MISSING_DEPENDENCY => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUFFT_ALLOC_FAILED
    }
}
