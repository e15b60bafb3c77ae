//! `curium cache`, run as a program.
#![cfg(unix)]

mod program;

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Output;

fn cache(folder: &Path, command: &str) -> Output {
    let mut program = program::curium();
    program
        .args(["cache", command])
        .env("CURIUM_CACHE_PATH", folder)
        .output()
        .expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn empty_cache_is_shown_with_its_folder() {
    let parent = tempfile::tempdir().expect("a folder can be created");
    let folder = parent.path().join("cache");
    let output = cache(&folder, "show");
    assert_eq!(
        text(&output.stdout),
        format!("{}: no entries\nat most 1.0 GiB\n", folder.display())
    );
}

#[test]
fn cleared_cache_leaves_other_files_alone() {
    let parent = tempfile::tempdir().expect("a folder can be created");
    let folder = parent.path().join("cache");
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .expect("the folder is writable");
    fs::write(folder.join("0.entry"), [0; 2048]).expect("the folder is writable");
    fs::write(folder.join("notes.txt"), "mine").expect("the folder is writable");
    assert!(text(&cache(&folder, "show").stdout).contains("1 entry, 2.0 KiB"));
    assert!(text(&cache(&folder, "clear").stdout).contains("removed 1 entry, 2.0 KiB"));
    assert!(text(&cache(&folder, "show").stdout).contains(": no entries"));
    assert!(folder.join("notes.txt").exists());
}

#[test]
fn cache_writable_by_others_is_an_error() {
    let parent = tempfile::tempdir().expect("a folder can be created");
    let folder = parent.path().join("cache");
    fs::create_dir(&folder).expect("the folder is writable");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let output = cache(&folder, "show");
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("mode 755"),
        "{}",
        text(&output.stderr)
    );
}
