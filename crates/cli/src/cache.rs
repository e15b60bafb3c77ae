//! `curium cache`: the disk cache of compiled code.

use std::io::{self, Write as _};

use anyhow::Result;
use curium::driver::{CacheUsage, DiskCache};

use crate::bytes::size;
use crate::count::counted;
use crate::terminal::ColorChoice;

/// Show or clear the disk cache of compiled code
///
/// The cache is in the folder that CURIUM_CACHE_PATH names, or in the user's cache folder.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the cache is shown or cleared
  1  other users can access the folder, or a file could not be removed
  2  the command line is wrong")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print the folder and the size of the cache
    Show,
    /// Remove all entries
    Clear,
}

pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<()> {
    let cache = DiskCache::for_user()?;
    let usage = cache.usage()?;
    let mut out = io::stdout().lock();
    match options.command {
        Command::Show => {
            writeln!(out, "{}: {}", cache.folder().display(), describe(usage))?;
            writeln!(out, "at most {}", size(DiskCache::DEFAULT_LIMIT))?;
        }
        Command::Clear => {
            cache.clear()?;
            writeln!(
                out,
                "{}: removed {}",
                cache.folder().display(),
                describe(usage)
            )?;
        }
    }
    Ok(())
}

fn describe(usage: CacheUsage) -> String {
    match usage.entries {
        0 => "no entries".to_owned(),
        entries => format!(
            "{}, {}",
            counted(entries, "entry", "entries"),
            size(usage.bytes)
        ),
    }
}
