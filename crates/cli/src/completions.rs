//! `curium completions`: completion scripts for shells.

use std::io;

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Cli;
use crate::terminal::ColorChoice;

/// Print a completion script for a shell
///
/// Example: `curium completions bash > ~/.local/share/bash-completion/completions/curium`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the script is printed
  1  the output could not be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "curium", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(())
}
