//! The mutants of a program of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, thread};

use parking_lot::Mutex;

use crate::equivalent::{Equivalence, Matcher, UNMODELED};
use crate::flow::Flow;
use crate::module::Module;
use crate::mutant::{Change, Mutant, mutants};
use crate::process::{Outcome, run_test, tests};
use crate::{PTX_VARIABLE, SEEDS, uses_gpu};

/// The environment variable that selects all mutants, if it is `all`, instead of a sample.
const SELECTION: &str = "CURIUM_TEST_MUTANTS";

/// The sample has one of so many mutants, at regular distances.
const SAMPLE: usize = 50;

/// The time after which a test is stopped, at least. A mutant can loop forever.
const LIMIT: Duration = Duration::from_secs(10);

/// A slower test is stopped after this number of times that it takes without a change.
const SLOWDOWN: u32 = 20;

/// A program of tests, and the PTX of its kernels.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The code of the kernels.
    pub ptx: &'static str,
    /// The mutants that the tests cannot notice.
    pub equivalences: &'static [Equivalence],
    /// A folder for files.
    pub folder: &'static str,
}

/// The numbers of mutants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The functions with mutants.
    pub functions: usize,
    /// All mutants that were run.
    pub mutants: usize,
    /// Those with a report of the simulator.
    pub reported: usize,
    /// Those with another result.
    pub different: usize,
    /// Those that did not end.
    pub endless: usize,
    /// Those that are equivalent to the original.
    pub equivalent: usize,
    /// Those of them whose barrier separates no accesses according to the control flow.
    pub proven: usize,
    /// Those that nothing noticed because the simulator does not model the difference.
    pub unmodeled: usize,
    /// The duration of the whole run.
    pub time: Duration,
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            functions,
            mutants,
            reported,
            different,
            endless,
            equivalent,
            proven,
            unmodeled,
            time,
        } = self;
        write!(
            formatter,
            "{mutants} mutants of {functions} functions: {reported} reported, {different} with another result, {endless} endless, {equivalent} equivalent, {proven} of them by their control flow, {unmodeled} unmodeled ({time:.0?})"
        )
    }
}

/// A test, with the kernels that it launches.
struct Test {
    name: String,
    kernels: BTreeSet<usize>,
    /// The time that it takes without a change.
    time: Duration,
}

impl Suite {
    /// Runs the mutants that the environment selects, and returns their numbers. Does nothing in
    /// the process of a mutant.
    ///
    /// # Errors
    ///
    /// If processes or files cannot be created.
    ///
    /// # Panics
    ///
    /// If a mutant is not noticed and not listed as equivalent, or if a listed one is noticed or
    /// does not exist.
    pub fn run(&self) -> Result<Figures, Box<dyn Error>> {
        if env::var_os(PTX_VARIABLE).is_some() || uses_gpu() {
            return Ok(Figures::default());
        }
        let start = Instant::now();
        let is_sample = env::var(SELECTION).as_deref() != Ok("all");
        let module = Module::parse(self.ptx);
        let mut all = Vec::new();
        for (index, item) in module.items.iter().enumerate() {
            all.extend(mutants(index, item));
        }
        let selected: Vec<usize> = if is_sample {
            (0..all.len()).step_by(SAMPLE).collect()
        } else {
            (0..all.len()).collect()
        };
        let mut outcomes = BTreeMap::new();
        if !selected.is_empty() {
            let tests = self.tests(&module)?;
            let results = for_each(&selected, |mutant| {
                self.outcome(*mutant, &all[*mutant], &module, &tests)
            })?;
            outcomes.extend(selected.into_iter().zip(results));
        }
        let mut figures = self.judge(&module, &all, &outcomes, is_sample);
        figures.time = start.elapsed();
        Ok(figures)
    }

    /// Returns the tests that launch kernels, the fastest first.
    fn tests(&self, module: &Module<'_>) -> Result<Vec<Test>, Box<dyn Error>> {
        let names = tests()?;
        let kernels: BTreeMap<&str, usize> = module
            .kernels()
            .map(|(index, kernel)| (kernel, index))
            .collect();
        let mut tests = for_each(&names, |name| self.test(name, module, &kernels))?;
        tests.retain(|test| !test.kernels.is_empty());
        tests.sort_by_key(|test| test.time);
        Ok(tests)
    }

    /// Finds the kernels of a test. A kernel without code fails the test with a report that names
    /// the kernel.
    fn test(
        &self,
        name: &str,
        module: &Module<'_>,
        kernels: &BTreeMap<&str, usize>,
    ) -> Result<Test, Box<dyn Error + Send + Sync>> {
        let path = self.file(&name.replace("::", "-"));
        let mut test = Test {
            name: name.to_owned(),
            kernels: BTreeSet::new(),
            time: Duration::ZERO,
        };
        loop {
            fs::write(&path, module.text(&test.kernels, None))?;
            let execution = run_test(name, &path, SEEDS.start, Duration::MAX)?;
            if execution.outcome == Outcome::Unnoticed {
                fs::remove_file(&path)?;
                test.time = execution.time;
                return Ok(test);
            }
            let text = &execution.stderr;
            let kernel = text
                .split_once("kernel `")
                .and_then(|(_, text)| text.split(|c| !crate::module::is_name(c)).next())
                .and_then(|kernel| kernels.get(kernel));
            if !kernel.is_some_and(|kernel| test.kernels.insert(*kernel)) {
                return Err(format!("{name} fails without a change:\n{text}").into());
            }
        }
    }

    /// Runs the tests that launch a mutant until one of them fails, first all tests with the first
    /// seed.
    fn outcome(
        &self,
        number: usize,
        mutant: &Mutant,
        module: &Module<'_>,
        tests: &[Test],
    ) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        let path = self.file(&format!("mutant-{number}"));
        let text = mutant.text(&module.items[mutant.item]);
        let mut users = Vec::new();
        for test in tests {
            if module.reachable(&test.kernels).contains(&mutant.item) {
                users.push(test);
            }
        }
        // The code of a kernel that no test launches can be a part of another kernel.
        if users.is_empty() {
            return Ok(Outcome::Unnoticed);
        }
        for seed in SEEDS {
            for test in &users {
                fs::write(
                    &path,
                    module.text(&test.kernels, Some((mutant.item, &text))),
                )?;
                let limit = LIMIT.max(test.time * SLOWDOWN);
                let execution = run_test(&test.name, &path, seed, limit)?;
                if execution.outcome != Outcome::Unnoticed {
                    fs::remove_file(&path)?;
                    return Ok(execution.outcome);
                }
            }
        }
        fs::remove_file(&path)?;
        Ok(Outcome::Unnoticed)
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(self.folder).join(format!("{name}.{}.ptx", std::process::id()))
    }

    /// Compares the outcomes with the list of equivalent mutants.
    fn judge(
        &self,
        module: &Module<'_>,
        mutants: &[Mutant],
        outcomes: &BTreeMap<usize, Outcome>,
        is_sample: bool,
    ) -> Figures {
        let mut figures = Figures {
            mutants: outcomes.len(),
            ..Figures::default()
        };
        let mut matcher = Matcher::new(self.equivalences);
        let mut unmodeled = Matcher::new(UNMODELED);
        let mut is_used = vec![false; matcher.patterns().len()];
        let mut problems = Vec::new();
        let mut numbers: BTreeMap<(&str, Change, &str), usize> = BTreeMap::new();
        let mut functions = BTreeSet::new();
        let mut flows = BTreeMap::new();
        for (index, mutant) in mutants.iter().enumerate() {
            let number = numbers
                .entry((&mutant.function, mutant.change, mutant.opcode()))
                .or_default();
            let description = format!(
                "{}, {:?}, number {number} of {}: `{}`",
                mutant.function,
                mutant.change,
                mutant.opcode(),
                mutant.instruction
            );
            *number += 1;
            let pattern = matcher.find(mutant);
            let Some(outcome) = outcomes.get(&index) else {
                continue;
            };
            functions.insert(&mutant.function);
            match outcome {
                Outcome::Reported => figures.reported += 1,
                Outcome::Different => figures.different += 1,
                Outcome::Endless => figures.endless += 1,
                Outcome::Unnoticed => {}
            }
            let flow = flows
                .entry(mutant.item)
                .or_insert_with(|| Flow::parse(&module.items[mutant.item]));
            let proof = flow.equivalence(mutant);
            let listed = pattern.filter(|pattern| matcher.patterns()[*pattern].has_numbers());
            if *outcome == Outcome::Unnoticed {
                if let Some(pattern) = pattern {
                    is_used[pattern] = true;
                    figures.equivalent += 1;
                } else if proof.is_some() {
                    figures.equivalent += 1;
                    figures.proven += 1;
                } else if unmodeled.find(mutant).is_some() || flow.is_beside_ordering(mutant) {
                    figures.unmodeled += 1;
                } else {
                    problems.push(format!("not noticed: {description}"));
                }
            } else if let Some(pattern) = listed {
                is_used[pattern] = true;
                let reason = matcher.reason(pattern);
                problems.push(format!(
                    "{outcome:?}, and listed because {reason}: {description}"
                ));
            } else if let Some(proof) = proof {
                problems.push(format!("{outcome:?}, although {proof}: {description}"));
            }
        }
        figures.functions = functions.len();
        if !is_sample {
            for (pattern, is_used) in matcher.patterns().iter().zip(is_used) {
                if !is_used {
                    problems.push(format!("no mutant matches {pattern:?}"));
                }
            }
        }
        assert!(problems.is_empty(), "{figures}\n{}", problems.join("\n"));
        figures
    }
}

/// Calls a function with each element, on all processors. Returns the results in the order of the
/// elements.
fn for_each<T: Sync, R: Send>(
    elements: &[T],
    function: impl Fn(&T) -> Result<R, Box<dyn Error + Send + Sync>> + Sync,
) -> Result<Vec<R>, Box<dyn Error>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<BTreeMap<usize, _>> = Mutex::new(BTreeMap::new());
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(element) = elements.get(index) else {
                        break;
                    };
                    let result = function(element);
                    results.lock().insert(index, result);
                }
            });
        }
    });
    let results = results.into_inner().into_values();
    results
        .collect::<Result<_, _>>()
        .map_err(|error| error as Box<dyn Error>)
}
