//! A cache in a directory on disk.
//!
//! Rules:
//!
//! 1. An entry is looked up by its whole key, which it contains, so equal digests of different keys
//!    cannot be confused.
//! 2. An entry is used only if its length and checksum are valid. A damaged entry is removed and
//!    treated as missing.
//! 3. An entry appears atomically: it is written under another name, synced to disk, and renamed. A
//!    process that dies in between leaves a file that is never read and is removed later. Any
//!    number of processes may therefore share a directory.
//! 4. The directory is private, since code read from it is executed. A directory that other users
//!    can access is refused, and so is a file that another user owns or may write. Programs of the
//!    same user could write into this process anyway. On Windows, permissions are not checked.
//! 5. Code has keys of its own. Entries that a program stores under its own keys are never loaded
//!    as code.
//! 6. If the total size exceeds the limit, the least recently used entries are removed.

pub(crate) mod compile;
mod entry;
mod folder;
mod key;
mod replace;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use curium_sys::has_raised_privileges;

pub use self::key::CacheKey;

use crate::{Error, Result, emit_event};

/// A directory of results that are expensive to compute, such as compiled code, for later runs of
/// any program.
///
/// Nothing is cached unless a program requests it, for example with
/// [`Library::from_ptx_cached`](crate::Library::from_ptx_cached). A failure to read or write an
/// entry does not fail an operation that can proceed without it.
///
/// ```
/// use curium_driver::{CacheKey, DiskCache};
///
/// # let folder = std::env::temp_dir().join(format!("curium-doc-{}", std::process::id()));
/// let cache = DiskCache::open(&folder)?;
/// let key = CacheKey::new("answers").with("question", b"6 * 7");
/// cache.put(&key, b"42")?;
/// assert_eq!(cache.get(&key)?.as_deref(), Some(b"42".as_slice()));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiskCache {
    folder: PathBuf,
    limit: u64,
}

/// The size of a [`DiskCache`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CacheUsage {
    /// The number of entries.
    pub entries: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// A file in the directory.
struct CacheFile {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The environment variable with the directory of [`DiskCache::for_user`].
const VARIABLE: &str = "CURIUM_CACHE_PATH";
/// The extension of entries.
const EXTENSION: &str = "entry";
/// The extension of entries that are being written.
const UNFINISHED: &str = "unfinished";
/// The age at which an unfinished entry is considered abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

impl DiskCache {
    /// The default size limit of a cache: 1 GiB. See [`DiskCache::with_limit`].
    pub const DEFAULT_LIMIT: u64 = 1 << 30;

    /// Opens the cache in `folder`, creating the directory for this user alone if it does not
    /// exist.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the directory cannot be created or read, belongs to
    /// another user, or is accessible to other users.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        folder::make_private(folder).map_err(|error| refuse("DiskCache::open", folder, &error))?;
        Ok(Self {
            folder: folder.to_path_buf(),
            limit: Self::DEFAULT_LIMIT,
        })
    }

    /// Opens the cache shared by this user's programs: in `CURIUM_CACHE_PATH` if set, otherwise in
    /// `curium` in the user's cache directory.
    ///
    /// # Errors
    ///
    /// As for [`DiskCache::open`]. An argument error if the system has no cache directory. An
    /// argument error in a set-uid program, because the user that runs it controls its environment.
    pub fn for_user() -> Result<Self> {
        if has_raised_privileges() {
            let problem = "set-uid programs ignore the environment; use `DiskCache::open`";
            return Err(Error::argument("DiskCache::for_user", problem));
        }
        if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Self::open(PathBuf::from(path));
        }
        let caches = folder::for_caches().ok_or_else(|| {
            Error::argument(
                "DiskCache::for_user",
                format!("the system has no cache directory; set {VARIABLE}"),
            )
        })?;
        Self::open(caches.join("curium"))
    }

    /// Sets the size limit in bytes.
    #[must_use]
    pub const fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns the directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the contents stored under `key`, or `None` if they are missing or damaged.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the entry exists and cannot be read.
    pub fn get(&self, key: &CacheKey) -> Result<Option<Vec<u8>>> {
        const OPERATION: &str = "DiskCache::get";
        let path = self.path(key);
        let bytes =
            folder::read_private(&path).map_err(|error| refuse(OPERATION, &path, &error))?;
        let Some(bytes) = bytes else { return Ok(None) };
        match entry::decode(&bytes, key.as_bytes()) {
            Ok(contents) => {
                mark_used(&path);
                Ok(Some(contents.to_vec()))
            }
            // An entry of another key with the same digest. It is valid and must not be removed.
            Err(entry::Fault::OtherKey) => Ok(None),
            Err(entry::Fault::Broken) => {
                emit_event!(WARN, path = %path.display(), "removed a damaged cache entry");
                remove(&path).map_err(|error| refuse(OPERATION, &path, &error))?;
                Ok(None)
            }
        }
    }

    /// Stores `contents` under `key`, replacing the previous contents. Contents larger than the
    /// limit are not stored.
    ///
    /// Waits until they are on disk.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the entry cannot be written; no partial entry remains.
    pub fn put(&self, key: &CacheKey, contents: &[u8]) -> Result<()> {
        let entry = entry::encode(key.as_bytes(), contents);
        if entry.len() as u64 > self.limit {
            return Ok(());
        }
        let path = self.path(key);
        self.write(&path, &entry)
            .map_err(|error| refuse("DiskCache::put", &path, &error))?;
        self.shrink()
            .map_err(|error| refuse("DiskCache::put", &self.folder, &error))
    }

    /// Removes the entry of `key`.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the entry cannot be removed.
    pub fn remove(&self, key: &CacheKey) -> Result<()> {
        let path = self.path(key);
        remove(&path).map_err(|error| refuse("DiskCache::remove", &path, &error))
    }

    /// Removes all entries, and unfinished files of processes that have died. Other files in the
    /// directory are left alone.
    ///
    /// # Errors
    ///
    /// An argument error with the path if an entry cannot be removed.
    pub fn clear(&self) -> Result<()> {
        self.remove_all()
            .map_err(|error| refuse("DiskCache::clear", &self.folder, &error))
    }

    fn remove_all(&self) -> io::Result<()> {
        self.remove_abandoned()?;
        for file in self.files(EXTENSION)? {
            remove(&file.path)?;
        }
        Ok(())
    }

    /// Returns the size of the cache.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the directory cannot be read.
    pub fn usage(&self) -> Result<CacheUsage> {
        let files = self
            .files(EXTENSION)
            .map_err(|error| refuse("DiskCache::usage", &self.folder, &error))?;
        Ok(CacheUsage {
            entries: files.len() as u64,
            bytes: files.iter().map(|file| file.bytes).sum(),
        })
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        self.folder
            .join(format!("{:032x}.{EXTENSION}", key.digest()))
    }

    /// Atomically creates the file at `path` with these contents.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (unfinished, file) = self.unfinished_file()?;
        let written =
            write_to_disk(file, bytes).and_then(|()| replace::replace(&unfinished, path, bytes));
        if let Err(error) = written {
            // If this fails, too, the file is removed later as an abandoned one.
            let _ = remove(&unfinished);
            return Err(error);
        }
        folder::sync(&self.folder)
    }

    /// Creates a file for a new entry. An existing file belongs to another writer, dead or alive:
    /// process identifiers are unique only within a container, so a name that contains one may be
    /// taken.
    fn unfinished_file(&self) -> io::Result<(PathBuf, File)> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let path = self
                .folder
                .join(format!("{}-{number}.{UNFINISHED}", std::process::id()));
            if let Some(file) = folder::create_private(&path)? {
                return Ok((path, file));
            }
        }
    }

    /// Removes abandoned files of other processes.
    fn remove_abandoned(&self) -> io::Result<()> {
        let now = SystemTime::now();
        for file in self.files(UNFINISHED)? {
            if now.duration_since(file.used).unwrap_or_default() > ABANDONED {
                remove(&file.path)?;
            }
        }
        Ok(())
    }

    /// Removes the least recently used entries that exceed the limit, and abandoned files of other
    /// processes.
    fn shrink(&self) -> io::Result<()> {
        self.remove_abandoned()?;
        let mut entries = self.files(EXTENSION)?;
        // From the most recently used one on: the total of the first entries up to the limit
        // remains.
        entries.sort_by_key(|file| std::cmp::Reverse(file.used));
        let mut total = 0_u64;
        for file in entries {
            total = total.saturating_add(file.bytes);
            if total > self.limit {
                remove(&file.path)?;
            }
        }
        Ok(())
    }

    /// Returns the files in the directory with this extension. A file that disappears in the
    /// meantime is skipped.
    fn files(&self, extension: &str) -> io::Result<Vec<CacheFile>> {
        let mut files = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|other| other == extension)
                && let Ok(metadata) = fs::metadata(&path)
            {
                files.push(CacheFile {
                    path,
                    bytes: metadata.len(),
                    used: metadata.modified()?,
                });
            }
        }
        Ok(files)
    }
}

/// Marks the entry as used now, by its modification time. If that fails, the entry is evicted
/// earlier.
fn mark_used(path: &Path) {
    let _ = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

fn write_to_disk(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes the file at `path`, unless another process has already removed it.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cold]
fn refuse(operation: &'static str, path: &Path, error: &io::Error) -> Error {
    Error::argument(operation, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
