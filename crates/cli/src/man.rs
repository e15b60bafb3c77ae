//! `curium man`: the manual of the program.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::Cli;

/// Write the manual as man pages
///
/// `curium man | man -l -` shows the page of the program. With --folder there is a page for every command too, such as `curium-demo.1`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the pages are written
  1  something failed: a folder that cannot be made, a file that cannot be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Folder for the pages, such as ~/.local/share/man/man1
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(folder) = &options.folder else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        return io::stdout().write_all(&page).context("the page could not be written");
    };
    fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("the pages cannot be written to {}", folder.display()))
}
