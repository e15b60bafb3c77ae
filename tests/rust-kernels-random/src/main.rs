//! Generates random kernels, and compares the simulator with the interpreter.
#![expect(clippy::print_stdout, reason = "this is a command-line program")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use curium_test_kernels_random::{Figures, Options, Progress, Verdict, run};

/// Compares random kernels with an interpreter.
#[derive(Parser)]
struct Arguments {
    /// The number of programs.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The seed of the first program; each has the next one.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of programs that are compiled together.
    #[arg(long, default_value_t = 100)]
    batch: u64,
    /// The number of wrong programs, which the compiler must refuse.
    #[arg(long, default_value_t = 50)]
    wrong: u64,
    /// Do not reduce programs that fail.
    #[arg(long)]
    no_shrink: bool,
    /// The number of failures after which the search ends.
    #[arg(long, default_value_t = 10)]
    max_failures: usize,
    /// A folder in which dependencies remain compiled.
    #[arg(long, default_value = "target/kernels-random")]
    work: PathBuf,
    /// Another copy of `curium-kernel`, such as one with a fault that the search should find.
    #[arg(long)]
    kernel_crate: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let options = Options {
        seed: arguments.seed,
        count: arguments.count,
        batch: arguments.batch,
        wrong: arguments.wrong,
        shrink: !arguments.no_shrink,
        max_failures: arguments.max_failures,
        work: std::path::absolute(arguments.work)?,
        kernel_crate: arguments.kernel_crate,
    };
    let start = Instant::now();
    let verdict = run(&options, |progress| {
        let seconds = start.elapsed().as_secs_f64();
        match progress {
            Progress::Figures(figures) => println!("{seconds:6.1} s: {}", show(figures)),
            Progress::Failure { seed, outcome } => {
                println!("{seconds:6.1} s: program {seed}: {outcome}");
            }
        }
    })?;
    match verdict {
        Verdict::Missing(message) => bail!("{message}"),
        Verdict::Finished(_, failures) if failures.is_empty() => Ok(ExitCode::SUCCESS),
        Verdict::Finished(_, failures) => {
            for failure in failures {
                println!("\n{failure}");
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

fn show(figures: &Figures) -> String {
    let Figures {
        programs,
        statements,
        rejected,
        reports,
        failures,
        differences,
        undefined,
        wrong,
        accepted,
        ..
    } = figures;
    format!(
        "{programs} programs, {statements} statements; not compiled: {rejected}, reports: {reports}, failures: {failures}, differences: {differences}, undefined: {undefined}; wrong: {wrong}, of which accepted: {accepted}"
    )
}
