//! `curium info`: what this machine offers.

mod report;
mod tables;

use std::io::{self, Write as _};

use anyhow::{Context as _, Result, ensure};

use self::report::Report;
use self::tables::Tables;
use crate::place::{DeviceChoice, Place};

/// What `--json` writes, as a JSON schema. Its field `schema` counts the changes that a reader has to know of.
const SCHEMA: &str = include_str!("../schema/info.schema.json");

/// Show the devices, the driver, and the compilers that were found
///
/// That is what each device offers, how they are connected, and which functions the driver lacks.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  there is a device, and all of it is shown
  1  something failed: no GPU though --device gpu
  2  the command line is wrong

Whatever goes wrong with the driver, `curium doctor` explains.")]
pub(crate) struct Options {
    /// Whose devices are shown
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Write all of it as JSON, in the form that --schema shows
    #[arg(long, conflicts_with_all = ["attributes", "missing"])]
    json: bool,
    /// Write the JSON schema of what --json writes
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Show every attribute of every device
    #[arg(long)]
    attributes: bool,
    /// Show every function that the driver lacks
    #[arg(long)]
    missing: bool,
}

/// Gathers what there is and shows it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut out = io::stdout().lock();
    if options.schema {
        return out.write_all(SCHEMA.as_bytes()).context("the schema could not be written");
    }
    let (place, ()) = Place::open(options.device, |driver| {
        ensure!(driver.device_count()? > 0, "the driver has no device for this process");
        Ok(())
    })?;
    place.announce(false);
    let report = Report::of(&place)?;
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)
    } else {
        let tables = Tables { report: &report, attributes: options.attributes, missing: options.missing };
        write!(out, "{tables}")
    }
    .context("the report could not be written")
}
