//! Tests of the cache: use, damage, sharing, and the size limit.

use std::thread;

use super::*;

/// A directory that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("curium-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).unwrap_or_default();
        Self(folder)
    }

    fn cache(&self) -> DiskCache {
        DiskCache::open(&self.0).expect("the folder can be created")
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0)
            .expect("a folder")
            .map(|file| file.expect("a file").path())
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

fn key(name: &str) -> CacheKey {
    CacheKey::new("test").with("name", name.as_bytes())
}

#[test]
fn entry_is_read_under_its_key_only() {
    let scratch = Scratch::new("put");
    scratch
        .cache()
        .put(&key("a"), b"contents")
        .expect("it is written");
    let cache = scratch.cache();
    assert_eq!(
        cache.get(&key("a")).expect("it is read").as_deref(),
        Some(b"contents".as_slice())
    );
    assert_eq!(cache.get(&key("b")).expect("it is no error"), None);
    cache.put(&key("a"), b"other").expect("it is replaced");
    assert_eq!(
        cache.get(&key("a")).expect("it is read").as_deref(),
        Some(b"other".as_slice())
    );
    assert_eq!(cache.usage().expect("it is counted").entries, 1);
    cache.remove(&key("a")).expect("it is removed");
    cache.remove(&key("a")).expect("it is gone already");
    assert_eq!(cache.get(&key("a")).expect("it is no error"), None);
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
fn damaged_entry_is_removed() {
    let scratch = Scratch::new("broken");
    let cache = scratch.cache();
    let key = key("a");
    cache.put(&key, b"some contents").expect("it is written");
    let path = cache.path(&key);
    let whole = fs::read(&path).expect("it is there");
    let changed = (0..whole.len()).map(|index| {
        let mut bytes = whole.clone();
        bytes[index] ^= 0x10;
        bytes
    });
    for bytes in changed.chain((0..whole.len()).map(|len| whole[..len].to_vec())) {
        fs::write(&path, &bytes).expect("the test owns the folder");
        assert_eq!(cache.get(&key).expect("it is no error"), None);
        assert!(!path.exists(), "{bytes:?} is removed");
    }
}

#[test]
fn digest_collision_is_detected() {
    let scratch = Scratch::new("collision");
    let cache = scratch.cache();
    cache.put(&key("a"), b"of a").expect("it is written");
    fs::rename(cache.path(&key("a")), cache.path(&key("b"))).expect("the test owns the folder");
    assert_eq!(cache.get(&key("b")).expect("it is no error"), None);
    assert!(cache.path(&key("b")).exists(), "it is whole");
}

#[test]
fn least_recently_used_entries_are_evicted_first() {
    let scratch = Scratch::new("full");
    let contents = [7; 1000];
    let cache = scratch.cache().with_limit(3 * 1200);
    for (name, age) in [("a", 30), ("b", 20), ("c", 10)] {
        cache.put(&key(name), &contents).expect("it is written");
        let file = File::options()
            .append(true)
            .open(cache.path(&key(name)))
            .expect("it is there");
        file.set_modified(SystemTime::now() - Duration::from_secs(age))
            .expect("the test owns the file");
    }
    assert!(
        cache.get(&key("a")).expect("it is read").is_some(),
        "this use counts"
    );
    cache.put(&key("d"), &contents).expect("it is written");
    let remaining: Vec<_> = ["a", "b", "c", "d"]
        .into_iter()
        .filter(|name| cache.path(&key(name)).exists())
        .collect();
    assert_eq!(remaining, ["a", "c", "d"]);
    cache
        .put(&key("e"), &[0; 5000])
        .expect("what is too large is not kept");
    assert_eq!(cache.usage().expect("it is counted").entries, 3);
    cache.clear().expect("it is cleared");
    assert_eq!(cache.usage().expect("it is counted"), CacheUsage::default());
}

/// Creates a file that counts as abandoned.
fn create_old(path: &Path) {
    let file = File::create(path).expect("the test owns the folder");
    file.set_modified(SystemTime::now() - 2 * ABANDONED)
        .expect("the test owns the file");
}

#[test]
fn old_files_from_dead_processes_are_removed() {
    let scratch = Scratch::new("left");
    let cache = scratch.cache();
    let old = scratch.0.join("1-0.unfinished");
    let new = scratch.0.join("2-0.unfinished");
    for path in [&old, &new] {
        fs::write(path, b"half").expect("the test owns the folder");
    }
    create_old(&old);
    cache.put(&key("a"), b"").expect("it is written");
    assert!(!old.exists() && new.exists());
    create_old(&old);
    cache.clear().expect("it is cleared");
    assert!(!old.exists() && new.exists());
}

#[test]
fn files_written_under_the_same_process_id_are_kept() {
    let scratch = Scratch::new("number");
    let cache = scratch.cache();
    let of_another: Vec<_> = (0..500)
        .map(|number| {
            scratch
                .0
                .join(format!("{}-{number}.unfinished", std::process::id()))
        })
        .collect();
    of_another
        .iter()
        .for_each(|path| fs::write(path, b"half").expect("the test owns the folder"));
    cache
        .put(&key("a"), b"whole")
        .expect("another name is found");
    assert_eq!(
        cache.get(&key("a")).expect("it is read").as_deref(),
        Some(b"whole".as_slice())
    );
    assert!(of_another.iter().all(|path| path.exists()));
}

#[test]
fn concurrent_readers_read_complete_entries() {
    let scratch = Scratch::new("threads");
    let cache = scratch.cache();
    thread::scope(|scope| {
        for writer in 1..=4 {
            let cache = &cache;
            scope.spawn(move || {
                (0..10).for_each(|_| {
                    cache
                        .put(&key("a"), &vec![writer; 50_000])
                        .expect("it is written");
                });
            });
        }
        for _ in 0..40 {
            if let Some(found) = cache.get(&key("a")).expect("it is read") {
                assert!((1..=4).any(|writer| found == vec![writer; 50_000]));
            }
        }
    });
    assert_eq!(scratch.files().len(), 1, "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn folder_and_entries_are_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = Scratch::new("private");
    let cache = scratch.cache();
    cache.put(&key("a"), b"").expect("it is written");
    for (path, expected) in [(scratch.0.clone(), 0o700), (cache.path(&key("a")), 0o600)] {
        let metadata = fs::metadata(path).expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, expected);
    }
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o755))
        .expect("the test owns the folder");
    let error = DiskCache::open(&scratch.0)
        .expect_err("others can read it")
        .to_string();
    assert!(
        error.starts_with("DiskCache::open: ")
            && error.ends_with("(mode 755); set the mode to 700"),
        "{error}"
    );
}

#[test]
fn folder_that_cannot_be_is_an_error_that_names_it() {
    let scratch = Scratch::new("file");
    fs::write(&scratch.0, b"").expect("the folder is writable");
    let error = DiskCache::open(&scratch.0)
        .expect_err("it is a file")
        .to_string();
    assert!(
        error.contains(scratch.0.to_str().expect("the path is text")),
        "{error}"
    );
    let below = DiskCache::open(scratch.0.join("below"))
        .expect_err("its parent is a file")
        .to_string();
    assert!(below.contains("below"), "{below}");
    fs::remove_file(&scratch.0).expect("the test owns the file");
}

#[cfg(unix)]
#[test]
fn entry_writable_by_other_users_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = Scratch::new("written-by-others");
    let cache = scratch.cache();
    cache.put(&key("a"), b"contents").expect("it is written");
    let file = scratch.files().pop().expect("there is an entry");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).expect("the test owns the file");
    let error = cache
        .get(&key("a"))
        .expect_err("others can write it")
        .to_string();
    assert!(
        error.contains("file writable by other users (mode 622)"),
        "{error}"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the test owns the file");
    assert_eq!(
        cache.get(&key("a")).expect("it is private").as_deref(),
        Some(b"contents".as_slice())
    );
}

#[test]
fn code_key_equals_no_program_key() {
    // SAFETY: nothing is stored under the key.
    let code = unsafe { CacheKey::of_code("ptx") };
    assert!(!code.as_bytes().starts_with(CacheKey::new("ptx").as_bytes()));
    for kind in ["ptx", "code", "", "kind"] {
        let key = CacheKey::new(kind).with("code", b"ptx");
        assert!(
            key != code && !key.as_bytes().starts_with(code.as_bytes()),
            "{kind}"
        );
    }
}
