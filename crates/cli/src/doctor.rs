//! `curium doctor`: why CUDA does not work on this machine, and what to do.
//!
//! What there is to know is gathered into an [`Environment`], which is plain data; the checks read it and nothing else. So each of them
//! is tested on machines that are made up, and one machine can be examined on another.

mod check;
mod environment;
mod finding;
mod ptx;
mod report;
mod survey;
mod trial;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use self::environment::Environment;
use self::report::Report;
use crate::place::DeviceChoice;
use crate::terminal::ColorChoice;

/// What `--json` writes, as a JSON schema.
const SCHEMA: &str = include_str!("../schema/doctor.schema.json");

/// How the program exits if CUDA does not work.
const DOES_NOT_WORK: u8 = 3;

/// Find out whether CUDA works here, and explain what to do if not
///
/// A kernel is run on every device. Nothing is changed on the machine.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  CUDA works: a kernel ran on every device (notes and warnings may be shown)
  1  the doctor itself failed: a file that cannot be read or written
  2  the command line is wrong
  3  CUDA does not work, and why is shown")]
pub(crate) struct Options {
    /// What is examined; `auto` is `gpu` here, since a doctor must not make do with a simulator
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Say also whether the driver and the devices take this PTX file
    #[arg(long, value_name = "FILE")]
    ptx: Option<PathBuf>,
    /// Write the findings as JSON, in the form that --schema shows
    #[arg(long)]
    json: bool,
    /// Write the JSON schema of what --json writes
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Keep what was found of the machine in a file, to be examined elsewhere
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Examine the machine that --save kept, and not this one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["device", "save"])]
    from: Option<PathBuf>,
}

/// Examines the machine and says what was found.
pub(crate) fn run(options: &Options, color: ColorChoice) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    if options.schema {
        out.write_all(SCHEMA.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut environment = match &options.from {
        Some(path) => read(path)?,
        None => survey::survey(options.device == DeviceChoice::Sim),
    };
    if let Some(path) = &options.ptx {
        environment.ptx = Some(ptx_header(path)?);
    }
    if let Some(path) = &options.save {
        let text = serde_json::to_string_pretty(&environment)?;
        fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let report = Report::new(check::findings(&environment));
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        report.print(&mut out, color.on(&io::stdout()))?;
    }
    Ok(if report.works() { ExitCode::SUCCESS } else { ExitCode::from(DOES_NOT_WORK) })
}

fn read(path: &Path) -> Result<Environment> {
    let text = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not what `curium doctor --save` writes", path.display()))
}

fn ptx_header(path: &Path) -> Result<ptx::Header> {
    let text = fs::read_to_string(path).with_context(|| format!("the PTX {} cannot be read", path.display()))?;
    ptx::Header::of(&text).with_context(|| format!("{} is no PTX: it has no .version and .target", path.display()))
}
