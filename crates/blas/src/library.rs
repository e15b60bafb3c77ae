//! cuBLAS, loaded.

use curium_driver::sys::load::LibraryDescription;
use curium_driver::sys::{declare_library, toolkit_packages};

use crate::error::Error;
use crate::sys::{Api, cublasStatus_t, libraryPropertyType_t};

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
    /// cuBLAS, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
    ///
    /// The environment variable `CURIUM_CUBLAS_PATH` overrides the search. The Python packages are `nvidia-cublas`,
    /// `nvidia-cublas-cu12` and `nvidia-cublas-cu11`.
    pub struct CuBlas {
        // SAFETY: these are the names under which cuBLAS is installed, and the table declares its functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: cublasGetProperty(libraryPropertyType_t),
        success: cublasStatus_t::CUBLAS_STATUS_SUCCESS,
        error: Error,
    }
}
