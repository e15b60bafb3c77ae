//! Entries in files: written aside and moved into place, verified when they are read, and bounded.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::fingerprint::fingerprint;

/// Begins every entry; the number goes up when their form changes.
const MAGIC: &[u8; 8] = b"curium 1";

/// The magic, the lengths of key and value, and the fingerprint of both.
const HEADER: usize = 8 + 8 + 8 + 16;

/// After this time a file that nobody moved into place is left over from a process that died.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// How much a cache holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CacheUsage {
    /// How many entries there are.
    pub entries: u64,
    /// How many bytes their files have.
    pub bytes: u64,
}

/// A folder of entries.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) folder: PathBuf,
    pub(super) limit: u64,
}

/// One file of the folder.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    /// Whether it is an entry, and not one that is being written.
    is_whole: bool,
}

impl Store {
    /// The store in `folder`, which is made for this user alone.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        make_private(folder)?;
        Ok(Self { folder: folder.to_path_buf(), limit })
    }

    /// The value of `key`, if it is there and whole. What is neither is removed.
    pub(super) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        match value(&bytes) {
            Some((found, value)) if found == key => {
                // For the order in which entries go; a file system that cannot note it loses nothing else.
                let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                Some(value.to_vec())
            }
            // Another key with this fingerprint: it stays, and ours is not kept.
            Some(_) => None,
            None => {
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Keeps `value` for `key`.
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let aside = self.aside();
        let written = self.write(&aside, key, value).and_then(|()| fs::rename(&aside, self.path(key)));
        if let Err(error) = written {
            let _ = fs::remove_file(&aside);
            return Err(error);
        }
        sync_folder(&self.folder)?;
        self.trim(&self.path(key))
    }

    pub(super) fn usage(&self) -> io::Result<CacheUsage> {
        Ok(sum(self.files()?.iter().filter(|file| file.is_whole)))
    }

    /// Removes every entry.
    pub(super) fn clear(&self) -> io::Result<CacheUsage> {
        let files = self.files()?;
        files.iter().try_for_each(|file| remove(&file.path))?;
        Ok(sum(files.iter().filter(|file| file.is_whole)))
    }

    fn path(&self, key: &[u8]) -> PathBuf {
        self.folder.join(format!("{:032x}.entry", fingerprint([key])))
    }

    /// A name that no other process and no other thread uses.
    fn aside(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::UNIX_EPOCH.elapsed().map(|time| time.as_nanos()).unwrap_or_default();
        self.folder.join(format!("{}-{next}-{time}.writing", std::process::id()))
    }

    /// Writes an entry to the disk.
    fn write(&self, path: &Path, key: &[u8], value: &[u8]) -> io::Result<()> {
        let mut file = private_file(path)?;
        file.write_all(MAGIC)?;
        file.write_all(&(key.len() as u64).to_le_bytes())?;
        file.write_all(&(value.len() as u64).to_le_bytes())?;
        file.write_all(&fingerprint([key, value]).to_le_bytes())?;
        file.write_all(key)?;
        file.write_all(value)?;
        file.sync_all()
    }

    /// Removes what dead processes left, and the entries that were not used for the longest time while there are too many; `kept` stays.
    fn trim(&self, kept: &Path) -> io::Result<()> {
        let (mut whole, aside): (Vec<_>, Vec<_>) = self.files()?.into_iter().partition(|file| file.is_whole);
        for file in aside.iter().filter(|file| file.used.elapsed().is_ok_and(|age| age > ABANDONED)) {
            remove(&file.path)?;
        }
        let mut bytes = sum(&whole).bytes;
        whole.sort_by_key(|file| file.used);
        for file in whole.iter().filter(|file| file.path != kept) {
            if bytes <= self.limit {
                break;
            }
            remove(&file.path)?;
            bytes -= file.bytes;
        }
        Ok(())
    }

    /// Our files in the folder. One that another process removed meanwhile is none.
    fn files(&self) -> io::Result<Vec<Entry>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_whole = match extension {
                Some("entry") => true,
                Some("writing") => false,
                _ => continue,
            };
            if let Ok(metadata) = fs::metadata(&path) {
                let (bytes, used) = (metadata.len(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
                files.push(Entry { path, bytes, used, is_whole });
            }
        }
        Ok(files)
    }
}

/// The key and the value of an entry that is whole.
fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let number = |at: usize| usize::try_from(u64::from_le_bytes(*header[at..].first_chunk()?)).ok();
    let (key, value) = rest.split_at_checked(number(8)?)?;
    let is_whole = header.starts_with(MAGIC)
        && value.len() == number(16)?
        && header[24..] == fingerprint([key, value]).to_le_bytes();
    is_whole.then_some((key, value))
}

fn sum<'a>(files: impl IntoIterator<Item = &'a Entry>) -> CacheUsage {
    files
        .into_iter()
        .fold(CacheUsage::default(), |sum, file| CacheUsage { entries: sum.entries + 1, bytes: sum.bytes + file.bytes })
}

/// Removes a file, which another process may have removed meanwhile.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};

    // SAFETY: `geteuid` of the C library has this signature and no precondition.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::metadata(folder)?;
    if metadata.uid() != geteuid() {
        return Err(io::Error::other("the cache is another user's"));
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(io::Error::other(format!(
            "others may use the cache (mode {mode:o}): make it private with chmod 700"
        )));
    }
    Ok(())
}

/// On other systems the folder of an application's data is the user's alone.
#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(unix)]
fn private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// Has the disk keep the name of a new file too.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Other systems open no folders.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    use super::*;

    fn store(limit: u64) -> (tempfile::TempDir, Store) {
        let parent = tempfile::tempdir().expect("a folder can be made");
        let store = Store::open(&parent.path().join("a/cache"), limit).expect("the folder is writable");
        (parent, store)
    }

    fn only_file(store: &Store) -> PathBuf {
        let files = store.files().expect("the folder is readable");
        let [file] = &files[..] else { panic!("{} files", files.len()) };
        file.path.clone()
    }

    #[test]
    fn value_is_found_by_its_key_alone() {
        let (_parent, store) = store(1 << 20);
        assert_eq!(store.get(b"key"), None);
        store.put(b"key", b"value").expect("the folder is writable");
        assert_eq!(store.get(b"key").as_deref(), Some(b"value".as_slice()));
        assert_eq!(store.get(b"kez"), None);
        store.put(b"key", b"other").expect("the folder is writable");
        assert_eq!(store.get(b"key").as_deref(), Some(b"other".as_slice()));
        assert_eq!(store.usage().expect("the folder is readable").entries, 1);
    }

    #[test]
    fn entry_with_any_byte_changed_or_cut_off_is_not_used_and_removed() {
        let (_parent, store) = store(1 << 20);
        store.put(b"key", b"value").expect("the folder is writable");
        let path = only_file(&store);
        let whole = fs::read(&path).expect("it is there");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            for bytes in [&damaged, &whole[..at]] {
                fs::write(&path, bytes).expect("the folder is writable");
                assert_eq!(store.get(b"key"), None, "byte {at}");
                assert!(!path.exists(), "byte {at}");
            }
        }
        fs::write(&path, &whole).expect("the folder is writable");
        assert!(store.get(b"key").is_some());
    }

    #[test]
    fn folder_and_files_are_the_users_alone() {
        let (parent, store) = store(1 << 20);
        store.put(b"key", b"value").expect("the folder is writable");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&store.folder), mode(&only_file(&store))), (0o700, 0o600));
        let open = parent.path().join("open");
        fs::create_dir(&open).expect("the folder is writable");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let error = Store::open(&open, 1).expect_err("others may read it").to_string();
        assert!(error.contains("mode 755") && error.contains("chmod 700"), "{error}");
    }

    #[test]
    fn entry_that_was_not_used_for_the_longest_time_goes_first() {
        let (_parent, store) = store(3 * (HEADER as u64 + 1 + 1000));
        let age = |key: &[u8], seconds| {
            let time = SystemTime::now() - Duration::from_secs(seconds);
            let file = File::options().append(true).open(store.path(key)).expect("it is there");
            file.set_modified(time).expect("the time can be set");
        };
        for (key, seconds) in [(b"a", 30), (b"b", 20), (b"c", 10)] {
            store.put(key, &[0; 1000]).expect("the folder is writable");
            age(key, seconds);
        }
        assert!(store.get(b"a").is_some(), "this is a use");
        store.put(b"d", &[0; 1000]).expect("the folder is writable");
        let there = [b"a", b"b", b"c", b"d"].map(|key| store.get(key).is_some());
        assert_eq!(there, [true, false, true, true]);
        store.put(b"e", &[0; 10_000]).expect("the folder is writable");
        assert_eq!(store.usage().expect("the folder is readable").entries, 1, "the newest stays whatever its size");
    }

    #[test]
    fn file_that_a_dead_process_left_is_removed_and_one_of_a_live_one_is_not() {
        let (_parent, store) = store(1 << 20);
        for (name, age) in [("old.writing", ABANDONED * 2), ("new.writing", Duration::ZERO)] {
            let file = File::create(store.folder.join(name)).expect("the folder is writable");
            file.set_modified(SystemTime::now() - age).expect("the time can be set");
        }
        store.put(b"key", b"value").expect("the folder is writable");
        assert!(!store.folder.join("old.writing").exists() && store.folder.join("new.writing").exists());
        assert_eq!(store.clear().expect("the folder is writable").entries, 1);
        assert!(store.files().expect("the folder is readable").is_empty());
    }

    #[test]
    fn writers_of_one_key_leave_a_whole_entry_at_any_time() {
        let (_parent, store) = store(1 << 20);
        let value = |seed: u8| vec![seed; 5000];
        thread::scope(|scope| {
            for seed in 1..=4 {
                let store = &store;
                scope.spawn(move || {
                    (0..20).for_each(|_| store.put(b"key", &value(seed)).expect("the folder is writable"));
                });
            }
            for _ in 0..200 {
                if let Some(found) = store.get(b"key") {
                    assert_eq!(found, value(found[0]));
                }
            }
        });
        assert_eq!(store.files().expect("the folder is readable").len(), 1);
    }
}
