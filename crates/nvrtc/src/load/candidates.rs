//! Where a library may lie.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Product, python};

/// The folders of a toolkit or a conda environment that hold its libraries.
#[cfg(windows)]
const IN_TOOLKIT: [&str; 2] = [r"bin\x64", "bin"];
#[cfg(not(windows))]
const IN_TOOLKIT: [&str; 2] = ["lib64", "lib"];

/// Folders that the system's loader does not always search.
#[cfg(windows)]
const FOLDERS: [&str; 0] = [];
#[cfg(not(windows))]
const FOLDERS: [&str; 4] = ["/usr/local/cuda/lib64", "/opt/cuda/lib64", "/usr/lib64", "/usr/lib"];

/// What to open, and what need not be tried.
pub(super) struct Candidates {
    /// What to open, in order.
    pub(super) paths: Vec<PathBuf>,
    /// Folders that exist and hold no such library.
    pub(super) folders: Vec<PathBuf>,
}

impl Candidates {
    pub(super) fn of(product: &Product) -> Self {
        match variable(product.variable) {
            Some(chosen) => Self { paths: in_folder_or_itself(product, Path::new(&chosen)), folders: Vec::new() },
            None => Self::usual(product, folders(product)),
        }
    }

    /// The bare names, and then the files that exist in `folders`: to list each name in each folder would help nobody.
    fn usual(product: &Product, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut candidates = Self { paths: bare_names(product), folders: Vec::new() };
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            let before = candidates.paths.len();
            let files = product.files.iter().map(|file| folder.join(file));
            candidates.paths.extend(files.filter(|path| path.exists()));
            if candidates.paths.len() == before {
                candidates.folders.push(folder);
            }
        }
        candidates
    }
}

/// The folders that such a library is installed in.
fn folders(product: &Product) -> Vec<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"].into_iter().filter_map(variable).map(PathBuf::from);
    let in_toolkits = toolkits.flat_map(|toolkit| IN_TOOLKIT.map(|folder| toolkit.join(folder)));
    let packages = python::package_folders();
    let in_packages = packages.iter().flat_map(|folder| product.packages.iter().map(|package| folder.join(package)));
    in_toolkits.chain(in_packages).chain(FOLDERS.into_iter().map(PathBuf::from)).collect()
}

fn in_folder_or_itself(product: &Product, path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    let files: Vec<_> = product.files.iter().map(|file| path.join(file)).collect();
    let present: Vec<_> = files.iter().filter(|file| file.exists()).cloned().collect();
    if present.is_empty() { files } else { present }
}

/// The names that the system's loader is asked for.
#[cfg(not(windows))]
fn bare_names(product: &Product) -> Vec<PathBuf> {
    product.files.iter().map(PathBuf::from).collect()
}

/// None: a bare name would be looked up beside the program and in the current folder as well.
#[cfg(windows)]
fn bare_names(_product: &Product) -> Vec<PathBuf> {
    Vec::new()
}

/// An environment variable, if it is set and to be trusted.
pub(super) fn variable(name: &str) -> Option<OsString> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    (!curium_driver::sys::has_raised_privileges()).then_some(value)
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;

    use super::*;
    use crate::nvrtc::NVRTC;

    #[test]
    fn newest_version_is_asked_for_first() {
        let bare: Vec<_> = NVRTC.files.iter().map(PathBuf::from).collect();
        assert_eq!(Candidates::usual(&NVRTC, []).paths, bare);
        assert!(bare[0].to_string_lossy().ends_with(".13"), "{bare:?}");
    }

    #[test]
    fn folder_stands_for_the_libraries_in_it() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let all: Vec<_> = NVRTC.files.iter().map(|file| folder.path().join(file)).collect();
        assert_eq!(in_folder_or_itself(&NVRTC, folder.path()), all);
        fs::write(&all[1], "").expect("the folder is writable");
        assert_eq!(in_folder_or_itself(&NVRTC, folder.path()), all[1..2]);
        assert_eq!(in_folder_or_itself(&NVRTC, &all[1]), all[1..2]);
    }

    #[test]
    fn library_in_a_folder_comes_behind_the_bare_names_and_folders_without_one_are_told() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
        fs::create_dir(&full).expect("the folder is writable");
        fs::create_dir(&empty).expect("the folder is writable");
        let library = full.join(NVRTC.files[1]);
        fs::write(&library, "").expect("the folder is writable");
        let candidates = Candidates::usual(&NVRTC, [full, empty.clone(), folder.path().join("absent")]);
        assert_eq!(candidates.paths[NVRTC.files.len()..], [library]);
        assert_eq!(candidates.folders, [empty]);
    }
}
