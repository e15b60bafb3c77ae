//! Where an NVRTC may lie.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file names under which NVRTC is installed, the newest first. From CUDA 11.2 on, all of a major version share one.
#[cfg(windows)]
const NAMES: [&str; 3] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"];
#[cfg(not(windows))]
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"];

/// The folders of a toolkit that hold its libraries.
#[cfg(windows)]
const IN_TOOLKIT: [&str; 2] = [r"bin\x64", "bin"];
#[cfg(not(windows))]
const IN_TOOLKIT: [&str; 2] = ["lib64", "lib"];

/// Folders that the system's loader does not always search.
#[cfg(windows)]
const FOLDERS: [&str; 0] = [];
#[cfg(not(windows))]
const FOLDERS: [&str; 4] = ["/usr/local/cuda/lib64", "/opt/cuda/lib64", "/usr/lib64", "/usr/lib"];

/// What to open, in order.
pub(super) fn paths() -> Vec<PathBuf> {
    match variable("CURIUM_NVRTC_PATH") {
        Some(chosen) => in_folder_or_itself(Path::new(&chosen)),
        None => {
            let toolkits: Vec<_> =
                ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).map(PathBuf::from).collect();
            usual(&toolkits)
        }
    }
}

fn in_folder_or_itself(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() { NAMES.map(|name| path.join(name)).to_vec() } else { vec![path.to_path_buf()] }
}

/// The bare names, and then the files that exist in the usual folders: to list each name in each folder would help nobody.
fn usual(toolkits: &[PathBuf]) -> Vec<PathBuf> {
    let in_toolkits = toolkits.iter().flat_map(|toolkit| IN_TOOLKIT.map(|folder| toolkit.join(folder)));
    let folders = in_toolkits.chain(FOLDERS.into_iter().map(PathBuf::from));
    let files = folders.flat_map(|folder| NAMES.map(|name| folder.join(name))).filter(|path| path.exists());
    bare_names().chain(files).collect()
}

/// The names that the system's loader is asked for.
#[cfg(not(windows))]
fn bare_names() -> impl Iterator<Item = PathBuf> {
    NAMES.into_iter().map(PathBuf::from)
}

/// None: a bare name would be looked up beside the program and in the current folder as well.
#[cfg(windows)]
fn bare_names() -> impl Iterator<Item = PathBuf> {
    std::iter::empty()
}

/// An environment variable, if it is set and to be trusted.
fn variable(name: &str) -> Option<OsString> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    (!has_raised_privileges()).then_some(value)
}

/// Whether the program runs with more rights than its caller, so that the caller must not choose code for it.
#[cfg(target_os = "linux")]
fn has_raised_privileges() -> bool {
    const AT_SECURE: std::ffi::c_ulong = 23;
    // SAFETY: `getauxval` of the C library has this signature and no precondition.
    unsafe extern "C" {
        safe fn getauxval(kind: std::ffi::c_ulong) -> std::ffi::c_ulong;
    }
    getauxval(AT_SECURE) != 0
}

/// Other systems have no NVRTC that such a program could be tricked with.
#[cfg(not(target_os = "linux"))]
fn has_raised_privileges() -> bool {
    false
}

#[cfg(all(test, not(windows)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn newest_version_is_asked_for_first() {
        assert_eq!(usual(&[])[..3], NAMES.map(PathBuf::from));
    }

    #[test]
    fn folder_stands_for_the_libraries_in_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(in_folder_or_itself(folder), NAMES.map(|name| folder.join(name)));
        let file = folder.join("Cargo.toml");
        assert_eq!(in_folder_or_itself(&file), [file]);
    }

    #[test]
    fn library_of_a_toolkit_comes_behind_the_bare_names_and_before_the_usual_folders() {
        let toolkit = tempfile::tempdir().expect("a folder can be made");
        let library = toolkit.path().join("lib64").join(NAMES[1]);
        fs::create_dir(toolkit.path().join("lib64")).expect("the folder is writable");
        fs::write(&library, "").expect("the folder is writable");
        assert_eq!(usual(&[toolkit.path().to_path_buf()])[3], library);
    }
}
