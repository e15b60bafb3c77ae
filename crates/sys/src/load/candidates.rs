//! The paths at which a library may be installed.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::vec;
use std::vec::Vec;

use super::privileges::has_raised_privileges;
use super::{LibraryDescription, Origin, Package, python};

/// The folders with libraries below the root of a toolkit or a conda environment.
/// The folders of headers in a toolkit, and in a Conda environment.
const INCLUDE_FOLDERS: [&str; 3] = ["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"];

#[cfg(windows)]
const IN_TOOLKIT: [&str; 2] = [r"bin\x64", "bin"];
#[cfg(not(windows))]
const IN_TOOLKIT: [&str; 2] = ["lib64", "lib"];

/// Folders of toolkits that the system's loader does not always search.
#[cfg(windows)]
const TOOLKIT_FOLDERS: [&str; 0] = [];
#[cfg(not(windows))]
const TOOLKIT_FOLDERS: [&str; 4] = ["/usr/local/cuda/lib64", "/opt/cuda/lib64", "/usr/lib64", "/usr/lib"];

/// Folders of drivers that the system's loader does not always search: WSL, NixOS, containers, Jetson.
#[cfg(not(windows))]
const DRIVER_FOLDERS: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/nvidia",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/tegra",
];

/// The paths to open, and the searched folders without a match.
#[derive(Default)]
pub(super) struct Candidates {
    /// The paths to open, in order.
    pub(super) paths: Vec<PathBuf>,
    /// Existing folders that do not contain the library.
    pub(super) folders: Vec<PathBuf>,
}

impl Candidates {
    pub(super) fn of(library: &LibraryDescription) -> Self {
        if let Some(chosen) = variable(library.variable) {
            return Self { paths: in_folder_or_itself(library, Path::new(&chosen)), ..Self::default() };
        }
        match library.origin {
            Origin::Driver => Self::installed(library, []),
            Origin::Toolkit(packages) => Self::installed(library, toolkit_folders(packages)),
        }
    }

    /// Returns the candidates without the environment variable; `folders` are those of toolkits.
    pub(super) fn installed(library: &LibraryDescription, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        match library.origin {
            Origin::Driver => Self { paths: driver_paths(library), ..Self::default() },
            Origin::Toolkit(_) => Self::in_toolkits(library, folders),
        }
    }

    /// Returns the bare names, and the files that exist in `folders`. Listing every name in every folder would obscure
    /// the useful lines.
    fn in_toolkits(library: &LibraryDescription, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut candidates = Self { paths: bare_names(library), ..Self::default() };
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            let files = library.files.iter().map(|file| folder.join(file));
            let present: Vec<_> = files.filter(|path| path.exists()).collect();
            if present.is_empty() {
                candidates.folders.push(folder);
            } else {
                candidates.paths.extend(present);
            }
        }
        candidates
    }
}

/// Returns the preferred bare name, that name in each folder of drivers, and the other bare names.
#[cfg(not(windows))]
fn driver_paths(library: &LibraryDescription) -> Vec<PathBuf> {
    let Some((first, rest)) = library.files.split_first() else { return Vec::new() };
    let in_folders = DRIVER_FOLDERS.iter().map(|folder| Path::new(folder).join(first));
    core::iter::once(PathBuf::from(first)).chain(in_folders).chain(rest.iter().map(PathBuf::from)).collect()
}

/// Returns the files in the system folder only: for a bare name, Windows searches the program's folder first.
#[cfg(windows)]
fn driver_paths(library: &LibraryDescription) -> Vec<PathBuf> {
    let root = env::var_os("SystemRoot").unwrap_or_else(|| OsString::from(r"C:\Windows"));
    library.files.iter().map(|name| Path::new(&root).join("System32").join(name)).collect()
}

/// Returns the folders of toolkits and of Python packages.
fn toolkit_folders(packages: &'static [Package]) -> Vec<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"].into_iter().filter_map(variable).map(PathBuf::from);
    let in_toolkits = toolkits.flat_map(|toolkit| IN_TOOLKIT.map(|folder| toolkit.join(folder)));
    let python = python::package_folders();
    let in_packages = python.iter().flat_map(|folder| packages.iter().map(|package| folder.join(package.folder)));
    in_toolkits.chain(in_packages).chain(TOOLKIT_FOLDERS.into_iter().map(PathBuf::from)).collect()
}

/// Returns the folders of headers of the toolkits and of the Python `packages` on this machine, in the order in which libraries are
/// searched for. Some may not exist.
#[must_use]
pub fn include_folders(packages: &[Package]) -> Vec<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"].into_iter().filter_map(variable).map(PathBuf::from);
    let in_toolkits = toolkits.flat_map(|toolkit| INCLUDE_FOLDERS.map(|folder| toolkit.join(folder)));
    let python = python::package_folders();
    let in_packages = python.iter().flat_map(|folder| packages.iter().map(|package| folder.join(package.folder)));
    let system = ["/usr/local/cuda/include", "/opt/cuda/include", "/usr/include"].into_iter().map(PathBuf::from);
    in_toolkits.chain(in_packages).chain(system).collect()
}

/// Returns every name of the library in the folder at `path`, or `path` itself if it is not a folder.
fn in_folder_or_itself(library: &LibraryDescription, path: &Path) -> Vec<PathBuf> {
    if path.is_dir() { library.files.iter().map(|file| path.join(file)).collect() } else { vec![path.to_path_buf()] }
}

/// Returns the names that the system's loader searches for.
#[cfg(not(windows))]
fn bare_names(library: &LibraryDescription) -> Vec<PathBuf> {
    library.files.iter().map(PathBuf::from).collect()
}

/// Returns nothing: for a bare name, Windows searches the program's folder and the current folder.
#[cfg(windows)]
fn bare_names(_library: &LibraryDescription) -> Vec<PathBuf> {
    Vec::new()
}

/// Returns the value of an environment variable, unless the program has elevated privileges.
pub(super) fn variable(name: &str) -> Option<OsString> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    (!has_raised_privileges()).then_some(value)
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;

    use super::*;

    static EXAMPLE: LibraryDescription = LibraryDescription {
        name: "example",
        variable: "CURIUM_EXAMPLE_PATH",
        files: &["libexample.so.13", "libexample.so.12"],
        origin: Origin::Toolkit(&[Package { name: "example", folder: "nvidia/example/lib" }]),
        companions: &[],
        required: &[],
        symbol_versions: &[],
        check: |_| Ok(()),
    };

    #[test]
    fn bare_names_come_first_in_the_order_of_the_description() {
        let names: Vec<_> = EXAMPLE.files.iter().map(PathBuf::from).collect();
        assert_eq!(Candidates::installed(&EXAMPLE, []).paths, names);
    }

    #[test]
    fn folder_stands_for_the_libraries_in_it() {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let all: Vec<_> = EXAMPLE.files.iter().map(|file| folder.path().join(file)).collect();
        assert_eq!(in_folder_or_itself(&EXAMPLE, folder.path()), all);
        fs::write(&all[1], "").expect("the folder is writable");
        assert_eq!(in_folder_or_itself(&EXAMPLE, &all[1]), all[1..]);
    }

    #[test]
    fn libraries_in_folders_follow_the_bare_names_and_folders_without_one_are_listed() {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
        fs::create_dir(&full).expect("the folder is writable");
        fs::create_dir(&empty).expect("the folder is writable");
        let library = full.join(EXAMPLE.files[1]);
        fs::write(&library, "").expect("the folder is writable");
        let candidates = Candidates::installed(&EXAMPLE, [full, empty.clone(), folder.path().join("absent")]);
        assert_eq!(candidates.paths[EXAMPLE.files.len()..], [library]);
        assert_eq!(candidates.folders, [empty]);
    }
}
