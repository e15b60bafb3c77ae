//! `cargo xtask repeat`: runs the tests of kernels in Rust many times, after builds from clean and
//! in parallel.
//!
//! It finds what fails once in many runs: builds that depend on what was there before, and tests
//! that depend on each other.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::cargo::{self, Artifact};

/// The package with the kernels and their tests.
const PACKAGE: &str = "curium-test-kernels";

/// The folder in which the build scripts of the development profile compile kernels.
const DEVICE_BUILDS: &str = "debug/curium-kernels";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The number of runs of all tests.
    #[arg(long, default_value_t = 50, value_name = "RUNS")]
    times: u32,
    /// The number of these that begin with a build of the kernels from clean.
    #[arg(long, default_value_t = 5, value_name = "BUILDS")]
    clean: u32,
    /// The number of runs at the same time.
    #[arg(long, default_value_t = 2, value_name = "PROCESSES")]
    parallel: u32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut programs = Vec::new();
    let mut builds = Vec::new();
    let mut runs = Vec::new();
    let mut failures = Vec::new();
    let mut rounds = 0;
    while (runs.len() as u32) < options.times {
        if rounds < options.clean || programs.is_empty() {
            let start = Instant::now();
            if rounds < options.clean {
                clean()?;
            }
            programs = build()?;
            builds.push(start.elapsed());
        }
        rounds += 1;
        let count = options.parallel.min(options.times - runs.len() as u32);
        for (time, output) in run_at_once(&programs, count)? {
            runs.push(time);
            failures.extend(output);
        }
        println!("{} runs, {} failures", runs.len(), failures.len());
    }
    describe("builds", &mut builds);
    describe("runs", &mut runs);
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

/// Removes the compiled kernels, their intermediate files, and the crates that were compiled for
/// the GPU.
fn clean() -> Result<()> {
    let status = cargo::cargo()
        .args(["clean", "--quiet", "--package", PACKAGE])
        .status()
        .context("cargo cannot be run")?;
    ensure!(status.success(), "cargo clean failed");
    let folder = cargo::target_folder()?.join(DEVICE_BUILDS);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    Ok(())
}

/// Builds the tests, and returns their programs.
fn build() -> Result<Vec<Artifact>> {
    let mut artifacts = cargo::build(&["test", "--no-run", "--package", PACKAGE], &[])?;
    artifacts.retain(|artifact| artifact.kind == "test");
    ensure!(!artifacts.is_empty(), "{PACKAGE} has no tests");
    Ok(artifacts)
}

/// Runs the programs `count` times at once. Returns the time of each run, and the output of the
/// programs that failed.
fn run_at_once(programs: &[Artifact], count: u32) -> Result<Vec<(Duration, Vec<String>)>> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..count {
            threads.push(scope.spawn(|| run_all(programs)));
        }
        let runs = threads
            .into_iter()
            .map(|thread| thread.join().expect("a run returns its errors"));
        runs.collect()
    })
}

fn run_all(programs: &[Artifact]) -> Result<(Duration, Vec<String>)> {
    let start = Instant::now();
    let mut failures = Vec::new();
    for program in programs {
        let output = Command::new(&program.file)
            .current_dir(crate::root().join("tests/rust-kernels"))
            .output()
            .with_context(|| program.file.display().to_string())?;
        if !output.status.success() {
            failures.push(format!(
                "{}: {}\n{}{}",
                name(&program.file),
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    Ok((start.elapsed(), failures))
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Prints the number of times, their least, median and greatest.
fn describe(name: &str, times: &mut [Duration]) {
    times.sort();
    let (Some(least), Some(greatest)) = (times.first(), times.last()) else {
        return;
    };
    let median = times[times.len() / 2];
    println!(
        "{name}: {}, {least:.1?} to {greatest:.1?}, median {median:.1?}",
        times.len()
    );
}
