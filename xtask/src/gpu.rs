//! `cargo xtask gpu`: everything that runs on a machine with a GPU and without Rust, in one folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo::{self, Artifact};

/// What runs the bundle.
const SCRIPT: &str = include_str!("gpu/run.sh");

/// The packages whose tests have something to say about a real driver.
const TEST_PACKAGES: &[&str] = &["curium-sys", "curium-driver", "curium-memory", "curium-tests"];

/// Tests that call cargo or rustc.
const NEED_RUST: &[&str] = &["compile_fail", "dependencies", "load", "ui"];

/// What travels to the machine at once.
const LIMIT: u64 = 60 * 1024 * 1024;

/// Builds the bundle.
pub(crate) fn run() -> Result<()> {
    let root = crate::root().join(".gpu");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut size = 0;
    for (folder, programs) in [("tests", tests()?), ("benches", benches()?), ("examples", examples()?), ("bin", cli()?)]
    {
        for program in programs {
            size += add(&root.join(folder), &program)?;
        }
    }
    let script = root.join("run.sh");
    fs::write(&script, SCRIPT)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    println!("{:.1} MiB in .gpu; run .gpu/run.sh on the machine", size as f64 / 1024.0 / 1024.0);
    ensure!(size <= LIMIT, "the bundle is larger than {} MiB", LIMIT / 1024 / 1024);
    Ok(())
}

fn tests() -> Result<Vec<Artifact>> {
    let mut arguments = vec!["test", "--no-run", "--release", "--lib", "--tests"];
    arguments.extend(TEST_PACKAGES.iter().flat_map(|package| ["-p", *package]));
    let mut built = cargo::build(&arguments, &[])?;
    built.retain(|artifact| !NEED_RUST.contains(&name(&artifact.file).as_str()));
    Ok(built)
}

fn benches() -> Result<Vec<Artifact>> {
    let arguments = ["bench", "--no-run", "--benches", "--workspace", "--exclude", "xtask"];
    built_of_kind(&arguments, "bench")
}

fn examples() -> Result<Vec<Artifact>> {
    let arguments = ["build", "--release", "--examples", "--workspace", "--exclude", "xtask"];
    built_of_kind(&arguments, "example")
}

fn cli() -> Result<Vec<Artifact>> {
    built_of_kind(&["build", "--release", "-p", "curium-cli"], "bin")
}

fn built_of_kind(arguments: &[&str], kind: &str) -> Result<Vec<Artifact>> {
    let mut built = cargo::build(arguments, &[])?;
    built.retain(|artifact| artifact.kind == kind);
    Ok(built)
}

/// Copies a program without its symbols, under its name without cargo's hash; returns its size.
fn add(folder: &Path, artifact: &Artifact) -> Result<u64> {
    fs::create_dir_all(folder)?;
    let path = folder.join(name(&artifact.file));
    ensure!(!path.exists(), "two programs are called {}", path.display());
    let status = Command::new("strip").arg("-o").arg(&path).arg(&artifact.file).status().context("strip is needed")?;
    ensure!(status.success(), "strip failed on {}", artifact.file.display());
    let size = fs::metadata(&path)?.len();
    println!(
        "{:8.1} MiB  {}",
        size as f64 / 1024.0 / 1024.0,
        PathBuf::from(folder.file_name().unwrap_or_default()).join(name(&artifact.file)).display()
    );
    Ok(size)
}

/// The file's name without the 16 digits that cargo adds.
fn name(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_program_has_no_hash() {
        assert_eq!(name(Path::new("/t/deps/contract-8063822a6a462ca2")), "contract");
        assert_eq!(name(Path::new("/t/release/curium")), "curium");
        assert_eq!(name(Path::new("/t/release/saxpy-managed")), "saxpy-managed");
    }

    #[test]
    fn script_is_valid_bash() {
        let path = crate::root().join("xtask/src/gpu/run.sh");
        let output = Command::new("bash").arg("-n").arg(path).output().expect("bash runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
