//! `curium doctor`: diagnoses why CUDA does not work on this machine, and suggests fixes.
//!
//! The facts are collected into an [`Environment`](environment::Environment), which is plain data,
//! and the checks read nothing else. Each check is therefore tested on made-up machines, and one
//! machine can be examined on another.

mod check;
mod environment;
mod exchange;
mod finding;
mod ptx;
mod report;
mod survey;
mod trial;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use self::exchange::Exchange;
use self::report::Report;
use crate::machine::DeviceChoice;
use crate::terminal::ColorChoice;

/// The exit code if CUDA does not work.
const DOES_NOT_WORK: u8 = 3;

/// The largest number of bytes of a PTX file that are searched for its header. Long comments may
/// precede it.
const MAX_PTX_HEADER: u64 = 1024 * 1024;

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
    #[command(flatten)]
    exchange: Exchange,
}

/// Examines the machine and prints the findings.
pub(crate) fn run(options: &Options, color: ColorChoice) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    if let Some(schema) = options.exchange.schema() {
        out.write_all(schema.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let saved = options.exchange.saved()?;
    let mut environment =
        saved.unwrap_or_else(|| survey::survey(options.device == DeviceChoice::Sim));
    if let Some(path) = &options.ptx {
        environment.ptx = Some(ptx_header(path)?);
    }
    options.exchange.save(&environment)?;
    let report = Report::new(check::findings(&environment));
    match print(options, &report, &mut out, color) {
        // A reader that has closed the output, as `grep -q` does, may still use the exit code.
        Err(error) if !crate::is_closed_pipe(&error) => return Err(error),
        _ => {}
    }
    Ok(if report.works() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DOES_NOT_WORK)
    })
}

/// Prints the findings as text, or as JSON if that is requested.
fn print(
    options: &Options,
    report: &Report,
    out: &mut impl io::Write,
    color: ColorChoice,
) -> Result<()> {
    if !options.exchange.print(report, out)? {
        report.print(out, color.on(&io::stdout()))?;
    }
    Ok(())
}

/// Reads the header of a PTX file, and no more: the file may be large, or never end.
fn ptx_header(path: &Path) -> Result<ptx::Header> {
    let mut text = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_PTX_HEADER).read_to_end(&mut text))
        .with_context(|| format!("the PTX file {} could not be read", path.display()))?;
    // Comments may be in any encoding.
    ptx::Header::parse(&String::from_utf8_lossy(&text)).with_context(|| {
        format!(
            "{} is not PTX: .version or .target is missing",
            path.display()
        )
    })
}
