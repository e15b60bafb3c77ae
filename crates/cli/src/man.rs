//! `curium man`: the man pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::Cli;
use crate::terminal::ColorChoice;

/// Print the man page, or write the pages of all commands
///
/// `curium man | man -l -` shows the page. With --folder, every command gets a page, such as
/// `curium-demo.1`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the pages are written
  1  a folder could not be created, or a file could not be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Folder for the pages, such as ~/.local/share/man/man1
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<()> {
    let Some(folder) = &options.folder else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        return io::stdout()
            .write_all(&page)
            .context("the page could not be written");
    };
    fs::create_dir_all(folder)
        .with_context(|| format!("the folder {} could not be created", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("the pages could not be written to {}", folder.display()))
}
