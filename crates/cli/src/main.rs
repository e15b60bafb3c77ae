//! The `curium` program.

mod cache;
mod demo;
mod mem;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// CUDA from Rust, on a GPU or on a simulated one.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Options),
    Mem(mem::Options),
    #[command(subcommand)]
    Cache(cache::Command),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Mem(options) => mem::run(&options),
        Command::Cache(command) => cache::run(&command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is where the program says why it failed")]
fn complain(error: &anyhow::Error) {
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
}
