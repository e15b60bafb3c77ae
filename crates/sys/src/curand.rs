//! cuRAND: its functions under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.
#![expect(
    unsafe_code,
    reason = "the declarations of cuRAND are trusted, and its functions are called through their addresses"
)]

use crate::generated::curand::functions::for_each_curand_function;
pub use crate::generated::curand::types::*;
use crate::load::LibraryDescription;
use crate::{ErrorClass, LibraryStatus, declare_api, declare_library, toolkit_packages};

for_each_curand_function!(declare_api);

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
    /// cuRAND, loaded. Clones are cheap and share the table of functions. The library stays loaded
    /// until the process ends.
    ///
    /// The environment variable `CURIUM_CURAND_PATH` overrides the search. The Python packages are
    /// `nvidia-curand`, `nvidia-curand-cu12` and `nvidia-curand-cu11`.
    pub struct CuRand {
        // SAFETY: these are the names under which cuRAND is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: curandGetProperty(libraryPropertyType_t),
        status: curandStatus_t,
        success: [CURAND_STATUS_SUCCESS],
    }
}

impl LibraryStatus for curandStatus_t {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CURAND_STATUS_ALLOCATION_FAILED => ErrorClass::Resource,
            Self::CURAND_STATUS_NOT_INITIALIZED
            | Self::CURAND_STATUS_TYPE_ERROR
            | Self::CURAND_STATUS_OUT_OF_RANGE
            | Self::CURAND_STATUS_LENGTH_NOT_MULTIPLE => ErrorClass::Usage,
            Self::CURAND_STATUS_VERSION_MISMATCH
            | Self::CURAND_STATUS_DOUBLE_PRECISION_REQUIRED
            | Self::CURAND_STATUS_ARCH_MISMATCH => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CURAND_STATUS_ALLOCATION_FAILED
    }
}
