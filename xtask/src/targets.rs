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

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Test this target only (repeatable).
    #[arg(long = "target", value_name = "TRIPLE")]
    targets: Vec<String>,
    /// Run these tests only: `unit`, `simulator`, `contract`, `doc` or `program` (repeatable).
    #[arg(long = "tests", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Run only the tests whose names contain this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// A kind of tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Kind {
    /// The unit tests of the libraries.
    Unit,
    /// The tests of the simulator: its unit tests, its C API, and instructions against their
    /// definitions.
    Simulator,
    /// The contract tests, on the simulator.
    Contract,
    /// The examples in the documentation, the book included.
    Doc,
    /// The tests of the program `curium`, which run it.
    Program,
}

/// One row of the report.
struct Row {
    target: &'static str,
    name: String,
    result: Result<Outcome>,
    time: Duration,
}

/// All packages are built together for every kind of tests, so that each is compiled once for its
/// features.
const PACKAGES: &[&str] = &[
    "curium-format",
    "curium-sys",
    "curium-driver",
    "curium-memory",
    "curium-interop",
    "curium-diagnostics",
    "curium-nvrtc",
    "curium-blas",
    "curium-rand",
    "curium-fft",
    "curium-nccl",
    "curium-ptx",
    "curium-sim",
    "curium-sim-libraries",
    "curium",
    "curium-cli",
    "curium-tests",
    "curium-test-units",
];

/// The tests of the simulator; `ptx` and `sim` are its unit tests.
const SIMULATOR: &[&str] = &["ptx", "sim", "driver", "grammar", "instructions"];

/// Tests each target with all kinds of tests, and fails if one of them failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let chosen = Emulator::ALL
        .iter()
        .filter(|emulator| options.includes(emulator.target));
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
        Self {
            target,
            name: name.to_owned(),
            result: Err(error),
            time: Duration::ZERO,
        }
    }
}

fn test(emulator: &Emulator, options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in [Kind::Unit, Kind::Simulator, Kind::Contract, Kind::Program] {
        if options.has(kind) {
            rows.extend(run_tests(emulator, options, kind));
        }
    }
    if options.has(Kind::Doc) {
        rows.push(timed(emulator.target, "doc", || examples(emulator)));
    }
    rows
}

impl Kind {
    /// Returns the arguments of cargo that select the tests.
    fn selection(self) -> Vec<&'static str> {
        let tests =
            |names: &[&'static str]| names.iter().flat_map(|name| ["--test", *name]).collect();
        match self {
            Self::Unit => vec!["--lib"],
            Self::Simulator => tests(SIMULATOR),
            Self::Contract => tests(&["contract"]),
            Self::Doc => vec!["--doc"],
            Self::Program => vec!["--bin", "curium", "--test", "commands"],
        }
    }

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Returns the arguments of cargo for a kind of tests.
fn arguments(emulator: &Emulator, kind: Kind) -> Vec<&'static str> {
    let settings = emulator
        .settings
        .iter()
        .flat_map(|setting| ["--config", *setting]);
    let packages = PACKAGES.iter().flat_map(|package| ["-p", *package]);
    let common = ["test", "--all-features", "--target", emulator.target];
    common
        .into_iter()
        .chain(settings)
        .chain(packages)
        .chain(kind.selection())
        .collect()
}

/// Builds tests, and runs each of their programs.
fn run_tests(emulator: &Emulator, options: &Options, kind: Kind) -> Vec<Row> {
    let built = match build(&[arguments(emulator, kind), vec!["--no-run"]].concat(), &[]) {
        Ok(built) => built,
        Err(error) => return vec![Row::failed(emulator.target, &kind.name(), error)],
    };
    // Tests are built in the folder `deps`. Programs and shared libraries are beside it.
    let programs = built.iter().filter(|artifact| {
        let folder = artifact.file.parent();
        folder.is_some_and(|folder| folder.ends_with("deps"))
    });
    programs
        .map(|program| run_program(emulator, options, program, &name(program), kind))
        .collect()
}

/// Returns the name of a program of tests, without cargo's hash.
fn name(program: &Artifact) -> String {
    let stem = program
        .file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    stem.rsplit_once('-')
        .map_or(stem.as_str(), |(name, _)| name)
        .to_owned()
}

fn run_program(
    emulator: &Emulator,
    options: &Options,
    program: &Artifact,
    name: &str,
    kind: Kind,
) -> Row {
    timed(emulator.target, &format!("{} {name}", kind.name()), || {
        let mut command = emulator.command(&program.file)?;
        command.arg(&options.filter).arg("--test-threads=2");
        let skips = skips::of(emulator.target, name);
        command.args(skips.iter().flat_map(|skip| ["--skip", skip.test]));
        let outcome = Outcome::from_command(&mut command)?;
        Ok(Outcome {
            skipped: skips
                .iter()
                .map(|skip| format!("{}: {}", skip.test, skip.reason))
                .collect(),
            ..outcome
        })
    })
}

/// Runs the examples of the libraries and of the book.
fn examples(emulator: &Emulator) -> Result<Outcome> {
    let mut command = cargo();
    command
        .args(arguments(emulator, Kind::Doc))
        .arg("--no-fail-fast");
    emulator.make_runner(&mut command)?;
    Outcome::from_command(&mut command)
}

fn timed(target: &'static str, name: &str, run: impl FnOnce() -> Result<Outcome>) -> Row {
    println!("\n== {target}: {name}");
    let start = Instant::now();
    let result = run();
    Row {
        target,
        name: name.to_owned(),
        result,
        time: start.elapsed(),
    }
}

/// Prints the outcomes, and fails if one of them is a failure.
fn show(rows: &[Row]) -> Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "target", "tests", "passed", "failed", "ignored", "skipped", "s",
    ]);
    for Row {
        target,
        name,
        result,
        time,
    } in rows
    {
        let seconds = format!("{:.0}", time.as_secs_f64());
        let counts = match result {
            Ok(outcome) => [
                outcome.passed,
                outcome.failed.len(),
                outcome.ignored,
                outcome.skipped.len(),
            ]
            .map(|n| n.to_string()),
            Err(_) => ["-", "FAILED", "-", "-"].map(str::to_owned),
        };
        table.add_row(
            [
                vec![(*target).to_owned(), name.clone()],
                counts.to_vec(),
                vec![seconds],
            ]
            .concat(),
        );
    }
    for column in 2..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("\n{table}");
    for Row {
        target,
        name,
        result,
        ..
    } in rows
    {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("{target}: {name}: {error:#}");
                continue;
            }
        };
        outcome
            .skipped
            .iter()
            .for_each(|skip| println!("{target}: {name}: skipped {skip}"));
        outcome
            .failed
            .iter()
            .for_each(|test| println!("{target}: {name}: FAILED {test}"));
    }
    let has_passed = rows.iter().all(|row| {
        row.result
            .as_ref()
            .is_ok_and(|outcome| outcome.failed.is_empty())
    });
    ensure!(has_passed, "tests failed");
    Ok(())
}

/// Runs a command and fails if it does.
fn expect_success(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} cannot be run"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
