//! The commands that require the feature `full`, in a program without it.

use std::env;
use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::terminal::ColorChoice;

/// Only in a build with `--features full`
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  1  this build lacks the command
  2  the command line is wrong")]
pub(crate) struct Options {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Reports how to build a program that has the command.
pub(crate) fn run<T>(_: &Options, _: ColorChoice) -> Result<T> {
    let arguments: Vec<_> = env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let arguments = arguments.join(" ");
    bail!(
        "`curium {arguments}`: not in this build; build it with `--features full`, as in `cargo run --release --features full -- {arguments}`"
    )
}
