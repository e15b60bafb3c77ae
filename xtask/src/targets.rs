//! `cargo xtask targets`: the tests of the libraries on other platforms, under emulators.

mod emulator;
mod outcome;
mod skips;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use comfy_table::{CellAlignment, Table, presets};

use self::emulator::Emulator;
use self::outcome::Outcome;
use crate::cargo::{Artifact, build, cargo};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Test this target only (repeatable).
    #[arg(long = "target", value_name = "TRIPLE")]
    targets: Vec<String>,
    /// Run these tests only: `unit`, `contract`, `doc` or `program` (repeatable).
    #[arg(long = "tests", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Run only the tests whose names contain this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// A kind of tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Kind {
    /// The unit tests of the libraries, the simulator's among them.
    Unit,
    /// The contract tests, on the simulator.
    Contract,
    /// The examples in the documentation.
    Doc,
    /// The program `curium`.
    Program,
}

/// One row of the report.
struct Row {
    target: &'static str,
    name: String,
    result: Result<Outcome>,
    time: Duration,
}

/// The libraries that are tested. `curium-derive` and the facade have examples only.
const LIBRARIES: &[&str] = &["curium-sys", "curium-driver", "curium-memory", "curium-nvrtc", "curium-sim"];

/// Tests each target with all kinds of tests, and fails if one of them failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let chosen = Emulator::ALL.iter().filter(|emulator| options.includes(emulator.target));
    let mut rows = Vec::new();
    for emulator in chosen {
        match emulator.prepare() {
            Ok(()) => rows.extend(test(emulator, options)),
            Err(error) => rows.push(Row::failed(emulator.target, "prepare", error)),
        }
    }
    show(&rows)
}

impl Options {
    fn includes(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|chosen| chosen == target)
    }

    fn has(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

impl Row {
    fn failed(target: &'static str, name: &str, error: anyhow::Error) -> Self {
        Self { target, name: name.to_owned(), result: Err(error), time: Duration::ZERO }
    }
}

fn test(emulator: &Emulator, options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    if options.has(Kind::Unit) {
        rows.extend(run_tests(emulator, options, "unit", &[LIBRARIES, &["--lib"]]));
    }
    if options.has(Kind::Contract) {
        rows.extend(run_tests(emulator, options, "contract", &[&["curium-tests"], &["--test", "contract"]]));
    }
    if options.has(Kind::Doc) {
        rows.push(timed(emulator.target, "doc", || examples(emulator)));
    }
    if options.has(Kind::Program) {
        rows.push(timed(emulator.target, "program", || program(emulator)));
    }
    rows
}

/// Builds tests, and runs each of their programs.
fn run_tests(emulator: &Emulator, options: &Options, kind: &str, [packages, selection]: &[&[&str]; 2]) -> Vec<Row> {
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    let command = ["test", "--no-run", "--all-features", "--target", emulator.target];
    let settings = emulator.linker.iter().flat_map(|linker| ["--config", *linker]);
    let arguments: Vec<_> =
        command.into_iter().chain(settings).chain(packages).chain(selection.iter().copied()).collect();
    let programs = match build(&arguments, &[]) {
        Ok(programs) => programs,
        Err(error) => return vec![Row::failed(emulator.target, kind, error)],
    };
    let programs = programs.iter().filter(|artifact| artifact.kind != "cdylib" && artifact.kind != "bin");
    programs.map(|program| run_program(emulator, options, kind, program)).collect()
}

fn run_program(emulator: &Emulator, options: &Options, kind: &str, program: &Artifact) -> Row {
    let stem = program.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name).to_owned();
    timed(emulator.target, &format!("{kind} {name}"), || {
        let mut command = emulator.command(&program.file)?;
        command.arg(&options.filter).arg("--test-threads=2");
        let skips = skips::of(emulator.target, &name);
        command.args(skips.iter().flat_map(|skip| ["--skip", skip.test]));
        let outcome = Outcome::of(&mut command)?;
        Ok(Outcome { skipped: skips.iter().map(|skip| format!("{}: {}", skip.test, skip.reason)).collect(), ..outcome })
    })
}

/// Runs the examples of the libraries.
fn examples(emulator: &Emulator) -> Result<Outcome> {
    let mut command = cargo();
    command.args(["test", "--doc", "--all-features", "--target", emulator.target]);
    command.args(emulator.linker.iter().flat_map(|linker| ["--config", *linker]));
    command.args(LIBRARIES.iter().flat_map(|package| ["-p", package])).args(["-p", "curium"]);
    emulator.make_runner(&mut command)?;
    Outcome::of(&mut command)
}

/// Runs the demonstration of the program on the simulator.
fn program(emulator: &Emulator) -> Result<Outcome> {
    let settings = emulator.linker.iter().flat_map(|linker| ["--config", *linker]);
    let command = ["build", "-p", "curium-cli", "--target", emulator.target];
    let programs = build(&command.into_iter().chain(settings).collect::<Vec<_>>(), &[])?;
    let program = programs.iter().find(|artifact| artifact.kind == "bin").context("the program was not built")?;
    for arguments in [["demo"].as_slice(), &["info", "--help"], &["doctor", "--help"]] {
        let status = emulator.command(&program.file)?.args(arguments).status()?;
        ensure!(status.success(), "curium {} ended with {status}", arguments.join(" "));
    }
    Ok(Outcome { passed: 3, ..Outcome::default() })
}

fn timed(target: &'static str, name: &str, run: impl FnOnce() -> Result<Outcome>) -> Row {
    println!("\n== {target}: {name}");
    let start = Instant::now();
    let result = run();
    if let Err(error) = &result {
        println!("{error:#}");
    }
    Row { target, name: name.to_owned(), result, time: start.elapsed() }
}

/// Prints the outcomes, and fails if one of them is a failure.
fn show(rows: &[Row]) -> Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["target", "tests", "passed", "failed", "ignored", "skipped", "s"]);
    for Row { target, name, result, time } in rows {
        let seconds = format!("{:.0}", time.as_secs_f64());
        let counts = match result {
            Ok(outcome) => {
                [outcome.passed, outcome.failed.len(), outcome.ignored, outcome.skipped.len()].map(|n| n.to_string())
            }
            Err(_) => ["-", "FAILED", "-", "-"].map(str::to_owned),
        };
        table.add_row([vec![(*target).to_owned(), name.clone()], counts.to_vec(), vec![seconds]].concat());
    }
    for column in 2..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("\n{table}");
    for Row { target, name, result, .. } in rows {
        let Ok(outcome) = result else { continue };
        outcome.skipped.iter().for_each(|skip| println!("{target}: {name}: skipped {skip}"));
        outcome.failed.iter().for_each(|test| println!("{target}: {name}: FAILED {test}"));
    }
    let is_clean = |row: &Row| row.result.as_ref().is_ok_and(|outcome| outcome.failed.is_empty());
    ensure!(rows.iter().all(is_clean), "tests failed");
    Ok(())
}

/// Runs a command and fails if it does.
fn expect_success(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} cannot be run"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
