//! The platforms and the oldest Rust that the libraries support.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Options, Outcome, run_all};
use crate::cargo::{cargo, target_folder};

/// Every platform besides the one that runs this program. The standard library of each is a
/// component that rustup installs.
const TARGETS: &[&str] = &[
    "x86_64-pc-windows-msvc",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-gnu",
    "x86_64-apple-darwin",
];

/// The number of these platforms that are always checked: the system that differs most. A thorough
/// run checks the others, too.
const ALWAYS: usize = 1;

/// The crates that a user builds. None of them compiles C, so cross-compilation requires no C
/// compiler.
const LIBRARIES: &[&str] = &[
    "curium-format",
    "curium-sys",
    "curium-driver",
    "curium-memory",
    "curium-interop",
    "curium-diagnostics",
    "curium-nvrtc",
    "curium-blas",
    "curium-rand",
    "curium-fft",
    "curium-kernel",
    "curium-kernel-build",
    "curium-nccl",
    "curium-macros",
    "curium-ptx",
    "curium-sim",
    "curium-sim-libraries",
    "curium",
];

/// The program and the runtime for other programs, which are not checked with the oldest Rust.
const OTHERS: [&str; 4] = ["-p", "curium-cli", "-p", "curium-cudart"];

/// Checks the libraries for every target, with warnings as errors, and with the oldest supported
/// Rust.
///
/// A thorough run checks more targets, tests the libraries with that Rust, which takes minutes, and
/// runs the tests of other targets under emulators like `cargo xtask targets`, which takes half an
/// hour.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let count = if options.thorough {
        TARGETS.len()
    } else {
        ALWAYS
    };
    for target in &TARGETS[..count] {
        check(target).with_context(|| format!("the libraries on {target}"))?;
    }
    let oldest = oldest_rust()?;
    with_oldest(&oldest, options.thorough)
        .with_context(|| format!("the libraries with Rust {oldest}"))?;
    if options.thorough {
        crate::targets::run(&crate::targets::Options::default())?;
    }
    Ok(Outcome::Passed)
}

fn check(target: &str) -> Result<Outcome> {
    println!("{target}");
    run_all(
        Command::new("rustup")
            .args(["target", "add", target])
            .current_dir(crate::root()),
    )?;
    let mut clippy = cargo();
    clippy
        .args(["clippy", "--quiet", "--all-features", "--target", target])
        .args(packages())
        .args(OTHERS);
    run_all(clippy.args(["--", "-D", "warnings"]))
}

/// Returns the `rust-version` of the workspace.
fn oldest_rust() -> Result<String> {
    let manifest: toml::Table =
        toml::from_str(&std::fs::read_to_string(crate::root().join("Cargo.toml"))?)?;
    let version = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("rust-version")?.as_str());
    Ok(version
        .context("the workspace names no rust-version")?
        .to_owned())
}

fn with_oldest(version: &str, is_thorough: bool) -> Result<Outcome> {
    println!("Rust {version}");
    run_all(Command::new("rustup").args([
        "toolchain",
        "install",
        version,
        "--profile",
        "minimal",
        "--no-self-update",
    ]))?;
    let command: &[&str] = if is_thorough {
        &["test"]
    } else {
        &["check", "--tests"]
    };
    let mut cargo = Command::new("rustup");
    cargo
        .args(["run", version, "cargo"])
        .args(command)
        .arg("--all-features")
        .args(packages())
        .args(["-p", "curium-test-units"]);
    run_all(
        cargo
            .current_dir(crate::root())
            .env("CARGO_TARGET_DIR", target_folder()?.join("oldest")),
    )
}

fn packages() -> impl Iterator<Item = &'static str> {
    LIBRARIES.iter().flat_map(|package| ["-p", package])
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Manifest;
    use super::*;

    #[test]
    fn oldest_rust_is_read_from_the_workspace() {
        let oldest = oldest_rust().expect("the manifest names it");
        assert!(oldest.starts_with("1."), "{oldest}");
    }

    #[test]
    fn documentation_covers_every_platform() {
        for manifest in Manifest::all().expect("the manifests are readable") {
            let listed = manifest
                .get(&["package", "metadata", "docs", "rs", "targets"])
                .and_then(toml::Value::as_array);
            let listed: Vec<_> = listed
                .into_iter()
                .flatten()
                .filter_map(toml::Value::as_str)
                .collect();
            if LIBRARIES.contains(&manifest.name()) {
                let supported = listed.iter().filter(|target| {
                    TARGETS.contains(*target) || **target == "x86_64-unknown-linux-gnu"
                });
                assert_eq!(supported.count(), 4, "{}: {listed:?}", manifest.name());
            }
        }
    }

    #[test]
    fn release_has_a_binary_for_each_target() {
        let path = crate::root().join("dist-workspace.toml");
        let settings: toml::Table =
            toml::from_str(&std::fs::read_to_string(path).expect("failed to read the settings"))
                .expect("TOML");
        let listed = settings
            .get("dist")
            .and_then(|dist| dist.get("targets")?.as_array())
            .expect("no list of targets");
        let mut listed: Vec<_> = listed.iter().filter_map(toml::Value::as_str).collect();
        let mut expected = [TARGETS, &["x86_64-unknown-linux-gnu"]].concat();
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected);
    }

    #[test]
    fn published_crates_are_libraries_or_programs() {
        let manifests = Manifest::all().expect("the manifests are readable");
        let others = ["curium-cli", "curium-cudart"];
        let mut expected: Vec<_> = manifests
            .iter()
            .map(Manifest::name)
            .filter(|name| !others.contains(name))
            .collect();
        let mut listed = LIBRARIES.to_vec();
        expected.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, expected);
    }
}
