//! The `curium` program.
//!
//! # Features
//!
//! - `full`: every command except `demo` and `doctor`, and the parts of `doctor` that concern JSON, saved machines and NVIDIA's libraries.

#[cfg(feature = "full")]
mod bench;
#[cfg(feature = "full")]
mod bytes;
#[cfg(feature = "full")]
mod cache;
#[cfg(feature = "full")]
mod completions;
mod count;
mod demo;
mod doctor;
#[cfg(feature = "full")]
mod info;
mod loaded;
#[cfg(feature = "full")]
mod man;
#[cfg(feature = "full")]
mod mem;
mod place;
#[cfg(feature = "full")]
mod program;
mod progress;
#[cfg(feature = "full")]
mod run;
#[cfg(feature = "full")]
mod simulator;
mod terminal;
#[cfg(feature = "full")]
mod trace;

#[cfg(not(feature = "full"))]
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::terminal::ColorChoice;

/// Run, inspect and measure CUDA from Rust, on a GPU or the simulator.
#[derive(Parser)]
#[command(name = "curium", version, arg_required_else_help = true)]
#[cfg_attr(
    not(feature = "full"),
    command(
        after_help = "Built with `--features full`, the program also has: info, trace, cache, bench, mem, run, completions, man"
    )
)]
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
    #[cfg(feature = "full")]
    Info(info::Options),
    #[cfg(feature = "full")]
    Trace(trace::Options),
    #[cfg(feature = "full")]
    #[command(subcommand)]
    Cache(cache::Command),
    #[cfg(feature = "full")]
    Bench(bench::Options),
    #[cfg(feature = "full")]
    Mem(mem::Options),
    #[cfg(feature = "full")]
    Run(run::Options),
    #[cfg(feature = "full")]
    Completions(completions::Options),
    #[cfg(feature = "full")]
    Man(man::Options),
    #[cfg(not(feature = "full"))]
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// The commands of the feature `full`.
#[cfg(not(feature = "full"))]
const FULL: [&str; 8] = ["info", "trace", "cache", "bench", "mem", "run", "completions", "man"];

fn main() -> ExitCode {
    let Cli { color, command } = Cli::parse();
    let result = match command {
        Command::Demo(options) => demo::run(&options, color).map(|()| ExitCode::SUCCESS),
        Command::Doctor(options) => doctor::run(&options, color),
        #[cfg(feature = "full")]
        Command::Info(options) => info::run(&options).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "full")]
        Command::Trace(options) => trace::run(&options),
        #[cfg(feature = "full")]
        Command::Cache(command) => cache::run(&command).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "full")]
        Command::Bench(options) => bench::run(&options, color).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "full")]
        Command::Mem(options) => mem::run(&options).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "full")]
        Command::Run(options) => run::run(&options),
        #[cfg(feature = "full")]
        Command::Completions(options) => completions::run(&options).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "full")]
        Command::Man(options) => man::run(&options).map(|()| ExitCode::SUCCESS),
        #[cfg(not(feature = "full"))]
        Command::Other(words) => absent(&words),
    };
    result.unwrap_or_else(|error| {
        if is_closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        report_error(&error);
        ExitCode::FAILURE
    })
}

/// Reports a command that this build lacks, or that does not exist.
#[cfg(not(feature = "full"))]
fn absent(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if FULL.contains(&name.as_ref()) {
        return Err(not_in_this_build(&name));
    }
    let error = <Cli as clap::CommandFactory>::command()
        .error(clap::error::ErrorKind::InvalidSubcommand, format!("unrecognized subcommand '{name}'"));
    error.exit()
}

/// Returns the error for a command or an option of the feature `full`.
#[cfg(not(feature = "full"))]
fn not_in_this_build(arguments: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "`curium {arguments}`: not in this build; build it with `--features full`, as in `cargo run --release --features full -- {arguments}`"
    )
}

/// Returns `true` if the reader of the output has closed it, as `head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

#[expect(clippy::print_stderr, reason = "errors of the program go to stderr")]
fn report_error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn definitions_of_the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn closed_pipe_is_no_failure_but_a_full_disk_is() {
        let error = |kind| anyhow::Error::from(io::Error::from(kind)).context("the report could not be written");
        assert!(is_closed_pipe(&error(io::ErrorKind::BrokenPipe)));
        assert!(!is_closed_pipe(&error(io::ErrorKind::StorageFull)));
    }

    #[test]
    fn every_command_is_described_in_one_line_of_a_terminal_and_lists_its_exit_codes() {
        for command in Cli::command().get_subcommands() {
            let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default());
            assert!((1..=64).contains(&about.len()), "{name}: {about}");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                after.starts_with("Exit codes") && after.contains("\n  2  the command line is wrong"),
                "{name}: {after}"
            );
        }
    }
}
