//! `curium cache`, run as a program.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Output;

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn run_cache(folder: &Path, command: &str) -> TestResult<Output> {
    let mut program = program::curium();
    Ok(program
        .args(["cache", command])
        .env("CURIUM_CACHE_PATH", folder)
        .output()?)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn empty_cache_shows_its_folder() -> TestResult {
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("cache");
    let output = run_cache(&folder, "show")?;
    assert_eq!(
        lossy(&output.stdout),
        format!("{}: no entries\nat most 1.0 GiB\n", folder.display())
    );
    Ok(())
}

#[test]
fn clear_keeps_other_files() -> TestResult {
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("cache");
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    // Any file with this extension counts as an entry.
    fs::write(folder.join("0.entry"), [0; 2048])?;
    fs::write(folder.join("notes.txt"), "mine")?;
    assert!(lossy(&run_cache(&folder, "show")?.stdout).contains("1 entry, 2.0 KiB"));
    assert!(lossy(&run_cache(&folder, "clear")?.stdout).contains("removed 1 entry, 2.0 KiB"));
    assert!(lossy(&run_cache(&folder, "show")?.stdout).contains(": no entries"));
    assert!(folder.join("notes.txt").exists());
    Ok(())
}

#[test]
fn cache_accessible_to_others_is_refused() -> TestResult {
    let parent = tempfile::tempdir()?;
    let folder = parent.path().join("cache");
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
    let output = run_cache(&folder, "show")?;
    assert!(!output.status.success());
    assert!(
        lossy(&output.stderr).contains("mode 755"),
        "{}",
        lossy(&output.stderr)
    );
    Ok(())
}
