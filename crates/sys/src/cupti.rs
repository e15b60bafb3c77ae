//! CUPTI's activity API: its functions under their C names, and the types of their parameters and
//! records.
//!
//! All calls are `unsafe`, with the preconditions of C.
//!
//! CUPTI appends fields to its records, under a new name for the type of each version. The types
//! here are those of CUDA 11.8, whose fields every later version has at the same offsets.
#![expect(
    unsafe_code,
    reason = "the declarations of CUPTI are trusted, and its functions are called through their addresses"
)]

use crate::generated::cupti::functions::for_each_cupti_function;
pub use crate::generated::cupti::types::*;
use crate::load::{
    LibraryDescription, LibraryError, LibraryVersion, LoadedLibrary, Origin, Package, Rejection,
};
use crate::{CudaVersion, ErrorClass, LibraryStatus, call, declare_api, declare_library};

for_each_cupti_function!(declare_api);

static LIBRARY: LibraryDescription = LibraryDescription {
    name: "CUPTI",
    variable: "CURIUM_CUPTI_PATH",
    files: &["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"],
    origin: Origin::Toolkit(&[
        Package {
            name: "nvidia-cuda-cupti",
            folder: "nvidia/cu13/lib",
        },
        Package {
            name: "nvidia-cuda-cupti-cu12",
            folder: "nvidia/cuda_cupti/lib",
        },
        Package {
            name: "nvidia-cuda-cupti-cu11",
            folder: "nvidia/cuda_cupti/lib",
        },
    ]),
    companions: &[],
    required: &[c"cuptiGetVersion", c"cuptiActivityRegisterCallbacks"],
    symbol_versions: &[],
    check,
};

/// The number that CUPTI of CUDA 11.8, 12.0 and 12.1 reports.
const OLDEST: u32 = 18;

declare_library! {
    /// CUPTI, loaded. Clones are cheap and share the table of functions. The library stays loaded
    /// until the process ends.
    ///
    /// The version is that of CUDA. The environment variable `CURIUM_CUPTI_PATH` overrides the
    /// search. The Python packages are `nvidia-cuda-cupti`, `nvidia-cuda-cupti-cu12` and
    /// `nvidia-cuda-cupti-cu11`.
    pub struct Cupti {
        // SAFETY: these are the names under which CUPTI is installed, and the table declares its
        // functions.
        description: unsafe { LIBRARY },
        functions: Api,
        version: version,
        status: CUptiResult,
        success: [CUPTI_SUCCESS],
    }
}

fn version(api: &Api) -> Result<LibraryVersion, LibraryError<CUptiResult>> {
    Ok(decode(number(api)?))
}

fn number(api: &Api) -> Result<u32, LibraryError<CUptiResult>> {
    let mut number = 0;
    // SAFETY: `number` is valid for writes.
    unsafe { call!(api, cuptiGetVersion(&raw mut number)) }?;
    Ok(number)
}

/// Converts the number that `cuptiGetVersion` returns to the CUDA version: 130501 for 13.5, and 28
/// for 12.9. Several versions share the number 18, of which this is the oldest.
const fn decode(number: u32) -> LibraryVersion {
    let (major, minor) = match number {
        ..OLDEST => (11, 7),
        OLDEST => (11, 8),
        19..=24 => (12, number - 18),
        25 => (12, 7),
        26..=27 => (12, 8),
        28..=99_999 => (12, 9),
        _ => (number / 10_000, number / 100 % 100),
    };
    LibraryVersion {
        major,
        minor,
        patch: 0,
    }
}

/// Rejects versions whose records lack fields.
fn check(library: &LoadedLibrary) -> Result<(), Rejection> {
    // SAFETY: the library exports the required functions of CUPTI, and the list declares CUPTI's
    // functions.
    match number(&unsafe { library.table() }) {
        Ok(number) if number < OLDEST => Err(Rejection::TooOld {
            found: CudaVersion::new(11, 7),
            needed: CudaVersion::new(11, 8),
        }),
        Err(LibraryError::Call(error)) => Err(Rejection::NoVersion {
            function: error.function,
            code: error.number,
        }),
        _ => Ok(()),
    }
}

impl LibraryStatus for CUptiResult {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::CUPTI_ERROR_OUT_OF_MEMORY | Self::CUPTI_ERROR_MAX_LIMIT_REACHED => {
                ErrorClass::Resource
            }
            Self::CUPTI_ERROR_INVALID_PARAMETER
            | Self::CUPTI_ERROR_INVALID_KIND
            | Self::CUPTI_ERROR_INVALID_OPERATION => ErrorClass::Usage,
            Self::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
            | Self::CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
            | Self::CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED
            | Self::CUPTI_ERROR_NOT_COMPATIBLE
            | Self::CUPTI_ERROR_NOT_SUPPORTED => ErrorClass::System,
            _ => ErrorClass::Unknown,
        }
    }

    fn is_out_of_memory(&self) -> bool {
        *self == Self::CUPTI_ERROR_OUT_OF_MEMORY
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;

    #[test]
    fn version_matches_cuda() {
        for (number, version) in [
            (17, "11.7.0"),
            (18, "11.8.0"),
            (20, "12.2.0"),
            (24, "12.6.0"),
            (26, "12.8.0"),
            (28, "12.9.0"),
            (130_001, "13.0.0"),
            (130_500, "13.5.0"),
        ] {
            assert_eq!(decode(number).to_string(), version);
        }
    }
}
