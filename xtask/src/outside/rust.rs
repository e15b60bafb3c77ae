//! Programs that use other Rust crates: a package of this repository uses each crate, and the
//! crate's own unit tests run in a copy of its published sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::expected::{Expected, Outcomes};
use super::{DEVICES, Folder, python, run_all, with_driver};
use crate::cargo;

/// Runs this repository's program for the crate.
pub(super) fn run(folder: &Folder, name: &str) -> Result<()> {
    let ptx = folder.ptx()?;
    let mut cargo = cargo_with_driver(folder, &folder.sources.join("rust"))?;
    cargo
        .args(["run", "--quiet", "--locked", "--bin", name, "--"])
        .arg(ptx);
    run_all(&mut cargo)
}

/// Runs the unit tests of cudarc for the driver, NVRTC and NCCL.
pub(super) fn test_cudarc(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let features = "std,driver,nvrtc,nccl,f16,cuda-13000,dynamic-loading";
    test(
        folder,
        expected,
        "cudarc",
        &["--no-default-features", "--features", features],
    )
}

/// Runs the unit tests of cust.
pub(super) fn test_cust(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    test(folder, expected, "cust", &[])
}

fn test(folder: &Folder, expected: &Expected, name: &str, options: &[&str]) -> Result<Outcomes> {
    let sources = copied(folder, name, &expected.version)?;
    let mut cargo = cargo_with_driver(folder, &sources)?;
    cargo
        .args(["test", "--quiet", "--lib", "--no-fail-fast"])
        .args(options);
    // Without `--quiet`, each test prints a line. Collectives of several tests on the default
    // streams wait for each other in a circle, so one test runs at a time.
    cargo
        .args(["--", "--test-threads", "1", "--format", "pretty"])
        .envs([DEVICES]);
    cargo.args(expected.left_out.keys().flat_map(|test| ["--skip", test]));
    let output = cargo
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        text.contains("test result:"),
        "the tests of {name} ended early:\n{text}"
    );
    print!("{text}");
    Ok(Outcomes::read(&text))
}

/// Copies the sources of a crate, which cargo has fetched and verified, because tests cannot be
/// built in the registry.
fn copied(folder: &Folder, name: &str, version: &str) -> Result<PathBuf> {
    let to = folder.built.join(format!("{name}-{version}"));
    if to.is_dir() {
        return Ok(to);
    }
    let mut metadata = cargo::cargo();
    metadata.current_dir(folder.sources.join("rust")).args([
        "metadata",
        "--format-version=1",
        "--locked",
    ]);
    let output = metadata.output().context("cargo cannot be run")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let text = String::from_utf8(output.stdout)?;
    let manifest = format!("{name}-{version}/Cargo.toml\"");
    let end = text
        .find(&manifest)
        .with_context(|| format!("cargo fetched no {name} {version}"))?;
    let start = text[..end]
        .rfind('"')
        .context("a path in cargo's output does not begin")?
        + 1;
    let from = Path::new(&text[start..end + manifest.len() - 1]).with_file_name("");
    let work = folder
        .built
        .join(format!("{name}-{version}.{}", std::process::id()));
    copy_folder(&from, &work)?;
    // Makes the copy a workspace of its own, separate from the enclosing one.
    let manifest = work.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(manifest, format!("{text}\n[workspace]\n"))?;
    fs::rename(work, &to)?;
    Ok(to)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns a cargo command in a folder that finds the driver at link time and at run time.
fn cargo_with_driver(folder: &Folder, target: &Path) -> Result<Command> {
    let toolkit = folder.built.join("toolkit");
    let library = toolkit.join("lib64/libcuda.so");
    fs::create_dir_all(library.with_file_name(""))?;
    fs::copy(folder.driver.join("libcuda.so.1"), &library)
        .with_context(|| library.display().to_string())?;
    let mut cargo = cargo::cargo();
    cargo
        .current_dir(target)
        .env("CUDA_LIBRARY_PATH", toolkit)
        .env("CARGO_TARGET_DIR", folder.built.join("target"));
    with_driver(&mut cargo, folder, &[&python::nvrtc(folder)?])?;
    Ok(cargo)
}
