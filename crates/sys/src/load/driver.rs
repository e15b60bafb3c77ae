//! The CUDA driver: its library names, and the check that it is a supported driver.
#![expect(
    unsafe_code,
    reason = "the driver's functions are called through their addresses"
)]

use core::ffi::{c_int, c_void};
use core::mem;
use std::path::Path;

use super::{LibraryDescription, LoadError, LoadedLibrary, Origin, Rejection};
use crate::{Api, CUresult, CudaVersion};

/// The library of the CUDA driver.
pub(super) static DRIVER: LibraryDescription = LibraryDescription {
    name: "CUDA driver",
    variable: "CURIUM_DRIVER_PATH",
    files: if cfg!(windows) {
        &["nvcuda.dll"]
    } else {
        &["libcuda.so.1", "libcuda.so"]
    },
    origin: Origin::Driver,
    companions: &[],
    required: &[c"cuInit", c"cuDriverGetVersion"],
    symbol_versions: &[],
    check,
};

impl Api {
    /// Loads the driver of this machine. Neither a CUDA toolkit nor an SDK is required.
    ///
    /// `libcuda.so.1` is tried first, followed by the folders where WSL, Jetson, NixOS and
    /// containers install it, and by `libcuda.so` (often the toolkit's stub, which is rejected). On
    /// Windows it is `nvcuda.dll` in the system folder. If the environment variable
    /// `CURIUM_DRIVER_PATH` names a file, or a folder that contains one, no other path is tried;
    /// set-uid programs ignore the variable.
    ///
    /// The library stays loaded until the process ends. It is not initialized: the caller calls
    /// `cuInit`.
    ///
    /// # Errors
    ///
    /// [`LoadError`] lists each path tried with the reason for its rejection.
    pub fn load() -> Result<Self, LoadError> {
        // SAFETY: these are the names under which the CUDA driver is installed.
        let library = unsafe { DRIVER.load() }?;
        // SAFETY: the list of functions declares those of the CUDA driver.
        Ok(unsafe { library.table() })
    }

    /// Loads the driver library at `path`.
    ///
    /// The library stays loaded until the process ends. It is not initialized: the caller calls
    /// `cuInit`.
    ///
    /// # Safety
    ///
    /// If the library at `path` exports the names of the driver's functions, it is a CUDA driver:
    /// its initializers may run in this process, and its functions implement the CUDA driver API.
    ///
    /// # Errors
    ///
    /// [`LoadError`] contains the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        let library = unsafe { DRIVER.load_from(path.as_ref()) }?;
        // SAFETY: the caller guarantees that the library is a CUDA driver.
        Ok(unsafe { library.table() })
    }
}

/// Rejects the toolkit's stub and drivers that are too old.
fn check(library: &LoadedLibrary) -> Result<(), Rejection> {
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> CUresult;

    let address = library.address(c"cuDriverGetVersion");
    // SAFETY: the address is not null, since the function is required, and CUDA defines this
    // signature for the name.
    let get_version = unsafe { mem::transmute::<*const c_void, GetVersion>(address) };
    let mut raw = 0;
    // SAFETY: `raw` is valid for writes, and this function may be called before `cuInit`.
    match unsafe { get_version(&raw mut raw) } {
        CUresult::CUDA_SUCCESS => {}
        CUresult::CUDA_ERROR_STUB_LIBRARY => return Err(Rejection::Stub),
        code => {
            return Err(Rejection::NoVersion {
                function: "cuDriverGetVersion",
                code: code.0,
            });
        }
    }
    let version = CudaVersion::from_raw(raw.try_into().unwrap_or_default());
    let needed = CudaVersion::OLDEST_SUPPORTED;
    if version < needed {
        Err(Rejection::TooOld {
            found: version,
            needed,
        })
    } else {
        Ok(())
    }
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::path::PathBuf;

    use super::super::candidates::{Candidates, Machine};
    use super::*;

    #[test]
    fn versioned_name_comes_first_and_stub_last() {
        let paths = Candidates::for_library(&DRIVER, &Machine::this()).paths;
        assert_eq!(paths.first(), Some(&PathBuf::from("libcuda.so.1")));
        assert!(paths.contains(&PathBuf::from("/usr/lib/wsl/lib/libcuda.so.1")));
        assert_eq!(paths.last(), Some(&PathBuf::from("libcuda.so")));
    }
}
