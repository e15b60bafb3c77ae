//! `curium mem`: charts of an allocation log.

mod chart;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use curium::memory::diagnostics::{AllocationLog, CacheSample, EventKind, Snapshot, UsageSample};

use self::chart::Chart;
use crate::bytes::read_file;
use crate::count::counted;
use crate::terminal::ColorChoice;

/// The maximum size of an allocation log in bytes.
const MAX_LOG: u64 = 1 << 30;

/// Draw memory over time from an allocation log
///
/// The chart shows the memory in use and the fragmentation in a caching allocator. The resource
/// `AllocationRecorder` writes such logs.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the chart is written
  1  the log could not be read, or a file could not be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Allocation log
    log: PathBuf,
    /// Output file (SVG), which is overwritten
    #[arg(long, short, default_value = "curium-mem.svg", value_name = "FILE")]
    output: PathBuf,
    /// Width of the chart in pixels
    #[arg(long, default_value_t = 1200, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(200..=20_000))]
    width: u32,
    /// Height of the chart in pixels
    #[arg(long, default_value_t = 800, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(200..=20_000))]
    height: u32,
    /// Segment size of the simulated caching allocator in MiB
    #[arg(long, default_value_t = 32, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    segment: u64,
    /// Write a snapshot for PyTorch's memory viewer to this file
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
}

/// The summary of a log.
struct Summary {
    allocations: usize,
    frees: usize,
    failures: usize,
    peak: UsageSample,
    left: UsageSample,
    reserved: u64,
}

/// Reads the log, draws the chart and prints a summary.
pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<()> {
    let log = read(&options.log)?;
    ensure!(
        !log.events().is_empty(),
        "{} contains no event",
        options.log.display()
    );
    let usage = log.usage();
    let cache = log.simulate_caching(usize::try_from(options.segment << 20)?);
    let chart = Chart {
        usage: &usage,
        cache: &cache,
        size: (options.width, options.height),
    };
    write(&options.output, chart.to_svg()?.as_bytes())?;
    if let Some(path) = &options.snapshot {
        write(path, &Snapshot::new(0, log.events().to_vec()).to_pickle())?;
    }
    let mut out = io::stdout().lock();
    Summary::new(&log, &usage, &cache).print(&mut out)?;
    for path in [Some(&options.output), options.snapshot.as_ref()]
        .into_iter()
        .flatten()
    {
        writeln!(out, "wrote    {}", path.display())?;
    }
    Ok(())
}

impl Summary {
    fn new(log: &AllocationLog, usage: &[UsageSample], cache: &[CacheSample]) -> Self {
        Self {
            allocations: count(log, EventKind::Allocate),
            frees: count(log, EventKind::Free),
            failures: count(log, EventKind::Fail),
            peak: usage
                .iter()
                .copied()
                .max_by_key(|sample| sample.live_bytes)
                .unwrap_or_default(),
            left: usage.last().copied().unwrap_or_default(),
            reserved: cache.last().map_or(0, |sample| sample.reserved_bytes),
        }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            allocations,
            frees,
            failures,
            peak,
            left,
            reserved,
        } = self;
        let allocations = counted(*allocations, "allocation", "allocations");
        let frees = counted(*frees, "free", "frees");
        writeln!(
            out,
            "{allocations}, {frees}, {}",
            counted(*failures, "failure", "failures")
        )?;
        writeln!(
            out,
            "peak     {} in {}",
            mebibytes(peak.live_bytes),
            counted(peak.live, "block", "blocks")
        )?;
        writeln!(
            out,
            "at end   {} in {}",
            mebibytes(left.live_bytes),
            counted(left.live, "block", "blocks")
        )?;
        writeln!(out, "cache    {} reserved", mebibytes(*reserved))
    }
}

fn read(path: &Path) -> Result<AllocationLog> {
    let text = read_file(path, MAX_LOG)
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
        .with_context(|| format!("the log {} could not be read", path.display()))?;
    text.parse()
        .with_context(|| format!("{} is not an allocation log", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("{} could not be written", path.display()))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn count(log: &AllocationLog, kind: EventKind) -> usize {
    log.events()
        .iter()
        .filter(|event| event.kind == kind)
        .count()
}
