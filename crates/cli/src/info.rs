//! `curium info`: the driver and the devices of this machine.

mod report;
mod tables;

use std::io::{self, Write as _};

use anyhow::{Context as _, Result, ensure};

use self::report::Report;
use self::tables::Tables;
use crate::machine::{DeviceChoice, Machine};
use crate::terminal::ColorChoice;

/// The JSON schema of `--json`. Its field `schema` counts the incompatible changes.
const SCHEMA: &str = include_str!("../schema/info.schema.json");

/// Show the driver, the devices and the compilers
///
/// Prints the properties of each device, their connections, and the functions that the driver
/// lacks.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the report is printed
  1  no usable GPU with --device gpu, or no device
  2  the command line is wrong

`curium doctor` explains problems with the driver.")]
pub(crate) struct Options {
    /// Driver whose devices are shown
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Print the report as JSON (see --schema)
    #[arg(long, conflicts_with_all = ["attributes", "missing"])]
    json: bool,
    /// Print the JSON schema of --json
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Include every attribute of every device
    #[arg(long)]
    attributes: bool,
    /// Include every function that the driver lacks
    #[arg(long)]
    missing: bool,
}

/// Collects the report and prints it.
pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<()> {
    let mut out = io::stdout().lock();
    if options.schema {
        return out
            .write_all(SCHEMA.as_bytes())
            .context("the schema could not be written");
    }
    let (machine, ()) = Machine::open(options.device, |driver| {
        ensure!(
            driver.device_count()? > 0,
            "the driver has no device for this process"
        );
        Ok(())
    })?;
    machine.announce(false);
    let report = Report::new(&machine)?;
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)
    } else {
        let tables = Tables {
            report: &report,
            attributes: options.attributes,
            missing: options.missing,
        };
        write!(out, "{tables}")
    }
    .context("the report could not be written")
}
