//! Where a driver may lie.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::vec::Vec;

use super::privileges::has_raised_privileges;

/// The file names under which the driver is installed, the likelier first.
#[cfg(windows)]
const NAMES: &[&str] = &["nvcuda.dll"];
#[cfg(not(windows))]
const NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];

/// Folders that the system's loader does not always search: WSL, NixOS, containers, Jetson.
#[cfg(not(windows))]
const FOLDERS: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/nvidia",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/tegra",
];

/// What to open, in order.
pub(super) fn paths() -> Vec<PathBuf> {
    match chosen() {
        Some(path) => in_folder_or_itself(Path::new(&path)),
        None => installed(),
    }
}

/// The user's own choice, if it is to be trusted.
fn chosen() -> Option<OsString> {
    let path = std::env::var_os("CURIUM_DRIVER_PATH").filter(|path| !path.is_empty())?;
    (!has_raised_privileges()).then_some(path)
}

fn in_folder_or_itself(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() { NAMES.iter().map(|name| path.join(name)).collect() } else { Vec::from([path.to_path_buf()]) }
}

#[cfg(not(windows))]
fn installed() -> Vec<PathBuf> {
    let bare = NAMES[0];
    let in_folders = FOLDERS.iter().map(|folder| Path::new(folder).join(bare));
    let rest = NAMES[1..].iter().map(PathBuf::from);
    core::iter::once(PathBuf::from(bare)).chain(in_folders).chain(rest).collect()
}

/// The system folder alone: a bare name would be looked up beside the program first.
#[cfg(windows)]
fn installed() -> Vec<PathBuf> {
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| OsString::from(r"C:\Windows"));
    NAMES.iter().map(|name| Path::new(&root).join("System32").join(name)).collect()
}

#[cfg(all(test, not(windows)))]
mod tests {
    use super::*;

    #[test]
    fn versioned_name_comes_before_every_other_and_the_likely_stub_last() {
        let paths = installed();
        assert_eq!(paths.first(), Some(&PathBuf::from("libcuda.so.1")));
        assert_eq!(paths.last(), Some(&PathBuf::from("libcuda.so")));
    }

    #[test]
    fn folder_stands_for_the_drivers_in_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(in_folder_or_itself(folder), [folder.join("libcuda.so.1"), folder.join("libcuda.so")]);
        let file = folder.join("Cargo.toml");
        assert_eq!(in_folder_or_itself(&file), [file]);
    }
}
