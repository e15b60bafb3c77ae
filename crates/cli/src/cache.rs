//! `curium cache`: what is kept of what was compiled.

use std::io::{self, Write as _};

use anyhow::Result;
use curium::driver::{CacheUsage, DiskCache};

use crate::bytes::size;
use crate::count::counted;

/// Show or clear the cache of what was compiled at run time
///
/// It is where the variable `CURIUM_CACHE_PATH` says, else in the user's folder for caches.
#[derive(clap::Subcommand)]
#[command(after_help = "\
Exit codes:
  0  it is shown or cleared
  1  something failed: a folder that others may use, a file that cannot be removed
  2  the command line is wrong")]
pub(crate) enum Command {
    /// Say where the cache is and how much it holds
    Show,
    /// Remove everything in it
    Clear,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    let cache = DiskCache::of_user()?;
    let usage = cache.usage()?;
    let mut out = io::stdout().lock();
    match command {
        Command::Show => {
            writeln!(out, "{}: {}", cache.folder().display(), describe(usage))?;
            writeln!(out, "at most {}", size(DiskCache::DEFAULT_LIMIT))?;
        }
        Command::Clear => {
            cache.clear()?;
            writeln!(out, "{}: removed {}", cache.folder().display(), describe(usage))?;
        }
    }
    Ok(())
}

fn describe(usage: CacheUsage) -> String {
    match usage.entries {
        0 => "nothing".to_owned(),
        entries => format!("{}, {}", counted(entries, "entry", "entries"), size(usage.bytes)),
    }
}
