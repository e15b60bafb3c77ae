//! `curium bench`: what Curium costs beside C.

mod chart;
mod markdown;
mod report;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use curium_bench::{Comparison, Plan};

use self::chart::CHARTS;
use self::report::Report;
use crate::place::{DeviceChoice, Place};
use crate::progress::Progress;
use crate::terminal::ColorChoice;

/// What `--json` writes, as a JSON schema.
const SCHEMA: &str = include_str!("../schema/bench.schema.json");

/// Measure what Curium costs beside the same work in C
///
/// Launches, graphs, copies and allocations are measured beside direct calls of the driver, as C makes them, in turns. A row shows the
/// median of each, the quartiles, and the ratio of Curium to C round by round. The simulator's times say nothing of hardware.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  all that was asked for is measured
  1  something failed: no GPU though --device gpu, a file that cannot be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Measure only what has this in its id, such as `launch/`, `copy/pinned` or `allocate/live/1000`; `memory` is copies, allocation and
    /// the calls for a buffer
    #[arg(default_value = "")]
    filter: String,
    /// Where it is measured
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Show the ids and measure nothing
    #[arg(long)]
    list: bool,
    /// Measure less of each: some seconds in place of some minutes
    #[arg(long)]
    quick: bool,
    /// Rounds of each measurement; a round measures both
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,
    /// Write the figures as JSON, in the form that --schema shows
    #[arg(long)]
    json: bool,
    /// Write the JSON schema of what --json writes
    #[arg(long, exclusive = true)]
    schema: bool,
    /// File for the same figures as tables of Markdown, one for each that is varied
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Folder for pictures (SVG) of bandwidth over size, launch cost over threads, and allocation cost over live blocks
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

/// Measures and reports.
pub(crate) fn run(options: &Options, color: ColorChoice) -> Result<()> {
    let mut out = io::stdout().lock();
    if options.schema {
        return out.write_all(SCHEMA.as_bytes()).context("the schema could not be written");
    }
    if let Some(folder) = &options.svg {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    let (place, context) = Place::open(options.device, |driver| Ok(driver.device(0)?.primary_context()?))?;
    place.announce(false);
    let plan = options.plan(place.simulated().is_some());
    let ids = curium_bench::ids(&plan);
    ensure!(!ids.is_empty(), "no measurement has {:?} in its id; --list shows them", options.filter);
    if options.list {
        return ids.iter().try_for_each(|id| writeln!(out, "{id}")).context("the ids could not be written");
    }
    let progress = Progress::new("measuring", u32::try_from(ids.len())?, color.on(&io::stderr()));
    let mut comparisons = Vec::new();
    curium_bench::run(&context, &plan, &mut |comparison| {
        comparisons.push(comparison);
        progress.advance(1);
        Ok(())
    })?;
    drop(progress);
    let report = Report::new(&place, &context, &comparisons)?;
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{report}")?;
    }
    if let Some(path) = &options.markdown {
        fs::write(path, report.markdown()).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    options.svg.as_ref().map_or(Ok(()), |folder| draw(folder, &comparisons, &report.title()))
}

impl Options {
    fn plan(&self, simulated: bool) -> Plan {
        let plan = match (simulated, self.quick) {
            (true, _) => Plan::simulator(),
            (false, true) => Plan::quick(),
            (false, false) => Plan::hardware(),
        };
        let plan = match self.rounds {
            Some(rounds) => plan.with_rounds(rounds as usize),
            None => plan,
        };
        plan.with_filter(&self.filter)
    }
}

/// Draws each chart of which something was measured.
fn draw(folder: &Path, comparisons: &[Comparison], title: &str) -> Result<()> {
    let title = format!("{title}; medians, and bars from quartile to quartile");
    for chart in CHARTS {
        let Some(svg) = chart.to_svg(comparisons, &title)? else { continue };
        let path = folder.join(chart.file);
        fs::write(&path, svg).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}
