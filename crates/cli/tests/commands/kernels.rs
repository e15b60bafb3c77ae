//! `curium kernels`, run as a program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::program;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Writes a rustc that reports a version and a sysroot without components.
fn write_rustc(folder: &Path, release: &str) -> TestResult {
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -vV ]; then\n  echo 'rustc {release}'\n  echo 'host: x86_64-unknown-linux-gnu'\n  echo 'release: {release}'\nelse\n  \
         echo {}/toolchains/stable\nfi\n",
        folder.display()
    );
    let path = folder.join("rustc");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Runs `curium kernels build` with a rustc of this version, and returns the error.
fn build_error(release: &str) -> Result<String, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    write_rustc(folder.path(), release)?;
    let output = program::curium()
        .args(["kernels", "build"])
        .arg(folder.path())
        .env("RUSTC", folder.path().join("rustc"))
        .output()?;
    assert!(!output.status.success());
    Ok(String::from_utf8(output.stderr)?)
}

#[test]
fn missing_components_are_named() -> TestResult {
    let error = build_error("1.98.0")?;
    assert!(
        error.contains("`rustup component add llvm-tools rust-src --toolchain stable`"),
        "{error}"
    );
    Ok(())
}

#[test]
fn old_compilers_are_refused() -> TestResult {
    let error = build_error("1.96.0")?;
    assert!(error.contains("kernels need Rust 1.97 or newer"), "{error}");
    assert!(
        error.contains("1.96.0") && error.contains("rustup update"),
        "{error}"
    );
    Ok(())
}

#[test]
fn unknown_architectures() -> TestResult {
    let output = program::curium()
        .args(["kernels", "build", "--target", "sm_61"])
        .output()?;
    let error = String::from_utf8(output.stderr)?;
    assert!(
        !output.status.success() && error.contains("sm_121a"),
        "{error}"
    );
    Ok(())
}
