//! cuRAND, loaded.

use curium_driver::sys::load::LibraryDescription;
use curium_driver::sys::{declare_library, toolkit_packages};

use crate::error::Error;
use crate::sys::{Api, curandStatus_t, libraryPropertyType_t};

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "cuRAND",
    variable: "CURIUM_CURAND_PATH",
    files: if cfg!(windows) {
        &["curand64_10.dll"]
    } else {
        &["libcurand.so.10"]
    },
    origin: toolkit_packages!("curand"),
    companions: &[],
    required: &[c"curandCreateGenerator", c"curandGetProperty"],
    symbol_versions: &[],
    check: |_| Ok(()),
};

declare_library! {
    /// cuRAND, loaded. Clones are cheap and share the table of functions. The library stays loaded until the process ends.
    ///
    /// The environment variable `CURIUM_CURAND_PATH` overrides the search. The Python packages are `nvidia-curand`,
    /// `nvidia-curand-cu12` and `nvidia-curand-cu11`.
    pub struct CuRand {
        // SAFETY: these are the names under which cuRAND is installed, and the table declares its functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: curandGetProperty(libraryPropertyType_t),
        success: curandStatus_t::CURAND_STATUS_SUCCESS,
        error: Error,
    }
}
