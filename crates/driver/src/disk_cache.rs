//! A cache in a folder on disk.
//!
//! The rules:
//!
//! 1. An entry is found by its whole key, which it holds: two keys whose digests are equal cannot be taken for each other.
//! 2. An entry is used only if its length and its checksum are right. One that is broken is removed, as if it had never been.
//! 3. An entry appears at once and whole: it is written under another name, brought to the disk, and renamed. A process that dies in
//!    between leaves a file that nobody reads and that is removed later. So any number of processes may share a folder.
//! 4. The folder is private, since code that is read from it is run. A folder that other users can reach is refused, and so is a file that
//!    another user owns or may write. A program of the same user could as well write into this process.
//! 5. Code has keys of its own. Entries that a program puts under its keys are never loaded as code.
//! 6. Entries are removed, those first that were not used for longest, when all together are larger than the limit.

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

use curium_sys::load::has_raised_privileges;

pub use self::key::CacheKey;

use crate::{Error, Result};

/// A folder of entries that were expensive to make, such as compiled code, for this and later runs of any program.
///
/// Nothing is kept unless a program asks for it: [`Library::from_ptx_cached`](crate::Library::from_ptx_cached) does. Reading and
/// writing entries never fails an operation that can do without them.
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
    /// Their size in bytes.
    pub bytes: u64,
}

/// A file of the folder.
struct Found {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Names the folder of [`DiskCache::of_user`].
const VARIABLE: &str = "CURIUM_CACHE_PATH";
/// Ends the names of entries.
const EXTENSION: &str = "entry";
/// Ends the names of entries that are being written.
const UNFINISHED: &str = "unfinished";
/// The age at which an unfinished entry counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

impl DiskCache {
    /// The most that a cache holds unless [`DiskCache::with_limit`] says otherwise: 1 GiB.
    pub const DEFAULT_LIMIT: u64 = 1 << 30;

    /// Returns the cache in `folder`, which is made if it is not there, for this user alone.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the folder cannot be made or read, belongs to another user, or can be reached by others.
    #[inline]
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        folder::make_private(folder).map_err(|error| refuse("DiskCache::open", folder, &error))?;
        Ok(Self { folder: folder.to_path_buf(), limit: Self::DEFAULT_LIMIT })
    }

    /// Returns the cache that programs of this user share: in `CURIUM_CACHE_PATH`, else in `curium` in the folder for caches.
    ///
    /// # Errors
    ///
    /// As for [`DiskCache::open`]. An argument error if the system names no folder for caches, and in a set-uid program, whose environment
    /// is chosen by its user.
    #[inline]
    pub fn of_user() -> Result<Self> {
        if has_raised_privileges() {
            let problem = "a set-uid program does not follow the environment; name a folder with `DiskCache::open`";
            return Err(Error::argument("DiskCache::of_user", problem));
        }
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let folder = named.or_else(|| Some(folder::for_caches()?.join("curium")));
        let folder = folder.ok_or_else(|| {
            Error::argument("DiskCache::of_user", format!("the system names no folder for caches; set {VARIABLE}"))
        })?;
        Self::open(folder)
    }

    /// Sets the limit in bytes.
    #[must_use]
    #[inline]
    pub const fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns the folder.
    #[must_use]
    #[inline]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the contents stored under `key`, or `None` if they are missing or damaged.
    ///
    /// # Errors
    ///
    /// An argument error with the path if there is an entry that cannot be read.
    #[inline]
    pub fn get(&self, key: &CacheKey) -> Result<Option<Vec<u8>>> {
        const OPERATION: &str = "DiskCache::get";
        let path = self.path(key);
        let bytes = folder::read_private(&path).map_err(|error| refuse(OPERATION, &path, &error))?;
        let Some(bytes) = bytes else { return Ok(None) };
        match entry::contents(&bytes, key.as_bytes()) {
            Ok(contents) => {
                note_use(&path);
                Ok(Some(contents.to_vec()))
            }
            // Another key has this digest: its entry is whole, and is not ours to remove.
            Err(entry::Fault::OtherKey) => Ok(None),
            Err(entry::Fault::Broken) => {
                tracing::warn!(path = %path.display(), "an entry of a cache is broken and is removed");
                remove(&path).map_err(|error| refuse(OPERATION, &path, &error))?;
                Ok(None)
            }
        }
    }

    /// Keeps `contents` under `key`, in place of what was there. Contents that are larger than the limit are not kept.
    ///
    /// Waits until they are on the disk.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the entry cannot be written; nothing of it is left then.
    #[inline]
    pub fn put(&self, key: &CacheKey, contents: &[u8]) -> Result<()> {
        let entry = entry::new(key.as_bytes(), contents);
        if entry.len() as u64 > self.limit {
            return Ok(());
        }
        let path = self.path(key);
        self.write(&path, &entry).map_err(|error| refuse("DiskCache::put", &path, &error))?;
        self.shrink().map_err(|error| refuse("DiskCache::put", &self.folder, &error))
    }

    /// Removes what was put under `key`.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the entry cannot be removed.
    #[inline]
    pub fn remove(&self, key: &CacheKey) -> Result<()> {
        let path = self.path(key);
        remove(&path).map_err(|error| refuse("DiskCache::remove", &path, &error))
    }

    /// Removes all entries and what processes that have died left of theirs, and nothing else that may be in the folder.
    ///
    /// # Errors
    ///
    /// An argument error with the path if one cannot be removed.
    #[inline]
    pub fn clear(&self) -> Result<()> {
        let remove_all = || {
            self.remove_abandoned()?;
            self.files(EXTENSION)?.iter().try_for_each(|file| remove(&file.path))
        };
        remove_all().map_err(|error| refuse("DiskCache::clear", &self.folder, &error))
    }

    /// Returns the size of the cache.
    ///
    /// # Errors
    ///
    /// An argument error with the path if the folder cannot be read.
    #[inline]
    pub fn usage(&self) -> Result<CacheUsage> {
        let files = self.files(EXTENSION).map_err(|error| refuse("DiskCache::usage", &self.folder, &error))?;
        Ok(CacheUsage { entries: files.len() as u64, bytes: files.iter().map(|file| file.bytes).sum() })
    }

    #[inline]
    fn path(&self, key: &CacheKey) -> PathBuf {
        self.folder.join(format!("{:032x}.{EXTENSION}", key.digest()))
    }

    /// Creates the file at `path` with these bytes atomically.
    #[inline]
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (unfinished, file) = self.unfinished_file()?;
        let written = write_to_disk(file, bytes).and_then(|()| replace::replace(&unfinished, path, bytes));
        written.inspect_err(|_| remove(&unfinished).unwrap_or_default())?;
        folder::sync(&self.folder)
    }

    /// Creates a file for a new entry. An existing file belongs to another writer, which may be alive or not: each container numbers
    /// its processes by itself, so that a name of theirs is no one's alone.
    #[inline]
    fn unfinished_file(&self) -> io::Result<(PathBuf, File)> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.join(format!("{}-{number}.{UNFINISHED}", std::process::id()));
            if let Some(file) = folder::create_private(&path)? {
                return Ok((path, file));
            }
        }
    }

    /// Removes what other processes have left behind.
    #[inline]
    fn remove_abandoned(&self) -> io::Result<()> {
        let now = SystemTime::now();
        let age = |file: &Found| now.duration_since(file.used).unwrap_or_default();
        self.files(UNFINISHED)?.iter().filter(|file| age(file) > ABANDONED).try_for_each(|file| remove(&file.path))
    }

    /// Removes entries until the rest is within the limit, and what other processes have left behind.
    #[inline]
    fn shrink(&self) -> io::Result<()> {
        self.remove_abandoned()?;
        let mut entries = self.files(EXTENSION)?;
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

    /// Returns the files of the folder whose names end so. One that goes meanwhile is none.
    #[inline]
    fn files(&self, extension: &str) -> io::Result<Vec<Found>> {
        let mut files = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|found| found == extension)
                && let Ok(metadata) = fs::metadata(&path)
            {
                files.push(Found { path, bytes: metadata.len(), used: metadata.modified()? });
            }
        }
        Ok(files)
    }
}

/// Marks the entry as used now. If that fails, the entry is evicted earlier.
#[inline]
fn note_use(path: &Path) {
    let noted = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    noted.unwrap_or_default();
}

#[inline]
fn write_to_disk(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes the file at `path`, unless another process was quicker.
#[inline]
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
