//! `curium trace`: runs a program and records its CUDA calls and the work of its devices for trace
//! viewers.
//!
//! On a GPU, the driver loads a library into the program, which records calls and device work with
//! CUPTI. If CUPTI or the library is missing, a program that uses Curium writes its calls to the
//! file named by `CURIUM_TRACE`. On the simulator's library, calls are written to the file named by
//! `CURIUM_SIM_TRACE`, and device work is recorded as on a GPU. All append events to one file,
//! which is completed here.

mod events;
mod injection;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result, bail};
use curium::driver::Cupti;
use curium::prelude::*;

use self::events::Events;
use crate::machine::DeviceChoice;
use crate::terminal::ColorChoice;
use crate::{program, simulator};

/// Run a program and record its CUDA work for trace viewers
///
/// Perfetto and `chrome://tracing` open the file, which contains the calls of the driver and of the
/// CUDA runtime, kernels (also those inside graphs), copies, fills, allocations and the waits of
/// streams. Programs in any language are traced. On a GPU, this requires CUPTI; without it, only
/// the calls of programs that use Curium are recorded. On the simulator, the program must load
/// libcuda.so.1; the simulator's library is built if it is missing.
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
    /// Leave out host calls, which disturbs the program less
    #[arg(long)]
    without_calls: bool,
    /// The simulator's libcuda.so.1 [default: beside this program, or built now]
    #[arg(long, value_name = "FILE")]
    simulator: Option<PathBuf>,
    /// The library that records device work [default: beside this program, or built now]
    #[arg(long, value_name = "FILE")]
    injection: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Runs the program, completes its trace and prints a summary.
pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<ExitCode> {
    let output = std::path::absolute(&options.output)?;
    let simulator = options.simulator()?;
    let injection = options.injection(simulator.as_deref());
    if let Err(error) = &injection {
        // The calls are recorded nevertheless. No receiver may be left.
        let _ = writeln!(io::stderr(), "device work is not recorded: {error:#}");
    }
    let tracing = Tracing {
        output: &output,
        simulator: simulator.as_deref(),
        injection: injection.ok(),
        without_calls: options.without_calls,
    };
    fs::write(&output, "[\n")
        .with_context(|| format!("{} could not be written", options.output.display()))?;
    let status = tracing.run(&options.program)?;
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

    /// Returns the library that records device work, if CUPTI is there.
    fn injection(&self, simulator: Option<&Path>) -> Result<PathBuf> {
        match simulator {
            // CUPTI is a link to the simulator, which has one process each: this one does not load
            // it.
            Some(simulator) => {
                let cupti = simulator.with_file_name("libcupti.so.13");
                anyhow::ensure!(cupti.is_file(), "there is no file {}", cupti.display());
            }
            None => {
                Cupti::load()?;
            }
        }
        injection::library(self.injection.as_deref())
    }
}

/// A program's trace.
struct Tracing<'a> {
    output: &'a Path,
    /// The simulator's library, if the program runs on it.
    simulator: Option<&'a Path>,
    /// The library that records device work.
    injection: Option<PathBuf>,
    without_calls: bool,
}

impl Tracing<'_> {
    /// Runs the program with the environment variables for a trace.
    fn run(&self, words: &[OsString]) -> Result<ExitStatus> {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_remove("CURIUM_TRACE")
            .env_remove("CURIUM_SIM_TRACE")
            .env_remove("CURIUM_TRACE_WITHOUT_CALLS");
        if let Some(injection) = &self.injection {
            command
                .env("CUDA_INJECTION64_PATH", injection)
                .env("CURIUM_TRACE_ACTIVITIES", self.output);
        }
        if self.without_calls {
            command.env("CURIUM_TRACE_WITHOUT_CALLS", "1");
        }
        if let Some(library) = self.simulator {
            program::use_simulator(&mut command, library)?;
        }
        // CUPTI of a GPU records the calls as well.
        if !self.without_calls {
            match (self.simulator, &self.injection) {
                (Some(_), _) => {
                    command.env("CURIUM_SIM_TRACE", self.output);
                }
                (None, None) => {
                    command.env("CURIUM_TRACE", self.output);
                }
                (None, Some(_)) => {}
            }
        }
        command
            .status()
            .with_context(|| format!("{} could not be started", words[0].display()))
    }
}

/// Explains an empty trace.
fn nothing(program: &OsString, simulated: bool, status: ExitStatus) -> String {
    let why = if simulated {
        "it did not load libcuda.so.1 through the system's loader, or contains a simulator of its own"
    } else {
        "it does not use CUDA, or not through Curium and CUPTI is missing; `--device sim` traces any program"
    };
    format!(
        "{} made no traceable call ({status}): {why}",
        program.display()
    )
}
