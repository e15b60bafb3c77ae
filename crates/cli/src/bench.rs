//! `curium bench`: Curium's overhead over C.

mod chart;
mod markdown;
mod report;
mod suite;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use self::chart::CHARTS;
use self::report::Report;
use self::suite::{Comparison, Plan};
use crate::machine::{DeviceChoice, Machine};
use crate::progress::Progress;
use crate::terminal::ColorChoice;

/// The JSON schema of `--json`.
const SCHEMA: &str = include_str!("../schema/bench.schema.json");

/// Compare Curium's speed with that of C
///
/// Launches, graphs, copies and allocations alternate with the same work by direct driver calls, as
/// in C. A row shows both medians with their quartiles, and the ratio of Curium to C round by
/// round. Times on the simulator are not representative of hardware.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  everything is measured
  1  no usable GPU with --device gpu, or a file could not be written
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Measure only ids that contain this text, such as `launch/`, `copy/pinned` or
    /// `allocate/live/1000`; `memory` selects copies, allocation and the calls for a buffer
    #[arg(default_value = "")]
    filter: String,
    /// Device to measure
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// List the ids and measure nothing
    #[arg(long)]
    list: bool,
    /// Measure less: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Rounds of each measurement; each round measures both
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,
    /// Print the figures as JSON (see --schema)
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of --json
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Write the figures as Markdown tables to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write charts (SVG) of bandwidth, launch cost and allocation cost to this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

/// Measures and reports.
pub(crate) fn run(options: &Options, color: ColorChoice) -> Result<()> {
    let mut out = io::stdout().lock();
    if options.schema {
        return out
            .write_all(SCHEMA.as_bytes())
            .context("the schema could not be written");
    }
    if let Some(folder) = &options.svg {
        // An unusable folder is reported before minutes of measurements.
        fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} could not be created", folder.display()))?;
    }
    let (machine, context) = Machine::open(options.device, |driver| {
        Ok(driver.device(0)?.primary_context()?)
    })?;
    machine.announce(false);
    let plan = options.plan(machine.simulated().is_some());
    let ids = suite::ids(&plan);
    ensure!(
        !ids.is_empty(),
        "no id contains {:?}; --list prints all ids",
        options.filter
    );
    if options.list {
        return ids
            .iter()
            .try_for_each(|id| writeln!(out, "{id}"))
            .context("the ids could not be written");
    }
    let progress = Progress::new(
        "measuring",
        u32::try_from(ids.len())?,
        color.on(&io::stderr()),
    );
    let mut comparisons = Vec::new();
    suite::run(&context, &plan, &mut |comparison| {
        comparisons.push(comparison);
        progress.advance(1);
        Ok(())
    })?;
    drop(progress);
    let report = Report::new(&machine, &context, &comparisons)?;
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{report}")?;
    }
    if let Some(path) = &options.markdown {
        fs::write(path, report.markdown())
            .with_context(|| format!("{} could not be written", path.display()))?;
    }
    if let Some(folder) = &options.svg {
        draw(folder, &comparisons, &report.title())?;
    }
    Ok(())
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

/// Draws each chart for which there are measurements.
fn draw(folder: &Path, comparisons: &[Comparison], title: &str) -> Result<()> {
    let title = format!("{title}; medians, and bars from quartile to quartile");
    for chart in CHARTS {
        let Some(svg) = chart.to_svg(comparisons, &title)? else {
            continue;
        };
        let path = folder.join(chart.file);
        fs::write(&path, svg)
            .with_context(|| format!("{} could not be written", path.display()))?;
    }
    Ok(())
}
