//! Tests of the cache: use, damage, sharing, and the size limit.

use std::thread;

use super::*;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A directory that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("curium-{name}-{}", std::process::id()));
        // An earlier run may have left it.
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn cache(&self) -> DiskCache {
        DiskCache::open(&self.0).expect("failed to open the cache")
    }

    fn files(&self) -> TestResult<Vec<PathBuf>> {
        Ok(fs::read_dir(&self.0)?
            .map(|file| file.expect("a file").path())
            .collect())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover folder harms no later test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(name: &str) -> CacheKey {
    CacheKey::new("test").with("name", name.as_bytes())
}

#[test]
fn entry_is_read_by_its_key() -> TestResult {
    let scratch = Scratch::new("put");
    scratch.cache().put(&key("a"), b"contents")?;
    let cache = scratch.cache();
    assert_eq!(
        cache.get(&key("a"))?.as_deref(),
        Some(b"contents".as_slice())
    );
    assert_eq!(cache.get(&key("b"))?, None);
    cache.put(&key("a"), b"other")?;
    assert_eq!(cache.get(&key("a"))?.as_deref(), Some(b"other".as_slice()));
    assert_eq!(cache.usage()?.entries, 1);
    cache.remove(&key("a"))?;
    cache.remove(&key("a"))?;
    assert_eq!(cache.get(&key("a"))?, None);
    Ok(())
}

#[test]
fn key_parts_are_delimited() {
    let joined = CacheKey::new("k").with("a", b"bc").with("d", b"");
    let other = CacheKey::new("k").with("a", b"b").with("cd", b"");
    assert_ne!(
        (joined.as_bytes(), joined.digest()),
        (other.as_bytes(), other.digest())
    );
}

/// An entry with any byte changed or missing is removed and not used.
#[test]
fn damaged_entry_is_removed() -> TestResult {
    let scratch = Scratch::new("broken");
    let cache = scratch.cache();
    let key = key("a");
    cache.put(&key, b"some contents")?;
    let path = cache.path(&key);
    let whole = fs::read(&path)?;
    let changed = (0..whole.len()).map(|index| {
        let mut bytes = whole.clone();
        bytes[index] ^= 0x10;
        bytes
    });
    for bytes in changed.chain((0..whole.len()).map(|len| whole[..len].to_vec())) {
        fs::write(&path, &bytes)?;
        assert_eq!(cache.get(&key)?, None);
        assert!(!path.exists(), "{bytes:?} is removed");
    }
    Ok(())
}

#[test]
fn digest_collision_is_detected() -> TestResult {
    let scratch = Scratch::new("collision");
    let cache = scratch.cache();
    cache.put(&key("a"), b"of a")?;
    fs::rename(cache.path(&key("a")), cache.path(&key("b")))?;
    assert_eq!(cache.get(&key("b"))?, None);
    assert!(cache.path(&key("b")).exists(), "it is whole");
    Ok(())
}

/// The least recently used entries are evicted first.
#[test]
fn old_entries_are_evicted_first() -> TestResult {
    let scratch = Scratch::new("full");
    let contents = [7; 1000];
    let cache = scratch.cache().with_limit(3 * 1200);
    for (name, age) in [("a", 30), ("b", 20), ("c", 10)] {
        cache.put(&key(name), &contents)?;
        let file = File::options().append(true).open(cache.path(&key(name)))?;
        file.set_modified(SystemTime::now() - Duration::from_secs(age))?;
    }
    assert!(cache.get(&key("a"))?.is_some(), "this use counts");
    cache.put(&key("d"), &contents)?;
    let remaining: Vec<_> = ["a", "b", "c", "d"]
        .into_iter()
        .filter(|name| cache.path(&key(name)).exists())
        .collect();
    assert_eq!(remaining, ["a", "c", "d"]);
    cache.put(&key("e"), &[0; 5000])?;
    assert_eq!(cache.usage()?.entries, 3);
    cache.clear()?;
    assert_eq!(cache.usage()?, CacheUsage::default());
    Ok(())
}

/// Creates a file that counts as abandoned.
fn create_old(path: &Path) -> TestResult {
    let file = File::create(path)?;
    file.set_modified(SystemTime::now() - 2 * ABANDONED)?;
    Ok(())
}

/// Old files from dead processes are removed.
#[test]
fn stale_files_are_removed() -> TestResult {
    let scratch = Scratch::new("left");
    let cache = scratch.cache();
    let old = scratch.0.join("1-0.unfinished");
    let new = scratch.0.join("2-0.unfinished");
    for path in [&old, &new] {
        fs::write(path, b"half")?;
    }
    create_old(&old)?;
    cache.put(&key("a"), b"")?;
    assert!(!old.exists() && new.exists());
    create_old(&old)?;
    cache.clear()?;
    assert!(!old.exists() && new.exists());
    Ok(())
}

#[test]
fn same_process_id_keeps_files() -> TestResult {
    let scratch = Scratch::new("number");
    let cache = scratch.cache();
    let of_another: Vec<_> = (0..500)
        .map(|number| {
            scratch
                .0
                .join(format!("{}-{number}.unfinished", std::process::id()))
        })
        .collect();
    for path in &of_another {
        fs::write(path, b"half")?;
    }
    cache.put(&key("a"), b"whole")?;
    assert_eq!(cache.get(&key("a"))?.as_deref(), Some(b"whole".as_slice()));
    assert!(of_another.iter().all(|path| path.exists()));
    Ok(())
}

#[test]
fn readers_see_complete_entries() -> TestResult {
    let scratch = Scratch::new("threads");
    let cache = scratch.cache();
    thread::scope(|scope| {
        for writer in 1..=4 {
            let cache = &cache;
            scope.spawn(move || {
                (0..10).for_each(|_| {
                    cache
                        .put(&key("a"), &vec![writer; 50_000])
                        .expect("write failed");
                });
            });
        }
        for _ in 0..40 {
            if let Some(found) = cache.get(&key("a")).expect("lookup failed") {
                assert!((1..=4).any(|writer| found == vec![writer; 50_000]));
            }
        }
    });
    assert_eq!(scratch.files()?.len(), 1, "nothing is left behind");
    Ok(())
}

#[cfg(unix)]
#[test]
fn cache_is_private() -> TestResult {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = Scratch::new("private");
    let cache = scratch.cache();
    cache.put(&key("a"), b"")?;
    for (path, expected) in [(scratch.0.clone(), 0o700), (cache.path(&key("a")), 0o600)] {
        let metadata = fs::metadata(path)?;
        assert_eq!(metadata.permissions().mode() & 0o777, expected);
    }
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o755))?;
    let error = DiskCache::open(&scratch.0)
        .expect_err("others can read it")
        .to_string();
    assert!(
        error.starts_with("DiskCache::open: ")
            && error.ends_with("(mode 755); set the mode to 700"),
        "{error}"
    );
    Ok(())
}

#[test]
fn impossible_folder_is_named() -> TestResult {
    let scratch = Scratch::new("file");
    fs::write(&scratch.0, b"")?;
    let error = DiskCache::open(&scratch.0)
        .expect_err("it is a file")
        .to_string();
    assert!(
        error.contains(scratch.0.to_str().ok_or("the path is not UTF-8")?),
        "{error}"
    );
    let below = DiskCache::open(scratch.0.join("below"))
        .expect_err("its parent is a file")
        .to_string();
    assert!(below.contains("below"), "{below}");
    fs::remove_file(&scratch.0)?;
    Ok(())
}

#[cfg(unix)]
/// An entry that other users can write is refused.
#[test]
fn writable_entry_is_refused() -> TestResult {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = Scratch::new("written-by-others");
    let cache = scratch.cache();
    cache.put(&key("a"), b"contents")?;
    let file = scratch.files()?.pop().ok_or("no cache entry")?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o622))?;
    let error = cache
        .get(&key("a"))
        .expect_err("others can write it")
        .to_string();
    assert!(
        error.contains("file writable by other users (mode 622)"),
        "{error}"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    assert_eq!(
        cache.get(&key("a"))?.as_deref(),
        Some(b"contents".as_slice())
    );
    Ok(())
}

/// No key of code equals a key of a program.
#[test]
fn kinds_have_their_keys() {
    // SAFETY: nothing is stored under the key.
    let code = unsafe { CacheKey::for_code("ptx") };
    assert!(!code.as_bytes().starts_with(CacheKey::new("ptx").as_bytes()));
    for kind in ["ptx", "code", "", "kind"] {
        let key = CacheKey::new(kind).with("code", b"ptx");
        assert!(
            key != code && !key.as_bytes().starts_with(code.as_bytes()),
            "{kind}"
        );
    }
}
