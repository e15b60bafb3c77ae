//! `cargo xtask build-times`: measures how long builds of kernels in Rust take.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};

use crate::cargo;

/// The crate of kernels, and the files that a change touches.
const PACKAGE: &str = "curium-test-kernels";
const FOLDER: &str = "tests/rust-kernels";
const SOURCE: &str = "tests/rust-kernels/src/algorithms.rs";

/// The device crate and the compiler of kernels, whose own builds are not counted.
const DEPENDENCIES: [&str; 2] = ["curium-kernel", "curium-kernel-build"];

pub(crate) fn run() -> Result<()> {
    let folder = cargo::target_folder()?.join("build-times");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // The host's dependencies are the same with and without kernels in Rust.
    for package in DEPENDENCIES {
        build(&folder, package)?;
    }
    let first = build(&folder, PACKAGE)?;
    let unchanged = build(&folder, PACKAGE)?;
    let source = crate::root().join(SOURCE);
    let file = File::options()
        .append(true)
        .open(&source)
        .with_context(|| source.display().to_string())?;
    file.set_modified(SystemTime::now())?;
    let changed = build(&folder, PACKAGE)?;
    println!("builds of {PACKAGE}, {} kernels:", kernels()?);
    for (name, time) in [
        ("first", first),
        ("unchanged", unchanged),
        ("changed", changed),
    ] {
        println!("{name:12} {:6.1} s", time.as_secs_f64());
    }
    for file in images(&folder)? {
        let bytes = fs::metadata(&file)?.len();
        let name = file.file_name().unwrap_or_default().display();
        println!("{name}: {} KiB", bytes.div_ceil(1024));
    }
    Ok(())
}

/// Builds a package in a folder of its own, and returns the time.
fn build(folder: &Path, package: &str) -> Result<Duration> {
    let begin = Instant::now();
    let status = cargo::cargo()
        .args(["build", "--quiet", "-p", package])
        .env("CARGO_TARGET_DIR", folder)
        .env("CURIUM_KERNELS", "build")
        .status()
        .context("cargo cannot be run")?;
    ensure!(status.success(), "{package} does not build");
    Ok(begin.elapsed())
}

/// Returns the number of kernels of the package.
fn kernels() -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(crate::root().join(FOLDER).join("src"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path)?;
            count += text
                .lines()
                .filter(|line| line.trim() == "#[kernel]")
                .count();
        }
    }
    Ok(count)
}

/// Returns the PTX files that the package embeds.
fn images(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut images = Vec::new();
    for entry in fs::read_dir(folder.join("debug/build"))? {
        let out = entry?.path().join("out");
        for file in fs::read_dir(&out).into_iter().flatten() {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "ptx") {
                images.push(path);
            }
        }
    }
    Ok(images)
}
