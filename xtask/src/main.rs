//! The development commands of Curium: generated files, checks and builds.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command-line program"
)]

mod bindings;
mod build_times;
mod cargo;
mod ci;
mod compare;
mod cost;
mod gpu;
mod grammar;
mod kernels;
mod kernels_random;
mod map;
mod nvrtc;
mod outside;
mod package;
mod performance;
mod repeat;
mod sim;
mod stale;
mod support;
mod targets;
mod version;
mod versions;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Curium's development commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate the bindings, or compare them with every CUDA version.
    #[command(subcommand)]
    Bindings(bindings::Command),
    /// Compile the test kernels to PTX.
    Kernels(kernels::Options),
    /// Compare random kernels in Rust with an interpreter.
    KernelsRandom(kernels_random::Options),
    /// Bundle tests, benchmarks and the program for a machine with a GPU and without Rust.
    Gpu,
    /// Measure how long builds of kernels in Rust take.
    BuildTimes,
    /// Count the instructions of a launch, and compare them with those of C.
    Cost,
    /// Compare Curium's speed with that of other CUDA crates.
    Compare(compare::Options),
    /// Build the simulated driver as `libcuda.so.1`, with its libraries under their names, such as
    /// `libcublas.so.13`.
    Sim(sim::Options),
    /// Run other projects' programs and their tests on the simulated driver.
    Outside(outside::Options),
    /// Compare the PTX that the simulator accepts with that of ptxas.
    Grammar(grammar::Options),
    /// Generate or check the support table of driver functions.
    Support(support::Options),
    /// Write or check the tables of docs/performance.md.
    Performance(performance::Options),
    /// Run the tests of kernels in Rust many times, from clean and in parallel.
    Repeat(repeat::Options),
    /// Generate the table of the versions of CUDA and PTX, or compare it with ptxas.
    Versions(versions::Options),
    /// Draw or check the picture of the crates.
    Map(map::Options),
    /// Run the tests on other platforms, under emulators.
    Targets(targets::Options),
    /// Run every check that a change must pass.
    Ci(ci::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Bindings(command) => bindings::run(command),
        Command::Kernels(options) => kernels::run(&options),
        Command::KernelsRandom(options) => kernels_random::run(&options),
        Command::Gpu => gpu::run(),
        Command::BuildTimes => build_times::run(),
        Command::Cost => cost::run(),
        Command::Compare(options) => compare::run(&options),
        Command::Sim(options) => sim::run(&options),
        Command::Outside(options) => outside::run(&options),
        Command::Grammar(options) => grammar::run(&options),
        Command::Support(options) => support::run(&options),
        Command::Performance(options) => performance::run(&options),
        Command::Repeat(options) => repeat::run(&options),
        Command::Versions(options) => versions::run(&options),
        Command::Map(options) => map::run(&options),
        Command::Targets(options) => targets::run(&options),
        Command::Ci(options) => ci::run(&options),
    }
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is in the workspace")
        .to_path_buf()
}
