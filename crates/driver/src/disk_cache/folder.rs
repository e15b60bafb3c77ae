//! Folders and files that no other user can reach.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Makes `folder` for this user alone if it is not there.
///
/// # Errors
///
/// If it is no folder, belongs to another user, or can be reached by others.
#[cfg(unix)]
#[inline]
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
    let (owner, user) = (metadata.uid(), geteuid());
    if owner != user {
        return Err(io::Error::other(format!("the folder belongs to user {owner}, and this is user {user}")));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(io::Error::other(format!("others can reach the folder (its mode is {mode:o}); make it 700")));
    }
    Ok(())
}

/// Makes `folder` if it is not there; the folders of a user are private.
#[cfg(not(unix))]
#[inline]
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Makes a file for this user alone; nothing if there is one of this name.
#[inline]
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

/// Brings the names in `folder` to the disk.
#[cfg(unix)]
#[inline]
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Names need nothing of the kind here.
#[cfg(not(unix))]
#[inline]
pub(super) fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Where the system wants the caches of this user to be.
#[inline]
pub(super) fn for_caches() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return variable("LOCALAPPDATA");
    }
    variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))
}

// SAFETY: `geteuid` of the C library has this signature, and always succeeds.
#[cfg(unix)]
unsafe extern "C" {
    safe fn geteuid() -> u32;
}
