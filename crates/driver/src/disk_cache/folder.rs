//! Private directories and files.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Creates `folder` for this user alone if it does not exist.
///
/// # Errors
///
/// If it is not a directory, belongs to another user, or is accessible to other users.
#[cfg(unix)]
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};

    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    check_owned("folder", &metadata)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "directory accessible to other users (mode {mode:o}); set the mode to 700"
        )));
    }
    Ok(())
}

/// Returns an error if another user owns the file or folder.
#[cfg(unix)]
fn check_owned(what: &str, metadata: &fs::Metadata) -> io::Result<()> {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    let user = geteuid();
    if owner == user {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the {what} belongs to user {owner}, and this is user {user}"
    )))
}

/// Creates `folder` if it does not exist; a user's directories are private on this system.
#[cfg(not(unix))]
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Creates a file for this user alone; `None` if it already exists.
pub(super) fn create_private(path: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.write(true).create_new(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file after checking that only this user can have written it, since the directory may
/// have been replaced after it was opened; `None` if it does not exist.
pub(super) fn read_private(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    #[cfg(unix)]
    check_private(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Returns an error if another user owns the file, or may write it.
#[cfg(unix)]
fn check_private(file: &fs::Metadata) -> io::Result<()> {
    check_owned("file", file)?;
    let mode = std::os::unix::fs::MetadataExt::mode(file) & 0o777;
    if mode & 0o022 != 0 {
        return Err(io::Error::other(format!(
            "file writable by other users (mode {mode:o})"
        )));
    }
    Ok(())
}

/// Syncs the names in `folder` to disk.
#[cfg(unix)]
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Does nothing: names need no separate sync on this system.
#[cfg(not(unix))]
pub(super) fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the user's cache directory.
pub(super) fn for_caches() -> Option<PathBuf> {
    if cfg!(windows) {
        return absolute_path("LOCALAPPDATA");
    }
    absolute_path("XDG_CACHE_HOME").or_else(|| Some(absolute_path("HOME")?.join(".cache")))
}

/// Returns the path in an environment variable, if it is absolute.
fn absolute_path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

// SAFETY: `geteuid` of the C library has this signature, and always succeeds.
#[cfg(unix)]
unsafe extern "C" {
    safe fn geteuid() -> u32;
}
