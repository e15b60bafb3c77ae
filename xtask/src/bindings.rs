//! `cargo xtask bindings`: the generated parts of `curium-sys` and of the simulated libraries, and their comparison with every CUDA
//! version.

mod allowed;
mod check;
mod difference;
mod generate;
mod header;
mod layout;
mod libraries;
mod matrix;
mod names;
mod removed;
mod routines;
mod since;
mod structure;
mod surface;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Subcommand;

pub(crate) use self::since::split_suffix;
use crate::package::Pins;
use crate::version::Version;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write the `generated` folders of `crates` from the pinned headers.
    Generate,
    /// Compare every CUDA version with the generated files.
    Check(check::Options),
    /// Print the path of a pinned cuda.h, the newest one unless a version is given.
    Header {
        #[arg(long, value_name = "VERSION")]
        cuda: Option<Version>,
    },
}

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Generate => generate::run(),
        Command::Check(options) => check::run(&options),
        Command::Header { cuda } => print_header(cuda),
    }
}

/// Returns the functions of the generated list, with the version that introduced it.
pub(crate) fn functions() -> Result<BTreeMap<String, Version>> {
    let versions = surface::Surface::read_generated(&generate::folder())?.1;
    Ok(versions
        .into_iter()
        .map(|(name, versions)| (name, versions.since))
        .collect())
}

fn print_header(version: Option<Version>) -> Result<()> {
    let pins = Pins::read()?;
    let cuda = version.map_or_else(|| pins.newest(), |version| pins.cuda(version))?;
    println!("{}", cuda.include()?.join("cuda.h").display());
    Ok(())
}
