//! cuBLAS, and cuBLASLt in the module [`lt`]: their functions under their C names, and the types of
//! their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.
#![expect(
    unsafe_code,
    reason = "the declarations of cuBLAS are trusted, and its functions are called through their addresses"
)]

use crate::generated::cublas::functions::for_each_cublas_function;
pub use crate::generated::cublas::types::*;
use crate::load::LibraryDescription;
use crate::{ErrorClass, LibraryStatus, declare_api, declare_library, toolkit_packages};

pub mod lt;

for_each_cublas_function!(declare_api);

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "cuBLAS",
    variable: "CURIUM_CUBLAS_PATH",
    files: if cfg!(windows) {
        &["cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"]
    } else {
        &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11"]
    },
    origin: toolkit_packages!("cublas"),
    companions: &["libcublasLt.so"],
    required: &[c"cublasCreate_v2", c"cublasGetProperty"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

declare_library! {
    /// cuBLAS, loaded. Clones are cheap and share the table of functions. The library stays loaded
    /// until the process ends.
    ///
    /// The environment variable `CURIUM_CUBLAS_PATH` overrides the search. The Python packages are
    /// `nvidia-cublas`, `nvidia-cublas-cu12` and `nvidia-cublas-cu11`.
    pub struct CuBlas {
        // SAFETY: these are the names under which cuBLAS is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: cublasGetProperty(libraryPropertyType_t),
        status: cublasStatus_t,
        success: [CUBLAS_STATUS_SUCCESS],
    }
}

impl LibraryStatus for cublasStatus_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUBLAS_STATUS_ALLOC_FAILED => ErrorClass::Resource,
            Self::CUBLAS_STATUS_NOT_INITIALIZED | Self::CUBLAS_STATUS_INVALID_VALUE => {
                ErrorClass::Usage
            }
            Self::CUBLAS_STATUS_ARCH_MISMATCH
            | Self::CUBLAS_STATUS_NOT_SUPPORTED
            | Self::CUBLAS_STATUS_LICENSE_ERROR => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUBLAS_STATUS_ALLOC_FAILED
    }
}
