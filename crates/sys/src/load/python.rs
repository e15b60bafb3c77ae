//! The package folders of Python environments, which contain CUDA's libraries on many machines.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::vec::Vec;
use std::{env, vec};

use super::candidates::Machine;

/// Returns the package folders of the active environments: the virtual or conda environment, the
/// first `python3` in `PATH`, the user's and the system's.
pub(super) fn package_folders(machine: &Machine<'_>) -> Vec<PathBuf> {
    let mut prefixes = machine.paths(&["VIRTUAL_ENV", "CONDA_PREFIX"]);
    prefixes.extend(
        machine
            .path("PATH")
            .map_or_else(Vec::new, |path| prefixes_in(path.as_os_str())),
    );
    prefixes.extend(if cfg!(windows) {
        machine.path("APPDATA").map(|data| data.join("Python"))
    } else {
        machine.path("HOME").map(|home| home.join(".local"))
    });
    prefixes.extend(machine.absolutes(&["/usr/local", "/usr"]));
    let mut folders = Vec::new();
    for (index, prefix) in prefixes.iter().enumerate() {
        if !prefixes[..index].contains(prefix) {
            folders.extend(in_prefix(prefix));
        }
    }
    folders
}

/// Returns the installation prefixes of the first `python3` in these folders: of the file, and of
/// the target if it is a symbolic link. Relative folders are left out: the current directory is
/// anyone's.
fn prefixes_in(path: &OsStr) -> Vec<PathBuf> {
    let name = if cfg!(windows) {
        "python.exe"
    } else {
        "python3"
    };
    let prefix = |file: &Path| {
        let folder = file.parent()?;
        Some(
            if cfg!(windows) {
                folder
            } else {
                folder.parent()?
            }
            .to_path_buf(),
        )
    };
    for folder in env::split_paths(path) {
        let file = folder.join(name);
        if folder.is_absolute() && file.is_file() {
            let real = file.canonicalize().ok().and_then(|file| prefix(&file));
            return prefix(&file).into_iter().chain(real).collect();
        }
    }
    Vec::new()
}

/// Returns the package folders below `prefix`, those of the newest Python first.
fn in_prefix(prefix: &Path) -> Vec<PathBuf> {
    let mut pythons = if cfg!(windows) {
        // An installation has one folder, and that of the user one for each version.
        [vec![prefix.join("Lib")], versions_in(prefix, "Python3")].concat()
    } else {
        versions_in(&prefix.join("lib"), "python3")
    };
    pythons.retain(|python| python.is_dir());
    let mut packages = Vec::new();
    for python in pythons {
        packages.extend([python.join("site-packages"), python.join("dist-packages")]);
    }
    packages.retain(|folder| folder.is_dir());
    packages
}

/// Returns the folders in `folder` whose names begin with `name`, those of the newest minor version
/// first: 12 is newer than 9. Debian's folder for all versions comes last.
fn versions_in(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut versions: Vec<_> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let path = entry.path();
            let suffix = path.file_name()?.to_str()?.strip_prefix(name)?;
            let minor: u32 = suffix
                .trim_matches(|character: char| !character.is_ascii_digit())
                .parse()
                .unwrap_or_default();
            Some((minor, path))
        })
        .collect();
    versions.sort_by_key(|(minor, _)| std::cmp::Reverse(*minor));
    versions.into_iter().map(|(_, path)| path).collect()
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn interpreters_in_relative_folders_are_left_out() {
        let prefix = tempfile::tempdir().expect("failed to create a folder");
        let bin = prefix.path().join("bin");
        fs::create_dir(&bin).expect("the folder is writable");
        fs::write(bin.join("python3"), "").expect("the folder is writable");
        assert_eq!(prefixes_in(bin.as_os_str())[0], prefix.path());
        let directory = env::current_dir().expect("the process has a folder");
        let up: PathBuf = directory.ancestors().skip(1).map(|_| "..").collect();
        let relative = up.join(bin.strip_prefix("/").expect("the path is absolute"));
        assert!(relative.join("python3").is_file());
        assert!(prefixes_in(relative.as_os_str()).is_empty());
    }

    #[test]
    fn newest_python_packages_come_first() {
        let prefix = tempfile::tempdir().expect("failed to create a folder");
        for folder in [
            "lib/python3.9/site-packages",
            "lib/python3.12/site-packages",
            "lib/perl5/site-packages",
            "lib/python3/dist-packages",
        ] {
            fs::create_dir_all(prefix.path().join(folder)).expect("the folder is writable");
        }
        let expected = [
            "lib/python3.12/site-packages",
            "lib/python3.9/site-packages",
            "lib/python3/dist-packages",
        ]
        .map(|name| prefix.path().join(name));
        assert_eq!(in_prefix(prefix.path()), expected);
    }
}
