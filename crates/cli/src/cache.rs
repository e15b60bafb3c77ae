//! `curium cache`: what is kept of what was compiled.

use std::io::{self, Write as _};

use anyhow::Result;
use curium::driver::{CacheUsage, DiskCache};

/// Shows or clears the cache of what was compiled at run time.
#[derive(clap::Subcommand)]
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
        1 => format!("1 entry, {}", size(usage.bytes)),
        entries => format!("{entries} entries, {}", size(usage.bytes)),
    }
}

/// Bytes in the largest unit that leaves a number of at least one.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_fits() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(DiskCache::DEFAULT_LIMIT), "1.0 GiB");
    }
}
