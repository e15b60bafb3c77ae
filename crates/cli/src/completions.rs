//! `curium completions`: what a shell needs to complete command lines.

use std::io;

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Cli;

/// Write the completions of command lines for a shell
///
/// Such as `curium completions bash > ~/.local/share/bash-completion/completions/curium`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  they are written
  1  something failed: the output cannot be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "curium", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(())
}
