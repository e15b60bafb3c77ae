//! `curium trace`: runs a program and records its CUDA calls for trace viewers.
//!
//! A program that uses Curium writes its calls to the file named by `CURIUM_TRACE`, on
//! any driver. Any other program runs on the simulator's library, which writes its calls to the file named by
//! `CURIUM_SIM_TRACE`. Both append events to one file, which is completed here.

mod events;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result, bail};
use curium::prelude::*;

use self::events::Events;
use crate::place::DeviceChoice;
use crate::terminal::ColorChoice;
use crate::{program, simulator};

/// Run a program and record its CUDA calls for trace viewers
///
/// Perfetto and `chrome://tracing` open the file. On a GPU, the program must use Curium.
/// On the simulator, any program that loads libcuda.so.1 is traced, in any language; the simulator's library is built
/// if it is missing.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  the exit code of the program, if it made calls
  1  the program could not be started, or made no traceable call
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Device for the program; `auto` falls back to the simulator
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Output file, which is overwritten
    #[arg(long, short, default_value = "curium-trace.json", value_name = "FILE")]
    output: PathBuf,
    /// The simulator's libcuda.so.1 [default: beside this program, or built now]
    #[arg(long, value_name = "FILE")]
    simulator: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Runs the program, completes its trace and prints a summary.
pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<ExitCode> {
    let output = std::path::absolute(&options.output)?;
    let simulator = options.simulator()?;
    fs::write(&output, "[\n")
        .with_context(|| format!("{} could not be written", options.output.display()))?;
    let status = traced(&options.program, &output, simulator.as_deref())?;
    let events = Events::close(&output)?;
    if events.is_empty() {
        fs::remove_file(&output)?;
        bail!(
            "{}",
            nothing(&options.program[0], simulator.is_some(), status)
        );
    }
    // The exit code is that of the program, even if no receiver is left for the summary.
    let _ = writeln!(io::stderr(), "{events}\nwrote {}", options.output.display());
    Ok(ExitCode::from(program::exit_code(status)))
}

impl Options {
    /// Returns the simulator's library if the program runs on it.
    fn simulator(&self) -> Result<Option<PathBuf>> {
        match self.device {
            DeviceChoice::Gpu => Ok(None),
            DeviceChoice::Auto if Driver::load().is_ok() => Ok(None),
            DeviceChoice::Auto | DeviceChoice::Sim => {
                simulator::library(self.simulator.as_deref()).map(Some)
            }
        }
    }
}

/// Runs the program with the environment variables for a trace.
fn traced(words: &[OsString], trace: &Path, simulator: Option<&Path>) -> Result<ExitStatus> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    match simulator {
        Some(library) => {
            program::use_simulator(&mut command, library)?;
            command
                .env("CURIUM_SIM_TRACE", trace)
                .env_remove("CURIUM_TRACE");
        }
        None => {
            command.env("CURIUM_TRACE", trace);
        }
    }
    command
        .status()
        .with_context(|| format!("{} could not be started", words[0].display()))
}

/// Explains an empty trace.
fn nothing(program: &OsString, simulated: bool, status: ExitStatus) -> String {
    let why = if simulated {
        "it did not load libcuda.so.1 through the system's loader, or contains a simulator of its own"
    } else {
        "it does not use CUDA, or not through Curium; `--device sim` traces any program"
    };
    format!(
        "{} made no traceable call ({status}): {why}",
        program.display()
    )
}
