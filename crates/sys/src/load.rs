//! The loader: finds the driver library, checks that it is one, and fills the table.
#![expect(unsafe_code, reason = "opening a library runs its initialisers, and its symbols are C functions")]

mod candidates;
mod error;
mod privileges;
mod symbols;

use std::boxed::Box;
use std::format;
use std::path::{Path, PathBuf};
use std::string::ToString as _;
use std::vec::Vec;

use libloading::Library;

pub use self::error::{Attempt, LoadError, Rejection};
#[doc(hidden)]
pub use self::privileges::has_raised_privileges;
use self::symbols::Symbols;
use crate::{Api, CUresult, CudaVersion};

impl Api {
    /// Finds the driver on this machine and loads its functions. Neither a CUDA toolkit nor an SDK is needed.
    ///
    /// `libcuda.so.1` is tried before `libcuda.so` (often the toolkit's stub, which is rejected), then the places where WSL,
    /// Jetson, NixOS and containers keep it; on Windows `nvcuda.dll` of the system folder. If the environment variable
    /// `CURIUM_DRIVER_PATH` names a file, or a folder that holds one, nothing else is tried; set-uid programs ignore it.
    ///
    /// The library stays loaded until the process ends. The driver is not initialised: `cuInit` is left to the caller.
    ///
    /// # Errors
    ///
    /// [`LoadError`] lists each path tried with the reason why it did not serve.
    pub fn load() -> Result<Self, LoadError> {
        let mut attempts = Vec::new();
        for path in candidates::paths() {
            // SAFETY: the candidates are the names under which the CUDA driver is installed, or the user's own choice of it.
            match unsafe { open(&path) } {
                Ok(api) => return Ok(api),
                Err(rejection) => attempts.push(Attempt { path, rejection }),
            }
        }
        Err(LoadError { attempts: attempts.into_boxed_slice() })
    }

    /// Loads the functions of the driver library at `path`, and of no other.
    ///
    /// The library stays loaded until the process ends. The driver is not initialised: `cuInit` is left to the caller.
    ///
    /// # Safety
    ///
    /// The library at `path`, if it exports the names of the driver's functions, is a CUDA driver: its initialisers may run in
    /// this process, and its functions have the signatures and the meaning that CUDA gives to their names.
    ///
    /// # Errors
    ///
    /// [`LoadError`] says why the library did not serve.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        // SAFETY: the caller vouches for the library.
        unsafe { open(path) }.map_err(|rejection| {
            let attempts = Box::new([Attempt { path: PathBuf::from(path), rejection }]);
            LoadError { attempts }
        })
    }
}

/// Opens one library and keeps it open for ever if it is a driver that serves.
///
/// # Safety
///
/// As for [`Api::load_from`].
unsafe fn open(path: &Path) -> Result<Api, Rejection> {
    // SAFETY: the caller vouches for the initialisers of the library.
    let library = unsafe { Library::new(path) }.map_err(|error| Rejection::Unloadable { reason: reason(&error) })?;
    let symbols = Symbols::of(library);
    // SAFETY: the caller vouches that the names of the driver's functions are those functions in this library, and it stays
    // loaded for as long as the table: it is never closed once the table leaves this function.
    let api = unsafe { Api::from_resolver(|name| symbols.address(name)) };
    check(&api)?;
    core::mem::forget(symbols);
    Ok(api)
}

/// Rejects what is no driver, the toolkit's stub, and a driver that is too old.
fn check(api: &Api) -> Result<(), Rejection> {
    let (Some(_), Some(version)) = (api.cuInit, api.cuDriverGetVersion) else {
        return Err(Rejection::NotADriver);
    };
    let mut raw = 0;
    // SAFETY: `raw` is a valid place for the version, and this function may be called before `cuInit`.
    match unsafe { version(&raw mut raw) } {
        CUresult::CUDA_SUCCESS => {}
        CUresult::CUDA_ERROR_STUB_LIBRARY => return Err(Rejection::Stub),
        code => return Err(Rejection::NoVersion { code: code.0 }),
    }
    let found = CudaVersion::from_raw(raw.try_into().unwrap_or_default());
    if found < CudaVersion::OLDEST_SUPPORTED { Err(Rejection::TooOld { found }) } else { Ok(()) }
}

/// The loader's own words, with those of the system where it has some.
fn reason(error: &libloading::Error) -> Box<str> {
    match core::error::Error::source(error) {
        Some(source) => source.to_string().into_boxed_str(),
        None => format!("{error}").into_boxed_str(),
    }
}
