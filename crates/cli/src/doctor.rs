//! `curium doctor`: diagnoses why CUDA does not work on this machine, and suggests fixes.
//!
//! The facts are collected into an [`Environment`], which is plain data, and the checks read nothing else. Each check is therefore tested
//! on made-up machines, and one machine can be examined on another.

mod check;
mod environment;
mod finding;
mod json;
mod ptx;
mod report;
mod survey;
mod trial;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use self::report::Report;
use crate::place::DeviceChoice;
use crate::terminal::ColorChoice;

/// The JSON schema of `--json`.
const SCHEMA: &str = include_str!("../schema/doctor.schema.json");

/// The exit code if CUDA does not work.
const DOES_NOT_WORK: u8 = 3;

/// Check that CUDA works on this machine, and suggest fixes
///
/// Runs a test kernel on every device. Changes nothing on the machine.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  CUDA works: the test kernel passed on every device (there may be notes and warnings)
  1  a file could not be read or written
  2  the command line is wrong
  3  CUDA does not work; the findings explain why")]
pub(crate) struct Options {
    /// Driver to examine; `auto` means `gpu` here
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Check that the driver and the devices accept this PTX file, too
    #[arg(long, value_name = "FILE")]
    ptx: Option<PathBuf>,
    /// Print the findings as JSON (see --schema)
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of --json
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Save the facts about this machine to a file, to examine them elsewhere
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Examine the machine that --save recorded
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "save"])]
    from: Option<PathBuf>,
}

/// Examines the machine and prints the findings.
pub(crate) fn run(options: &Options, color: ColorChoice) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    if options.schema {
        out.write_all(SCHEMA.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut environment = match &options.from {
        Some(path) => json::read(path)?,
        None => survey::survey(options.device == DeviceChoice::Sim),
    };
    if let Some(path) = &options.ptx {
        environment.ptx = Some(ptx_header(path)?);
    }
    if let Some(path) = &options.save {
        json::save(&environment, path)?;
    }
    let report = Report::new(check::findings(&environment));
    if options.json {
        json::print(&report, &mut out)?;
    } else {
        report.print(&mut out, color.on(&io::stdout()))?;
    }
    Ok(if report.works() { ExitCode::SUCCESS } else { ExitCode::from(DOES_NOT_WORK) })
}

fn ptx_header(path: &Path) -> Result<ptx::Header> {
    let text =
        fs::read_to_string(path).with_context(|| format!("the PTX file {} could not be read", path.display()))?;
    ptx::Header::of(&text).with_context(|| format!("{} is not PTX: .version or .target is missing", path.display()))
}
