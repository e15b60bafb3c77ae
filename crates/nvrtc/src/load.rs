//! The loader: finds NVRTC on this machine and checks that it is it.

mod candidates;
mod error;

use std::error::Error as _;
use std::path::Path;

use libloading::Library;

pub use self::error::{Attempt, LoadError, Rejection};
use crate::api::Api;

/// The first NVRTC that can be loaded.
pub(crate) fn installed() -> Result<Api, Box<LoadError>> {
    let mut attempts = Vec::new();
    for path in candidates::paths() {
        // SAFETY: the candidates are the names under which NVRTC is installed, or the user's own choice of it.
        match unsafe { open(&path) } {
            Ok(api) => return Ok(api),
            Err(rejection) => attempts.push(Attempt { path, rejection }),
        }
    }
    Err(Box::new(LoadError { attempts: attempts.into() }))
}

/// The NVRTC at `path`.
///
/// # Safety
///
/// The library at `path`, if it exports the names of NVRTC's functions, is NVRTC.
pub(crate) unsafe fn from(path: &Path) -> Result<Api, Box<LoadError>> {
    // SAFETY: the caller vouches for the library.
    unsafe { open(path) }.map_err(|rejection| {
        let attempt = Attempt { path: path.to_path_buf(), rejection };
        Box::new(LoadError { attempts: Box::new([attempt]) })
    })
}

/// Opens one library and keeps it open for ever if it serves.
///
/// # Safety
///
/// As for [`from`].
unsafe fn open(path: &Path) -> Result<Api, Rejection> {
    // SAFETY: the caller vouches for the initialisers of the library.
    let library = unsafe { Library::new(path) }.map_err(|error| Rejection::Unloadable { reason: reason(&error) })?;
    // SAFETY: the caller vouches for the symbols, and the library is never closed once the table leaves this function.
    let api = unsafe { Api::from_library(&library) }.map_err(|missing| Rejection::NotNvrtc { missing })?;
    std::mem::forget(library);
    Ok(api)
}

/// The loader's own words, with those of the system where it has some.
fn reason(error: &libloading::Error) -> Box<str> {
    error.source().map_or_else(|| error.to_string(), ToString::to_string).into()
}
