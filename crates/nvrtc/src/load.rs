//! The loader: finds a library on this machine and checks that it is the one.

mod candidates;
mod error;
mod python;

use std::error::Error as _;
use std::path::Path;

use libloading::Library;

use self::candidates::Candidates;
pub use self::error::{Attempt, LoadError, Rejection};

/// A library of NVIDIA's that is loaded when the program runs.
pub(crate) struct Product {
    /// What people call it.
    pub(crate) name: &'static str,
    /// The environment variable that names it, or its folder.
    pub(crate) variable: &'static str,
    /// The names of its files, the newest first.
    pub(crate) files: &'static [&'static str],
    /// Where its packages put it, within the packages of a Python environment.
    pub(crate) packages: &'static [&'static str],
    /// The beginning of the name of a file that it opens by name, and that lies beside it.
    pub(crate) companion: Option<&'static str>,
    /// A function that it has in every version, under one of these names.
    pub(crate) symbols: &'static [&'static str],
}

/// The first such library that can be loaded. It stays loaded.
pub(crate) fn installed(product: &'static Product) -> Result<Library, Box<LoadError>> {
    let Candidates { paths, folders } = Candidates::of(product);
    let mut attempts = Vec::new();
    for path in paths {
        // SAFETY: the candidates are the names under which the product is installed, or the user's own choice of it.
        match unsafe { open(product, &path) } {
            Ok(library) => return Ok(library),
            Err(rejection) => attempts.push(Attempt { path, rejection }),
        }
    }
    Err(Box::new(LoadError::new(product, attempts, folders)))
}

/// The library at `path`. It stays loaded.
///
/// # Safety
///
/// The library at `path`, if it exports the names of the product's functions, is the product.
pub(crate) unsafe fn from(product: &'static Product, path: &Path) -> Result<Library, Box<LoadError>> {
    // SAFETY: the caller vouches for the library.
    unsafe { open(product, path) }.map_err(|rejection| {
        let attempt = Attempt { path: path.to_path_buf(), rejection };
        Box::new(LoadError::new(product, vec![attempt], Vec::new()))
    })
}

/// Opens one library, and what lies beside it.
///
/// # Safety
///
/// As for [`from`].
unsafe fn open(product: &Product, path: &Path) -> Result<Library, Rejection> {
    if let (Some(companion), Some(folder)) = (product.companion, path.parent()) {
        // SAFETY: the caller vouches for the library, of which this is a part.
        unsafe { open_companion(folder, companion) };
    }
    // SAFETY: the caller vouches for the initialisers of the library.
    let library = unsafe { Library::new(path) }.map_err(|error| Rejection::Unloadable { reason: reason(&error) })?;
    let has = |symbol: &&&str| {
        // SAFETY: the symbol is only looked for.
        unsafe { library.get::<*const ()>(symbol.as_bytes()) }.is_ok()
    };
    if product.symbols.iter().find(has).is_none() {
        return Err(Rejection::OtherLibrary { product: product.name, missing: product.symbols[0] });
    }
    Ok(library)
}

/// Opens the file in `folder` whose name begins with `name`, if there is one, and keeps it open: not every release of the library says
/// that it is to be looked for beside it.
///
/// # Safety
///
/// Its initialisers may run in this process.
#[cfg(unix)]
unsafe fn open_companion(folder: &Path, name: &str) {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let names = |entry: &std::fs::DirEntry| entry.file_name().to_str().is_some_and(|file| file.starts_with(name));
    let Some(entry) = entries.filter_map(Result::ok).find(names) else { return };
    // SAFETY: the caller vouches for the file.
    if let Ok(library) = unsafe { Library::open(Some(entry.path()), RTLD_LAZY | RTLD_LOCAL) } {
        std::mem::forget(library);
    }
}

/// Nothing: the loader of Windows looks beside the library that asks.
///
/// # Safety
///
/// Nothing is opened.
#[cfg(not(unix))]
unsafe fn open_companion(_folder: &Path, _name: &str) {}

/// The loader's own words, with those of the system where it has some.
fn reason(error: &libloading::Error) -> Box<str> {
    error.source().map_or_else(|| error.to_string(), ToString::to_string).into()
}
