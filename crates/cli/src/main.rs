//! The `curium` program.

// Time limits come from callers, and adding the longest ones to an `Instant` panics.
#![warn(clippy::arithmetic_side_effects)]

mod bench;
mod bytes;
mod cache;
mod completions;
mod count;
mod demo;
mod device_model;
mod doctor;
mod info;
mod kernels;
mod loaded;
mod machine;
mod man;
mod mem;
mod program;
mod progress;
mod run;
mod simulator;
mod terminal;
mod trace;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::terminal::ColorChoice;

/// Run, inspect and measure CUDA from Rust, on a GPU or the simulator.
#[derive(Parser)]
#[command(name = "curium", version, arg_required_else_help = true)]
struct Cli {
    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Options),
    Doctor(doctor::Options),
    Info(info::Options),
    Trace(trace::Options),
    Cache(cache::Options),
    Bench(bench::Options),
    Mem(mem::Options),
    Run(run::Options),
    Kernels(kernels::Options),
    Completions(completions::Options),
    Man(man::Options),
}

fn main() -> ExitCode {
    let Cli { color, command } = Cli::parse();
    let result = match command {
        Command::Demo(options) => demo::run(&options, color).map(|()| ExitCode::SUCCESS),
        Command::Doctor(options) => doctor::run(&options, color),
        Command::Info(options) => info::run(&options, color).map(|()| ExitCode::SUCCESS),
        Command::Trace(options) => trace::run(&options, color),
        Command::Cache(options) => cache::run(&options, color).map(|()| ExitCode::SUCCESS),
        Command::Bench(options) => bench::run(&options, color).map(|()| ExitCode::SUCCESS),
        Command::Mem(options) => mem::run(&options, color).map(|()| ExitCode::SUCCESS),
        Command::Run(options) => run::run(&options, color),
        Command::Kernels(options) => kernels::run(&options, color),
        Command::Completions(options) => {
            completions::run(&options, color).map(|()| ExitCode::SUCCESS)
        }
        Command::Man(options) => man::run(&options, color).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        if is_closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        report_error(&error);
        ExitCode::FAILURE
    })
}

/// Returns `true` if the reader of the output has closed it, as `head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    kinds
        .into_iter()
        .any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn report_error(error: &anyhow::Error) {
    // No receiver may be left. The exit code reports the failure as well.
    let _ = writeln!(io::stderr(), "error: {error:#}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn argument_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn closed_pipe_is_no_failure_but_a_full_disk_is() {
        for (kind, is_closed) in [
            (io::ErrorKind::BrokenPipe, true),
            (io::ErrorKind::StorageFull, false),
        ] {
            let error = anyhow::Error::from(io::Error::from(kind)).context("no report");
            assert_eq!(is_closed_pipe(&error), is_closed, "{kind}");
        }
    }

    /// The description fits into one line of a terminal.
    #[test]
    fn every_command_lists_its_exit_codes() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let about = command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!((1..=64).contains(&about.len()), "{name}: {about}");
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                after.starts_with("Exit codes")
                    && after.contains("\n  2  the command line is wrong"),
                "{name}: {after}"
            );
        }
    }
}
