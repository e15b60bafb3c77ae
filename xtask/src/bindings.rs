//! `cargo xtask bindings`: the generated part of `curium-sys`, and its comparison with every CUDA version.

mod generate;
mod header;
mod since;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write `crates/sys/src/generated` from the newest pinned header.
    Generate,
}

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Generate => generate::run(),
    }
}
