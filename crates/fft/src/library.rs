//! cuFFT, loaded.

use curium_driver::sys::load::LibraryDescription;
use curium_driver::sys::{declare_library, toolkit_packages};

use crate::error::Error;
use crate::sys::{Api, cufftResult, libraryPropertyType_t};

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
    /// cuFFT, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
    ///
    /// The environment variable `CURIUM_CUFFT_PATH` overrides the search. The Python packages are `nvidia-cufft`,
    /// `nvidia-cufft-cu12` and `nvidia-cufft-cu11`.
    pub struct CuFft {
        // SAFETY: these are the names under which cuFFT is installed, and the table declares its functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: cufftGetProperty(libraryPropertyType_t),
        success: cufftResult::CUFFT_SUCCESS,
        error: Error,
    }
}
