//! Kernels in Rust: their prebuilt PTX, random kernels, and the compiler with other releases of
//! Rust.
//!
//! The plain tests use prebuilt PTX, and run the compiler of kernels and a small number of random
//! kernels where the toolchain has the parts that they need, as `rust-toolchain.toml` asks for.
//! This step makes sure that it has, and adds what takes longer.

use std::process::{Command, Stdio};

use anyhow::Result;

use super::{Options, Outcome, run_all, xtask};
use crate::cargo::cargo;

/// The target of kernels.
const TARGET: &str = "nvptx64-nvidia-cuda";

/// The parts of a toolchain that compile kernels; `core` is built from `rust-src` where the target
/// is not to be had.
const COMPONENTS: [&str; 2] = ["llvm-tools", "rust-src"];

/// The packages whose build scripts compile kernels, or whose tests do.
const PACKAGES: [&str; 3] = ["--workspace", "--exclude=xtask", "--all-targets"];

/// The releases with which the compiler of kernels must work, besides that of the workspace.
const RELEASES: [&str; 2] = ["stable", "beta"];

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let rustup = Command::new("rustup")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !rustup.is_ok_and(|status| status.success()) {
        return Ok(Outcome::Skipped("no rustup"));
    }
    // Some mirrors do not have the target.
    Command::new("rustup")
        .args(["target", "add", TARGET])
        .status()?;
    let mut components = Command::new("rustup");
    components.args(["component", "add"]).args(COMPONENTS);
    if options.thorough {
        // It is tested with a package of kernels, which takes minutes.
        components.arg("rust-analyzer");
    }
    run_all(&mut components)?;
    run_all(
        cargo()
            .env("CURIUM_KERNELS", "check")
            .arg("check")
            .args(PACKAGES),
    )?;
    test_build_scripts(&mut compiler_tests(None))?;
    if options.thorough {
        for release in RELEASES {
            run_all(
                Command::new("rustup")
                    .args(["toolchain", "install", release, "--profile=minimal"])
                    .args(COMPONENTS.map(|component| format!("--component={component}"))),
            )?;
            let mut tests = compiler_tests(Some(release));
            run_all(&mut tests)?;
            test_build_scripts(&mut tests)?;
        }
        let mut parallel = cargo();
        parallel
            .env("CURIUM_KERNELS", "build")
            .env("CURIUM_KERNELS_TOOLCHAIN", RELEASES[0]);
        parallel.args([
            "test",
            "-p",
            "curium-kernel-build",
            "--test=compile",
            "--",
            "--ignored",
            "--exact",
        ]);
        run_all(parallel.arg("builds_share_one_core"))?;
        run_all(
            cargo()
                .env("CURIUM_KERNELS", "build")
                .env("CURIUM_TEST_MUTANTS", "all")
                .args(["test", "mutants", "-p", "curium-test-kernels"])
                .args([
                    "-p",
                    "curium-test-kernels-hopper",
                    "-p",
                    "curium-test-kernels-sm90",
                ]),
        )?;
        run_all(
            xtask()?
                .env("CURIUM_KERNELS", "build")
                .args(["repeat", "--times=50"]),
        )?;
    }
    Ok(Outcome::Passed)
}

/// Returns a command that tests the compiler of kernels with a release of Rust. The tests
/// themselves are compiled with that of the workspace.
fn compiler_tests(release: Option<&str>) -> Command {
    let mut command = cargo();
    command
        .env("CURIUM_KERNELS", "build")
        .args(["test", "-p", "curium-kernel-build"]);
    if let Some(release) = release {
        command.env("CURIUM_KERNELS_TOOLCHAIN", release);
    }
    command
}

/// Builds whole packages with kernels.
fn test_build_scripts(tests: &mut Command) -> Result<Outcome> {
    run_all(tests.args([
        "--test=build_script",
        "--test=new_package",
        "--",
        "--ignored",
    ]))
}
