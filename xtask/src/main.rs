//! Generates and verifies what is derived from NVIDIA's headers and compilers.
#![expect(clippy::print_stdout, reason = "this is a command-line program")]

mod bindings;
mod kernels;
mod nvrtc;
mod package;
mod stale;
mod version;

use std::path::{Path, PathBuf};

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
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Bindings(command) => bindings::run(command),
        Command::Kernels(options) => kernels::run(&options),
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}
