//! `curium trace`: runs a program and records its CUDA calls for trace viewers.
//!
//! A program that uses Curium with the feature `trace` writes its calls itself, where `CURIUM_TRACE` says, on whatever driver it runs. Any
//! other program is given the simulator as its driver, whose library does the same where `CURIUM_SIM_TRACE` says. Both append events to
//! one file, which is closed here.

mod events;
mod simulator;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result, bail};
use curium::prelude::*;

use self::events::Events;
use crate::place::DeviceChoice;

/// Run a program and write its calls of CUDA for trace viewers
///
/// The file is a trace that `chrome://tracing` and Perfetto show.
/// On a GPU the program has to use Curium with its feature `trace`. On the simulator any program that loads libcuda.so.1 is traced, in
/// whatever language it is written.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  those of the program, if it made calls
  1  something failed: the program cannot be started, or made no call that could be traced
  2  the command line is wrong")]
pub(crate) struct Options {
    /// Where the program runs; with `auto` and no GPU it is given the simulator
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// File for the trace; one that exists is replaced
    #[arg(long, short, default_value = "curium-trace.json", value_name = "FILE")]
    output: PathBuf,
    /// The simulator's libcuda.so.1 [default: beside this program, or built now]
    #[arg(long, value_name = "FILE")]
    simulator: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Runs the program, and closes and sums up its trace.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let output = std::path::absolute(&options.output)?;
    let simulator = options.simulator()?;
    fs::write(&output, "[\n").with_context(|| format!("{} cannot be written", options.output.display()))?;
    let status = program(&options.program, &output, simulator.as_deref())?;
    let events = Events::close(&output)?;
    if events.is_empty() {
        // An empty list helps nobody.
        fs::remove_file(&output)?;
        bail!("{}", nothing(&options.program[0], simulator.is_some(), status));
    }
    writeln!(io::stderr(), "{events}\nwrote {}", options.output.display())?;
    Ok(code(status))
}

impl Options {
    /// The simulator's library, if the program is to run on it.
    fn simulator(&self) -> Result<Option<PathBuf>> {
        match self.device {
            DeviceChoice::Gpu => Ok(None),
            DeviceChoice::Auto if Driver::load().is_ok() => Ok(None),
            DeviceChoice::Auto | DeviceChoice::Sim => simulator::library(self.simulator.as_deref()).map(Some),
        }
    }
}

/// Runs the program with the variables that make it write a trace.
fn program(words: &[OsString], trace: &Path, simulator: Option<&Path>) -> Result<ExitStatus> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    match simulator {
        Some(library) => {
            // Programs that use Curium look here first, all others on the loader's path.
            command.env("CURIUM_DRIVER_PATH", library).env("LD_LIBRARY_PATH", before_others(library)?);
            command.env("CURIUM_SIM_TRACE", trace).env_remove("CURIUM_TRACE");
        }
        None => {
            command.env("CURIUM_TRACE", trace);
        }
    }
    command.status().with_context(|| format!("{} cannot be started", words[0].display()))
}

/// The loader's path with the library's folder first.
fn before_others(library: &Path) -> Result<OsString> {
    let folder = library.parent().map(Path::to_path_buf);
    let others = env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
    let others: Vec<_> = others.iter().flat_map(env::split_paths).collect();
    env::join_paths(folder.into_iter().chain(others)).context("the simulator's folder cannot be on LD_LIBRARY_PATH")
}

/// Why there may be no call in the trace.
fn nothing(program: &OsString, simulated: bool, status: ExitStatus) -> String {
    let why = if simulated {
        "it never loaded libcuda.so.1 by that name, is linked to it by another path, or holds a simulator of its own"
    } else {
        "it uses no CUDA, or does not use Curium with the feature `trace`; `--device sim` traces any program"
    };
    format!("{} made no call that could be traced ({status}): {why}", program.display())
}

/// The program's own code; that of a shell for one that a signal ended.
fn code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or_else(|| signal.map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
