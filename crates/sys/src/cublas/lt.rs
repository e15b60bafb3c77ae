//! cuBLASLt: its functions under their C names, with types of [`cublas`](super).

use super::*;
use crate::generated::cublas::lt_functions::for_each_cublaslt_function;

for_each_cublaslt_function!(declare_api);

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "cuBLASLt",
    variable: "CURIUM_CUBLASLT_PATH",
    files: if cfg!(windows) {
        &[
            "cublasLt64_13.dll",
            "cublasLt64_12.dll",
            "cublasLt64_11.dll",
        ]
    } else {
        &[
            "libcublasLt.so.13",
            "libcublasLt.so.12",
            "libcublasLt.so.11",
        ]
    },
    origin: toolkit_packages!("cublas"),
    companions: &[],
    required: &[c"cublasLtCreate", c"cublasLtGetProperty"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

declare_library! {
    /// cuBLASLt, loaded. Clones are cheap and share the table of functions. The library stays
    /// loaded until the process ends.
    ///
    /// The environment variable `CURIUM_CUBLASLT_PATH` overrides the search. The Python packages
    /// are `nvidia-cublas`, `nvidia-cublas-cu12` and `nvidia-cublas-cu11`.
    pub struct CuBlasLt {
        // SAFETY: these are the names under which cuBLASLt is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: cublasLtGetProperty(libraryPropertyType_t),
        status: cublasStatus_t,
        success: [CUBLAS_STATUS_SUCCESS],
    }
}
