//! The search for programs that fail.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::compile::{Compiled, Compiler};
use crate::interpret::{Argument, Input};
use crate::launch::{Machine, Outcome};
use crate::program::Program;
use crate::{generate, print, shrink, wrong};

/// What is generated.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the first program. Each program has the next one.
    pub seed: u64,
    /// The number of programs.
    pub count: u64,
    /// The number of programs that are compiled together.
    pub batch: u64,
    /// The number of wrong programs, which the compiler must refuse.
    pub wrong: u64,
    /// `true` if a program that fails is reduced.
    pub shrink: bool,
    /// The number of failures after which the search ends.
    pub max_failures: usize,
    /// A folder in which dependencies remain compiled.
    pub work: PathBuf,
    /// Another copy of `curium-kernel`, such as one with a fault that the search should find.
    pub kernel_crate: Option<PathBuf>,
}

/// The figures of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The number of programs that ran.
    pub programs: u64,
    /// The number of their statements.
    pub statements: u64,
    /// The number of programs that did not compile.
    pub rejected: u64,
    /// The number of programs of which the simulator reported an error.
    pub reports: u64,
    /// The number of launches that failed without a report.
    pub failures: u64,
    /// The number of programs with another result than that of the interpreter.
    pub differences: u64,
    /// The number of programs without a defined result. The generator makes none.
    pub undefined: u64,
    /// The number of wrong programs.
    pub wrong: u64,
    /// The number of wrong programs that compiled.
    pub accepted: u64,
}

/// The end of a search.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The figures, and a description of each failure.
    Finished(Figures, Vec<String>),
    /// The toolchain lacks a part that compiles kernels.
    Missing(String),
}

/// What a search reports while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The figures after some more programs.
    Figures(&'a Figures),
    /// A program has failed, and is reduced next.
    Failure {
        /// Its seed.
        seed: u64,
        /// How it failed.
        outcome: &'a str,
    },
}

/// A program that failed.
struct Failure {
    seed: u64,
    outcome: Outcome,
}

/// Spreads consecutive seeds.
pub(crate) fn spread(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Generates, compiles, runs and compares programs.
///
/// # Errors
///
/// If a file or a folder cannot be written.
pub fn run(options: &Options, mut progress: impl FnMut(Progress<'_>)) -> Result<Verdict> {
    let compiler = Compiler::new(&options.work, options.kernel_crate.as_deref())?;
    let mut figures = Figures::default();
    let mut texts = Vec::new();
    let end = options.seed.saturating_add(options.count);
    let mut seed = options.seed;
    while seed < end && texts.len() < options.max_failures {
        let next = end.min(seed + options.batch.max(1));
        let programs: Vec<(u64, Program)> = (seed..next)
            .map(|seed| (seed, generate::program(spread(seed))))
            .collect();
        for (_, program) in &programs {
            figures.programs += 1;
            figures.statements += program.statements() as u64;
        }
        let failures = match batch(&compiler, &programs, &mut figures, &mut texts)? {
            Ok(failures) => failures,
            Err(missing) => return Ok(Verdict::Missing(missing)),
        };
        for failure in failures {
            progress(Progress::Failure {
                seed: failure.seed,
                outcome: &format!("{:?}", failure.outcome),
            });
            texts.push(describe(&compiler, options, failure)?);
        }
        progress(Progress::Figures(&figures));
        seed = next;
    }
    if options.wrong > 0 {
        match wrong::run(&compiler, options.seed, options.wrong)? {
            Ok(accepted) => {
                figures.wrong = options.wrong;
                figures.accepted = accepted.len() as u64;
                texts.extend(accepted);
            }
            Err(missing) => return Ok(Verdict::Missing(missing)),
        }
        progress(Progress::Figures(&figures));
    }
    Ok(Verdict::Finished(figures, texts))
}

/// Returns the name of the kernel of a seed.
fn kernel_name(seed: u64) -> String {
    format!("kernel_{seed}")
}

/// Compiles programs together and runs each. Returns those that fail, or the part that the
/// toolchain lacks.
fn batch(
    compiler: &Compiler,
    programs: &[(u64, Program)],
    figures: &mut Figures,
    texts: &mut Vec<String>,
) -> Result<std::result::Result<Vec<Failure>, String>> {
    let modules: Vec<String> = programs
        .iter()
        .map(|(seed, program)| print::module(program, &kernel_name(*seed)))
        .collect();
    let message = match compiler.compile(&modules)? {
        Compiled::Ptx(ptx) => return Ok(Ok(run_all(programs, &ptx, figures))),
        Compiled::Missing(message) => return Ok(Err(message)),
        Compiled::Failed(message) | Compiled::Refused(message) => message,
        Compiled::Rejected(diagnostics) => {
            let errors: Vec<String> = diagnostics
                .into_iter()
                .map(|diagnostic| diagnostic.rendered)
                .collect();
            errors.concat()
        }
    };
    if let [(seed, _)] = programs {
        figures.rejected += 1;
        texts.push(format!(
            "program {seed} does not compile: {message}\n{}",
            modules[0]
        ));
        return Ok(Ok(Vec::new()));
    }
    let mut failures = Vec::new();
    let (first, second) = programs.split_at(programs.len() / 2);
    for half in [first, second] {
        match batch(compiler, half, figures, texts)? {
            Ok(half) => failures.extend(half),
            Err(missing) => return Ok(Err(missing)),
        }
    }
    Ok(Ok(failures))
}

fn run_all(programs: &[(u64, Program)], ptx: &str, figures: &mut Figures) -> Vec<Failure> {
    let mut failures = Vec::new();
    let first = programs.first().map_or(0, |(seed, _)| *seed);
    let mut machine = Machine::new(ptx, spread(first));
    for (seed, program) in programs {
        let input = generate::input(program, spread(*seed));
        let outcome = machine.run(program, &kernel_name(*seed), &input);
        match outcome {
            Outcome::Same => continue,
            Outcome::Undefined(_) => figures.undefined += 1,
            Outcome::Report(_) => figures.reports += 1,
            Outcome::Failure(_) => figures.failures += 1,
            Outcome::Difference(_) => figures.differences += 1,
        }
        failures.push(Failure {
            seed: *seed,
            outcome,
        });
    }
    failures
}

/// Reduces a program that fails, and describes it.
fn describe(compiler: &Compiler, options: &Options, failure: Failure) -> Result<String> {
    let Failure { seed, outcome } = failure;
    let program = generate::program(spread(seed));
    let input = generate::input(&program, spread(seed));
    let mut text = format!("program {seed}: {outcome:?}\n");
    let statements = program.statements();
    let (program, outcome) = if options.shrink && !matches!(outcome, Outcome::Undefined(_)) {
        shrink::reduce(compiler, program, &input, outcome)?
    } else {
        (program, outcome)
    };
    let module = print::module(&program, &kernel_name(seed));
    let _ = write!(
        text,
        "reduced from {statements} to {} statements: {outcome:?}\n{module}\n",
        program.statements()
    );
    let _ = write!(text, "grid: {:?}\n{}", input.grid, arguments(&input));
    Ok(text)
}

/// Describes arguments; long buffers are shortened.
fn arguments(input: &Input) -> String {
    const SHOWN: usize = 16;
    let mut text = String::new();
    for (index, argument) in input.arguments.iter().enumerate() {
        let elements = argument.elements();
        let shown = &elements[..elements.len().min(SHOWN)];
        let _ = match argument {
            Argument::Value(value) => writeln!(text, "argument {index}: {}", value.source()),
            Argument::Buffer(_) => writeln!(
                text,
                "argument {index}: {} elements: {shown:?}",
                elements.len()
            ),
            Argument::Matrix { rows, columns, .. } => {
                writeln!(text, "argument {index}: {rows} x {columns}: {shown:?}")
            }
            Argument::Dynamic(len) => {
                writeln!(
                    text,
                    "argument {index}: {len} elements of dynamic shared memory"
                )
            }
            Argument::None => Ok(()),
        };
    }
    text
}

/// Runs candidates of the reduction, and returns the outcome of each. Those that do not compile are
/// left out.
pub(crate) fn outcomes(
    compiler: &Compiler,
    programs: &[Program],
    input: &Input,
) -> Result<Vec<Option<Outcome>>> {
    let mut modules = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        modules.push(print::module(program, &format!("candidate_{index}")));
    }
    match compiler.compile(&modules)? {
        Compiled::Ptx(ptx) => {
            let mut machine = Machine::new(&ptx, 0);
            Ok(programs
                .iter()
                .enumerate()
                .map(|(index, program)| {
                    Some(machine.run(program, &format!("candidate_{index}"), input))
                })
                .collect())
        }
        Compiled::Missing(message) => {
            Err(anyhow::Error::msg(message)).context("the toolchain lost a part")
        }
        _ if programs.len() == 1 => Ok(vec![None]),
        _ => {
            let (first, second) = programs.split_at(programs.len() / 2);
            let mut all = outcomes(compiler, first, input)?;
            all.extend(outcomes(compiler, second, input)?);
            Ok(all)
        }
    }
}
