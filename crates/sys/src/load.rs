//! The loader of NVIDIA's libraries: finds one on this machine, checks it, and resolves its
//! functions.
//!
//! A [`LibraryDescription`] contains the names and packages of a library.
//! [`LibraryDescription::load`] tries the candidates in order, and a [`LoadError`] lists each of
//! them with the reason for its rejection. The driver, NVRTC and nvJitLink are loaded in this way.
//!
//! A binding for another library consists of a generated list of functions for
//! [`declare_api!`](crate::declare_api), a description, and the call that fills the table:
//!
//! ```no_run
//! use curium_sys::load::{LibraryDescription, LoadError, Origin, Package};
//!
//! curium_sys::declare_api! {
//!     fn nvrtcVersion(major: *mut i32, minor: *mut i32) -> i32 = 7000;
//! }
//!
//! static NVRTC: LibraryDescription = LibraryDescription {
//!     name: "NVRTC",
//!     variable: "CURIUM_NVRTC_PATH",
//!     files: &["libnvrtc.so.13", "libnvrtc.so.12"],
//!     origin: Origin::Toolkit(&[
//!         Package { name: "nvidia-cuda-nvrtc", folder: "nvidia/cu13/lib" },
//!         Package { name: "nvidia-cuda-nvrtc-cu12", folder: "nvidia/cuda_nvrtc/lib" },
//!     ]),
//!     companions: &[],
//!     required: &[c"nvrtcVersion"],
//!     symbol_versions: &[],
//!     check: |_| Ok(()),
//! };
//!
//! fn load() -> Result<Api, LoadError> {
//!     // SAFETY: these are the names under which NVRTC is installed.
//!     let library = unsafe { NVRTC.load() }?;
//!     // SAFETY: the list declares NVRTC's functions.
//!     Ok(unsafe { library.table() })
//! }
//! # load()?;
//! # Ok::<(), LoadError>(())
//! ```
//!
//! The modules for cuBLAS, cuRAND and the like declare the type of the loaded library with
//! [`declare_library!`](crate::declare_library). Its functions are called with
//! [`call!`](crate::call).
#![expect(
    unsafe_code,
    reason = "opening a library runs its initializers, and its symbols are C functions"
)]

mod call;
mod candidates;
mod driver;
mod error;
mod library;
mod python;
mod symbols;

use core::error::Error as _;
use core::ffi::{CStr, c_void};
use core::mem::ManuallyDrop;
use std::borrow::ToOwned as _;
use std::boxed::Box;
use std::ffi::CString;
use std::path::Path;
use std::string::ToString;
use std::vec::Vec;
use std::{format, vec};

use libloading::Library;

pub use self::call::{CallError, LibraryError, MissingFunction};
pub use self::candidates::include_folders;
use self::candidates::{Candidates, Machine};
pub use self::error::{Attempt, LoadError, Rejection};
pub use self::library::LibraryVersion;
use self::symbols::Symbols;
use crate::FunctionTable;

/// The names and packages of a shared library that is loaded at run time.
#[derive(Debug)]
pub struct LibraryDescription {
    /// The name in error messages, such as `NVRTC`.
    pub name: &'static str,
    /// The environment variable that overrides the search: the path of the library or of its
    /// folder. Ignored in set-uid programs.
    pub variable: &'static str,
    /// The file names (sonames), in order of preference.
    pub files: &'static [&'static str],
    /// The origin of the library, which determines where it is searched for and what to install.
    pub origin: Origin,
    /// Name prefixes of files in the same folder that the library opens by name.
    pub companions: &'static [&'static str],
    /// Functions that every version exports.
    pub required: &'static [&'static CStr],
    /// Suffixes of symbols that older versions export instead of the plain name: `_12_0` means
    /// `__name_12_0`.
    pub symbol_versions: &'static [&'static str],
    /// Rejects stub libraries and unsupported versions.
    pub check: fn(&LoadedLibrary) -> Result<(), Rejection>,
}

/// The origin of a library.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// The NVIDIA driver. It is installed with the operating system, or mapped into a container.
    Driver,
    /// The CUDA toolkit, and these Python packages.
    Toolkit(&'static [Package]),
}

/// A Python package that contains a library.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The name on PyPI.
    pub name: &'static str,
    /// The folder of the library below `site-packages`.
    pub folder: &'static str,
}

/// A shared library that stays loaded until the process ends.
#[derive(Debug)]
pub struct LoadedLibrary {
    symbols: ManuallyDrop<Symbols>,
    symbol_versions: &'static [&'static str],
}

impl LibraryDescription {
    /// Loads the library of this machine.
    ///
    /// If the environment variable [`variable`](Self::variable) names a file, or a folder that
    /// contains one, no other path is tried. Otherwise the system's loader searches for each of the
    /// [`files`](Self::files), except on Windows, followed by the folders in which the
    /// [`origin`](Self::origin) installs the library.
    ///
    /// # Safety
    ///
    /// The description is correct: a library with one of these names is the described one, and its
    /// initializers may run in this process.
    ///
    /// # Errors
    ///
    /// [`LoadError`] lists each path tried with the reason for its rejection.
    pub unsafe fn load(&'static self) -> Result<LoadedLibrary, LoadError> {
        let Candidates { paths, folders } = Candidates::for_library(self, &Machine::this());
        let mut attempts = Vec::new();
        for path in paths {
            // SAFETY: the caller guarantees the names; a path in the environment is the user's own
            // choice.
            match unsafe { self.open(&path) } {
                Ok(library) => return Ok(library),
                Err(rejection) => attempts.push(Attempt { path, rejection }),
            }
        }
        Err(LoadError::new(self, attempts, folders))
    }

    /// Loads the library at `path`.
    ///
    /// # Safety
    ///
    /// If the library at `path` exports the required functions, it is the described library. Its
    /// initializers may run in this process.
    ///
    /// # Errors
    ///
    /// [`LoadError`] contains the reason for the rejection.
    pub unsafe fn load_from(&'static self, path: &Path) -> Result<LoadedLibrary, LoadError> {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        unsafe { self.open(path) }.map_err(|rejection| {
            let attempt = Attempt {
                path: path.to_owned(),
                rejection,
            };
            LoadError::new(self, vec![attempt], Vec::new())
        })
    }

    /// Opens a library, and closes it again unless it is the described one.
    ///
    /// # Safety
    ///
    /// As for [`load_from`](Self::load_from).
    unsafe fn open(&self, path: &Path) -> Result<LoadedLibrary, Rejection> {
        for companion in self.companions {
            // SAFETY: the caller guarantees the library and its companions.
            unsafe { open_companion(path, companion) };
        }
        // SAFETY: the caller guarantees that the initializers may run.
        let library =
            unsafe { open(path, self.origin) }.map_err(|error| Rejection::Unloadable {
                reason: reason(&error),
            })?;
        let symbols = ManuallyDrop::new(Symbols::new(library));
        let library = LoadedLibrary {
            symbols,
            symbol_versions: self.symbol_versions,
        };
        match self.verify(&library) {
            Ok(()) => Ok(library),
            Err(rejection) => {
                drop(ManuallyDrop::into_inner(library.symbols));
                Err(rejection)
            }
        }
    }

    fn verify(&self, library: &LoadedLibrary) -> Result<(), Rejection> {
        if let Some(missing) = self
            .required
            .iter()
            .find(|function| library.address(function).is_null())
        {
            let missing = missing.to_str().unwrap_or_default();
            return Err(Rejection::OtherLibrary {
                library: self.name,
                missing,
            });
        }
        (self.check)(library)
    }
}

impl LoadedLibrary {
    /// Returns the address of `function`; null if the library does not export it.
    #[must_use]
    pub fn address(&self, function: &CStr) -> *const c_void {
        let address = self.symbols.address(function);
        if !address.is_null() || self.symbol_versions.is_empty() {
            return address;
        }
        let name = function.to_string_lossy();
        let versioned = self
            .symbol_versions
            .iter()
            .filter_map(|suffix| CString::new(format!("__{name}{suffix}")).ok());
        let addresses = versioned.map(|name| self.symbols.address(&name));
        addresses
            .into_iter()
            .find(|address| !address.is_null())
            .unwrap_or(core::ptr::null())
    }

    /// Returns a table of the functions that the library exports.
    ///
    /// # Safety
    ///
    /// The table declares the signatures that this library defines for the symbols.
    #[must_use]
    pub unsafe fn table<T: FunctionTable>(&self) -> T {
        // SAFETY: the caller guarantees the signatures, and the library is never closed.
        unsafe { T::from_resolver(|name| self.address(name)) }
    }
}

/// Opens a library.
///
/// # Safety
///
/// The initializers of the library and of those that it depends on may run in this process.
#[cfg(not(windows))]
unsafe fn open(path: &Path, _origin: Origin) -> Result<Library, libloading::Error> {
    // SAFETY: the caller guarantees that the initializers may run.
    unsafe { Library::new(path) }
}

/// Opens a library. The bare name of a driver is searched for only in the system folder.
/// Dependencies are searched for in the folder of the library and in the default folders, but
/// neither in the current folder nor in those of `PATH`.
///
/// # Safety
///
/// The initializers of the library and of those that it depends on may run in this process.
#[cfg(windows)]
unsafe fn open(path: &Path, origin: Origin) -> Result<Library, libloading::Error> {
    use libloading::os::windows::{
        LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
        LOAD_LIBRARY_SEARCH_SYSTEM32, Library,
    };

    let is_bare = path.components().count() == 1;
    let (path, flags) = match origin {
        Origin::Driver if is_bare => (path.to_owned(), LOAD_LIBRARY_SEARCH_SYSTEM32),
        _ => {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            (
                absolute,
                LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS,
            )
        }
    };
    // SAFETY: the caller guarantees that the initializers may run.
    unsafe { Library::load_with_flags(path, flags) }.map(Into::into)
}

/// Opens the file beside `library` whose name starts with `prefix`, if any, and keeps it open: not
/// every release of a library has a search path for the files that it opens by name.
///
/// # Safety
///
/// The initializers of the file may run in this process.
unsafe fn open_companion(library: &Path, prefix: &str) {
    let Some(Ok(entries)) = library.parent().map(std::fs::read_dir) else {
        return;
    };
    let entry = entries.filter_map(Result::ok).find(|entry| {
        entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(prefix))
    });
    let Some(entry) = entry else {
        return;
    };
    // SAFETY: the caller guarantees that the initializers may run.
    if let Ok(library) = unsafe { open(&entry.path(), Origin::Toolkit(&[])) } {
        core::mem::forget(library);
    }
}

/// Returns the message of the system's loader, or of libloading if the system provides none.
fn reason(error: &libloading::Error) -> Box<str> {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
        .into_boxed_str()
}

#[cfg(all(test, windows))]
mod tests {
    use super::*;

    /// Describes a library of Windows as a driver.
    static SYSTEM: LibraryDescription = LibraryDescription {
        name: "example",
        variable: "CURIUM_EXAMPLE_PATH",
        files: &["version.dll"],
        origin: Origin::Driver,
        companions: &[],
        required: &[c"GetFileVersionInfoSizeW"],
        symbol_versions: &[],
        check: |_| Ok(()),
    };

    /// Describes a library that is beside the program, and nowhere else.
    static PLANTED: LibraryDescription = LibraryDescription {
        files: &["curium-planted.dll"],
        variable: "CURIUM_PLANTED_PATH",
        ..SYSTEM
    };

    #[test]
    fn driver_is_opened_in_the_system_folder_only() {
        // SAFETY: the description is that of the library.
        unsafe { SYSTEM.load() }.expect("Windows has it");
        let program = std::env::current_exe().expect("a program has a path");
        let planted = program.with_file_name(PLANTED.files[0]);
        let root = std::env::var_os("SystemRoot").expect("Windows sets it");
        let original = Path::new(&root).join(r"System32\version.dll");
        std::fs::copy(&original, &planted).expect("the folder of the program is writable");
        // SAFETY: the file is a copy of the described library.
        let error = unsafe { PLANTED.load() }.expect_err("it is not in the system folder");
        assert_eq!(error.attempts.len(), 1, "{error}");
        // SAFETY: the file is a copy of the described library.
        unsafe { PLANTED.load_from(&planted) }.expect("a path is opened");
    }
}
