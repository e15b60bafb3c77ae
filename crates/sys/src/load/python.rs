//! The package folders of Python environments, which contain CUDA's libraries on many machines.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::vec::Vec;
use std::{env, vec};

use super::candidates::variable;

/// Returns the package folders of the active environments: the virtual or conda environment, the first `python3` in `PATH`, the user's
/// and the system's.
pub(super) fn package_folders() -> Vec<PathBuf> {
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).map(PathBuf::from);
    let user = variable("HOME").map(|home| PathBuf::from(home).join(".local"));
    let system = ["/usr/local", "/usr"].map(PathBuf::from);
    let mut seen = BTreeSet::new();
    let prefixes = environments.chain(interpreter_prefixes()).chain(user).chain(system);
    prefixes.filter(|prefix| seen.insert(prefix.clone())).flat_map(|prefix| in_prefix(&prefix)).collect()
}

/// Returns the installation prefixes of the first `python3` in `PATH`: of the file, and of the target if it is a symbolic link.
fn interpreter_prefixes() -> Vec<PathBuf> {
    variable("PATH").map_or_else(Vec::new, |path| prefixes_in(&path))
}

/// Returns the prefixes of the first `python3` in these folders. Relative folders are left out: the current directory is anyone's.
fn prefixes_in(path: &OsStr) -> Vec<PathBuf> {
    let name = if cfg!(windows) { "python.exe" } else { "python3" };
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    let Some(file) = folders.map(|folder| folder.join(name)).find(|file| file.is_file()) else {
        return Vec::new();
    };
    let real = file.canonicalize().ok();
    let prefix = |file: &Path| {
        let folder = file.parent()?;
        Some(if cfg!(windows) { folder } else { folder.parent()? }.to_path_buf())
    };
    [Some(file), real].into_iter().flatten().filter_map(|file| prefix(&file)).collect()
}

/// Returns the package folders below `prefix`, those of the newest Python first.
fn in_prefix(prefix: &Path) -> Vec<PathBuf> {
    if cfg!(windows) {
        return vec![prefix.join("Lib").join("site-packages")].into_iter().filter(|folder| folder.is_dir()).collect();
    }
    let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else { return Vec::new() };
    let is_python = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
    };
    let mut pythons: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_python).collect();
    pythons.sort_by_key(|path| std::cmp::Reverse(minor_version(path)));
    let packages = pythons.iter().flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)));
    packages.filter(|folder| folder.is_dir()).collect()
}

/// Returns the minor version as a number, so that `python3.12` is newer than `python3.9`.
fn minor_version(path: &Path) -> u32 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("python3.").and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn interpreters_in_relative_folders_are_left_out() {
        let prefix = tempfile::tempdir().expect("a folder can be created");
        let bin = prefix.path().join("bin");
        fs::create_dir(&bin).expect("the folder is writable");
        fs::write(bin.join("python3"), "").expect("the folder is writable");
        assert_eq!(prefixes_in(bin.as_os_str())[0], prefix.path());
        let here = env::current_dir().expect("the process has a folder");
        let up: PathBuf = here.ancestors().skip(1).map(|_| "..").collect();
        let relative = up.join(bin.strip_prefix("/").expect("the path is absolute"));
        assert!(relative.join("python3").is_file());
        assert!(prefixes_in(relative.as_os_str()).is_empty());
    }

    #[test]
    fn packages_of_the_newest_python_come_first() {
        let prefix = tempfile::tempdir().expect("a folder can be created");
        for folder in ["lib/python3.9/site-packages", "lib/python3.12/site-packages", "lib/perl5/site-packages"] {
            fs::create_dir_all(prefix.path().join(folder)).expect("the folder is writable");
        }
        let expected =
            ["lib/python3.12/site-packages", "lib/python3.9/site-packages"].map(|name| prefix.path().join(name));
        assert_eq!(in_prefix(prefix.path()), expected);
    }
}
