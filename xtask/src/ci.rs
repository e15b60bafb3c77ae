//! `cargo xtask ci`: every check that a change must pass, with a summary.

mod features;
mod links;
mod loom;
mod manifest;
mod miri;
mod nvrtc;
mod package;
mod rust_kernels;
mod targets;
mod tree;
mod workflow;

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use comfy_table::{CellAlignment, Table, presets};

use crate::cargo::cargo;
use crate::package::Pins;
use crate::version::Version;

#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Run this step only (repeatable).
    #[arg(long = "step", value_name = "NAME")]
    steps: Vec<String>,
    /// Leave this step out (repeatable).
    #[arg(long, value_name = "NAME", conflicts_with = "steps")]
    skip: Vec<String>,
    /// Compare the bindings with this CUDA version only (repeatable).
    #[arg(long, value_name = "VERSION")]
    cuda: Vec<Version>,
    /// Write the workflow, `.github/workflows/ci.yml`, and run nothing.
    #[arg(long, exclusive = true)]
    workflow: bool,
    /// Run all tests that Miri supports, the tests of other targets under emulators, and a longer
    /// search of the grammar. Each takes about half an hour.
    #[arg(long)]
    thorough: bool,
}

/// One check.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    run: fn(&Options) -> Result<Outcome>,
    /// `true` for a step that builds in a folder of its own: these steps run one after another
    /// while the others run, and their output is shown when they have ended.
    is_parallel: bool,
    /// The workflow's job of the long form, `--thorough`, if there is one.
    long: Option<LongForm>,
}

/// A job of the workflow.
#[derive(Clone, Copy)]
struct LongForm {
    minutes: u32,
    container: Option<&'static str>,
    /// Commands that prepare the machine.
    before: &'static [&'static str],
}

impl Step {
    const fn new(name: &'static str, run: fn(&Options) -> Result<Outcome>) -> Self {
        Self {
            name,
            run,
            is_parallel: false,
            long: None,
        }
    }

    const fn long(self, long: LongForm) -> Self {
        Self {
            long: Some(long),
            ..self
        }
    }

    const fn parallel(self) -> Self {
        Self {
            is_parallel: true,
            ..self
        }
    }
}

/// The outcome of a step that did not fail.
enum Outcome {
    Passed,
    Skipped(&'static str),
}

/// The steps in their order: after the tests, those that fail fastest and most often come first.
const STEPS: &[Step] = &[
    Step::new("test", |_| run_all(cargo().arg("test"))),
    Step::new("fmt", |_| {
        run_all(cargo().args(["fmt", "--all", "--check"]))
    }),
    Step::new("paths", |_| {
        tree::names_no_machine().map(|()| Outcome::Passed)
    }),
    Step::new("safety", |_| {
        tree::proofs_are_done().map(|()| Outcome::Passed)
    }),
    Step::new("links", links::run),
    Step::new("package", package::run),
    Step::new("clippy", |_| clippy()),
    Step::new("features", features::run),
    // Debian 13 has QEMU 10; older versions take 24 GB for the reserved addresses of the simulator.
    Step::new("targets", targets::run).long(LongForm {
        minutes: 150,
        container: Some("rust:trixie"),
        before: &["apt-get update"],
    }),
    Step::new("doc", doc),
    Step::new("support", |_| {
        run_all(xtask()?.args(["support", "--check"]))
    }),
    Step::new("map", |_| run_all(xtask()?.args(["map", "--check"]))),
    Step::new("versions", |_| {
        run_all(xtask()?.args(["versions", "--check"]))
    }),
    Step::new("workflow", |_| workflow::check()),
    Step::new("performance", |_| {
        run_all(xtask()?.args(["performance", "--check"]))
    }),
    Step::new("kernels", |_| {
        run_all(xtask()?.args(["kernels", "--check"]))
    }),
    Step::new("rust-kernels", rust_kernels::run).long(LongForm {
        minutes: 180,
        container: None,
        before: &[],
    }),
    Step::new("bindings", bindings),
    Step::new("nvrtc", nvrtc::run).long(LongForm {
        minutes: 60,
        container: None,
        before: &[],
    }),
    Step::new("grammar", grammar).long(LongForm {
        minutes: 60,
        container: None,
        before: &[],
    }),
    Step::new("xtask", |_| run_all(cargo().args(["test", "-p", "xtask"]))),
    Step::new("cost", cost).parallel(),
    Step::new("loom", |_| loom::run()).parallel(),
    Step::new("miri", miri::run).parallel().long(LongForm {
        minutes: 90,
        container: None,
        before: &["rustup toolchain install nightly --profile minimal --component miri,rust-src"],
    }),
];

/// A finished step, or several that ran in one process.
struct Ran {
    name: String,
    outcome: Result<Outcome>,
    time: Duration,
}

impl Ran {
    /// Runs a step. Its error is printed after the table of all steps.
    fn new(name: &str, step: impl FnOnce() -> Result<Outcome>) -> Self {
        let start = Instant::now();
        let outcome = step();
        Self {
            name: name.to_owned(),
            outcome,
            time: start.elapsed(),
        }
    }
}

/// Runs the chosen steps, all of them even if one fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.workflow {
        return workflow::write();
    }
    let chosen = chosen(options)?;
    let (parallel, others): (Vec<_>, Vec<_>) = chosen.iter().partition(|step| step.is_parallel);
    if parallel.is_empty() || others.is_empty() {
        return show(&run_steps(&chosen, options));
    }
    let ran = thread::scope(|scope| {
        let parallel = scope.spawn(|| run_parallel(&parallel, options));
        let mut ran = run_steps(others, options);
        ran.push(parallel.join().expect("the thread returns its errors"));
        ran
    });
    show(&ran)
}

fn run_steps<'a>(steps: impl IntoIterator<Item = &'a Step>, options: &Options) -> Vec<Ran> {
    let mut ran = Vec::new();
    for step in steps {
        println!("\n== {}", step.name);
        ran.push(Ran::new(step.name, || (step.run)(options)));
    }
    ran
}

/// Runs the steps in a process of their own, which prints the outcome of each.
fn run_parallel(steps: &[&Step], options: &Options) -> Ran {
    let names: Vec<_> = steps.iter().map(|step| step.name).collect();
    Ran::new(&names.join(", "), || {
        let mut command = xtask()?;
        command.arg("ci");
        for name in &names {
            command.args(["--step", name]);
        }
        if options.thorough {
            command.arg("--thorough");
        }
        let mut output = Vec::new();
        let outcome = run_into(&mut command, &mut output);
        println!("\n== {}", names.join(", "));
        std::io::stdout().write_all(&output)?;
        outcome
    })
}

/// Prints the outcomes of the steps and the errors of those that failed, and fails if there is one.
fn show(ran: &[Ran]) -> Result<()> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["step", "result", "time"]);
    for step in ran {
        table.add_row([
            step.name.clone(),
            describe(&step.outcome),
            seconds(step.time),
        ]);
    }
    if let Some(time) = table.column_mut(2) {
        time.set_cell_alignment(CellAlignment::Right);
    }
    println!("\n{table}");
    let mut failed = Vec::new();
    for step in ran {
        if let Err(error) = &step.outcome {
            println!("\n== {} failed: {error:#}", step.name);
            failed.push(step.name.as_str());
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn chosen(options: &Options) -> Result<Vec<Step>> {
    let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
    if let Some(unknown) = options
        .steps
        .iter()
        .chain(&options.skip)
        .find(|name| !names.contains(&name.as_str()))
    {
        bail!(
            "there is no step `{unknown}`; the steps are {}",
            names.join(", ")
        );
    }
    let mut chosen = STEPS.to_vec();
    if !options.steps.is_empty() {
        chosen.retain(|step| options.steps.iter().any(|name| name == step.name));
    }
    chosen.retain(|step| options.skip.iter().all(|name| name != step.name));
    Ok(chosen)
}

fn describe(outcome: &Result<Outcome>) -> String {
    match outcome {
        Ok(Outcome::Passed) => "passed".to_owned(),
        Ok(Outcome::Skipped(reason)) => format!("skipped: {reason}"),
        Err(_) => "FAILED".to_owned(),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn clippy() -> Result<Outcome> {
    run_all(cargo().args([
        "clippy",
        "--workspace",
        "--all-features",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn doc(_options: &Options) -> Result<Outcome> {
    // Programs are left out, because the program and the crate `curium` would share a page.
    run_all(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--workspace",
        "--exclude",
        "xtask",
        "--exclude",
        "curium-test-*",
        "--all-features",
        "--no-deps",
        "--lib",
    ]))
}

/// Compares the bindings with the chosen versions of CUDA, or with the oldest and the newest. The
/// workflow has a job for each version.
fn bindings(options: &Options) -> Result<Outcome> {
    let mut versions = options.cuda.clone();
    if versions.is_empty() {
        let pinned = Pins::read()?.cuda;
        versions.extend(pinned.first().map(|cuda| cuda.version));
        versions.extend(pinned.last().map(|cuda| cuda.version));
    }
    let versions = versions
        .iter()
        .flat_map(|version| ["--cuda".to_owned(), version.to_string()]);
    run_all(xtask()?.args(["bindings", "check"]).args(versions))
}

fn grammar(options: &Options) -> Result<Outcome> {
    crate::grammar::run(&crate::grammar::Options::for_ci(options.thorough))
        .map(|()| Outcome::Passed)
}

fn cost(_options: &Options) -> Result<Outcome> {
    if !crate::cost::can_count() {
        return Ok(Outcome::Skipped("no valgrind"));
    }
    crate::cost::run().map(|()| Outcome::Passed)
}

/// Returns a command that runs this program.
fn xtask() -> Result<Command> {
    Ok(Command::new(std::env::current_exe()?))
}

/// The number of lines of a failed command that its error repeats. What failed is then at the end of
/// the output, also if other steps ran afterwards.
const REPEATED_LINES: usize = 50;

/// Runs a command and shows its output.
fn run_all(command: &mut Command) -> Result<Outcome> {
    run_into(command, &mut std::io::stdout())
}

/// Runs a command and writes its output and its errors. The error contains the last lines.
fn run_into(command: &mut Command, output: &mut impl std::io::Write) -> Result<Outcome> {
    let (reader, writer) = std::io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    // The command holds the write end of the pipe, which must be closed before the read ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut last = VecDeque::with_capacity(REPEATED_LINES);
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        output.write_all(&line)?;
        output.write_all(b"\n")?;
        if last.len() == REPEATED_LINES {
            last.pop_front();
        }
        last.push_back(String::from_utf8_lossy(&line).into_owned());
    }
    let status = child.wait()?;
    let last = last.make_contiguous().join("\n");
    ensure!(status.success(), "it ended with {status}\n{last}");
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(steps: &[&str], skip: &[&str]) -> Options {
        Options {
            workflow: false,
            steps: steps.iter().map(|name| (*name).to_owned()).collect(),
            skip: skip.iter().map(|name| (*name).to_owned()).collect(),
            cuda: Vec::new(),
            thorough: false,
        }
    }

    #[test]
    fn chosen_steps_run_and_skipped_ones_do_not() -> Result<()> {
        assert_eq!(names(&["miri", "fmt"], &[])?, ["fmt", "miri"]);
        assert!(!names(&[], &["test"])?.contains(&"test"));
        assert_eq!(names(&[], &[])?.len(), STEPS.len());
        Ok(())
    }

    fn names(steps: &[&str], skip: &[&str]) -> Result<Vec<&'static str>> {
        let chosen = chosen(&options(steps, skip))?;
        Ok(chosen.iter().map(|step| step.name).collect())
    }

    #[test]
    fn unknown_step_is_an_error_that_lists_the_steps() {
        let error = chosen(&options(&["formatting"], &[]))
            .map(|_| ())
            .expect_err("there is no such step");
        assert!(
            error
                .to_string()
                .contains("`formatting`; the steps are test, fmt"),
            "{error}"
        );
    }

    #[test]
    fn program_that_fails_or_does_not_exist_is_an_error() {
        assert!(run_all(&mut Command::new("false")).is_err());
        assert!(run_all(&mut Command::new("/no/such/program")).is_err());
    }

    #[test]
    fn output_is_shown_and_its_last_lines_are_in_the_error() -> Result<()> {
        let mut output = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "seq 1000; echo failed >&2; exit 3"]);
        let error = run_into(&mut command, &mut output)
            .map(|_| ())
            .expect_err("the status is 3")
            .to_string();
        let output = String::from_utf8(output)?;
        assert!(output.starts_with("1\n2\n") && output.ends_with("\n1000\nfailed\n"));
        assert!(error.starts_with("it ended with exit status: 3\n952\n"));
        assert!(error.ends_with("\n1000\nfailed"));
        Ok(())
    }

    #[test]
    fn workflow_checks_every_pinned_version() {
        let path = crate::root().join(".github/workflows/ci.yml");
        let workflow = std::fs::read_to_string(path).expect("the workflow is readable");
        let versions: Vec<_> = Pins::read()
            .expect("the pins are valid")
            .cuda
            .iter()
            .map(|cuda| format!("\"{}\"", cuda.version))
            .collect();
        let line = format!("cuda: [{}]", versions.join(", "));
        assert!(
            workflow.contains(&line),
            "the workflow has no line `{line}`"
        );
    }
}
