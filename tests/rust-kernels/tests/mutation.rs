//! Mutants of PTX: each has one instruction of synchronization less, or a weaker one. The tests of its kernel run with it in processes of
//! their own, and must fail.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable with the path of the PTX that tests load instead of their own.
pub(crate) const PTX_VARIABLE: &str = "CURIUM_TEST_PTX";

/// The environment variable that leaves out all mutants except those of barriers, fences and waits, if it is `quick`. Without it, the test is
/// skipped.
const SELECTION: &str = "CURIUM_TEST_MUTANTS";

/// The time after which a test of a mutant is stopped. A mutant can loop forever.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The instructions that are left out, by their beginnings.
const REMOVED: &[&str] = &[
    "bar.sync",
    "bar.warp.sync",
    "barrier.sync",
    "barrier.cta.sync",
    "barrier.cluster.arrive",
    "barrier.cluster.wait",
    "fence.",
    "membar.",
    "cp.async.wait_",
    "cp.async.bulk.wait_",
    "wgmma.fence",
    "wgmma.wait_group",
];

/// Instructions with a mask of lanes as the last operand.
const MASKED: &[&str] = &["shfl.sync", "vote.sync", "redux.sync", "match."];

/// What a mutant changes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Change {
    /// A barrier, a fence or a wait is left out.
    Removed,
    /// A reduction by a barrier only has the condition of the own thread.
    OwnVote,
    /// The mask lacks lane 5.
    Mask,
    /// The operand with the lane of a shuffle is another one.
    Lane,
    /// An atomic operation is a load, an operation and a store.
    Weakened,
}

impl Change {
    fn is_quick(self) -> bool {
        matches!(self, Self::Removed | Self::OwnVote)
    }
}

/// A mutant that is equivalent to the original, with the reason.
pub(crate) struct Equivalent {
    /// The kernel or the function.
    pub(crate) kernel: &'static str,
    /// The change.
    pub(crate) change: Change,
    /// A part of the instruction.
    pub(crate) instruction: &'static str,
    /// The numbers of these mutants among those of the kernel with this change and this instruction. Empty: any.
    pub(crate) numbers: &'static [usize],
    /// Why the tests cannot notice it.
    pub(crate) reason: &'static str,
}

/// Kernels with their tests.
pub(crate) struct Suite {
    /// The code of the kernels.
    pub(crate) ptx: &'static str,
    /// The modules of the test program whose tests load their kernels from [`PTX_VARIABLE`], with their sources.
    pub(crate) modules: &'static [(&'static str, &'static str)],
    /// The kernels of other modules, which have no mutants.
    pub(crate) without_mutants: &'static [&'static str],
    /// Mutants that the tests cannot notice.
    pub(crate) equivalent: &'static [Equivalent],
    /// A folder for files.
    pub(crate) folder: &'static str,
}

/// A change at one place of the code.
#[derive(Clone, Debug)]
struct Mutant {
    function: String,
    change: Change,
    instruction: String,
    start: usize,
    end: usize,
    replacement: String,
}

impl Mutant {
    fn opcode(&self) -> &str {
        self.instruction.split(' ').next().unwrap_or_default()
    }
}

/// How a mutant was noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    /// The simulator reported an error.
    Reported,
    /// A test had another result.
    Different,
    /// It did not end.
    Endless,
    /// Nothing failed.
    Unnoticed,
}

/// The numbers of mutants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) mutants: usize,
    pub(crate) reported: usize,
    pub(crate) different: usize,
    pub(crate) endless: usize,
    pub(crate) equivalent: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mutants,
            reported,
            different,
            endless,
            equivalent,
        } = self;
        write!(
            formatter,
            "{mutants} mutants: {reported} reported, {different} with another result, {endless} endless, {equivalent} equivalent"
        )
    }
}

impl Suite {
    /// Runs the mutants, and returns their numbers.
    ///
    /// # Panics
    ///
    /// If a mutant is not noticed and not listed as equivalent, or if a listed one is noticed or does not exist.
    pub(crate) fn run(&self) -> Figures {
        let functions = functions(self.ptx);
        let is_quick = std::env::var(SELECTION).is_ok_and(|selection| selection == "quick");
        let mut mutants = Vec::new();
        for function in &functions {
            for mutant in mutants_of(self.ptx, function) {
                if !is_quick || mutant.change.is_quick() {
                    mutants.push(mutant);
                }
            }
        }
        assert!(!mutants.is_empty(), "the kernels have no barriers");
        let tests = self.tests_of_functions(&functions);
        let original = Path::new(self.folder).join("original.ptx");
        fs::write(&original, self.ptx).expect("the folder is writable");
        let mut all_tests: Vec<&String> = tests.values().flatten().collect();
        all_tests.sort();
        all_tests.dedup();
        for test in all_tests {
            assert_eq!(
                run_test(test, &original),
                Outcome::Unnoticed,
                "{test} fails without a change"
            );
        }
        let queue = Mutex::new(mutants.iter().enumerate());
        let outcomes = Mutex::new(vec![Outcome::Unnoticed; mutants.len()]);
        let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().expect("no panic").next();
                        let Some((index, mutant)) = next else { break };
                        let outcome = self.outcome(index, mutant, &tests);
                        outcomes.lock().expect("no panic")[index] = outcome;
                    }
                });
            }
        });
        let outcomes = outcomes.into_inner().expect("no panic");
        self.judge(&mutants, &outcomes, is_quick)
    }

    fn outcome(
        &self,
        index: usize,
        mutant: &Mutant,
        tests: &BTreeMap<String, Vec<String>>,
    ) -> Outcome {
        let path = Path::new(self.folder).join(format!("mutant-{index}.ptx"));
        let text = format!(
            "{}{}{}",
            &self.ptx[..mutant.start],
            mutant.replacement,
            &self.ptx[mutant.end..]
        );
        fs::write(&path, text).expect("the folder is writable");
        let mut outcome = Outcome::Unnoticed;
        for test in &tests[&mutant.function] {
            outcome = run_test(test, &path);
            if outcome != Outcome::Unnoticed {
                break;
            }
        }
        let _ = fs::remove_file(&path);
        outcome
    }

    /// Compares the outcomes with the list of equivalent mutants.
    fn judge(&self, mutants: &[Mutant], outcomes: &[Outcome], is_quick: bool) -> Figures {
        let mut figures = Figures {
            mutants: mutants.len(),
            ..Figures::default()
        };
        let mut numbers: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut used = vec![false; self.equivalent.len()];
        let mut problems = Vec::new();
        let mut counts: BTreeMap<(&str, Change, &str), usize> = BTreeMap::new();
        for (mutant, outcome) in mutants.iter().zip(outcomes) {
            let count = counts
                .entry((&mutant.function, mutant.change, mutant.opcode()))
                .or_default();
            let number = *count;
            *count += 1;
            let entry = self.equivalent.iter().enumerate().find(|(index, entry)| {
                let is_like = (entry.kernel == "*" || entry.kernel == mutant.function)
                    && entry.change == mutant.change
                    && mutant.instruction.contains(entry.instruction);
                if !is_like {
                    return false;
                }
                let number = numbers.entry((*index, &mutant.function)).or_default();
                *number += 1;
                entry.numbers.is_empty() || entry.numbers.contains(&(*number - 1))
            });
            match outcome {
                Outcome::Reported => figures.reported += 1,
                Outcome::Different => figures.different += 1,
                Outcome::Endless => figures.endless += 1,
                Outcome::Unnoticed => figures.equivalent += 1,
            }
            match (entry, *outcome) {
                (Some((index, _)), Outcome::Unnoticed) => used[index] = true,
                (None, Outcome::Unnoticed) => problems.push(format!(
                    "not noticed: {}, {:?}, number {number} of {}: `{}`",
                    mutant.function,
                    mutant.change,
                    mutant.opcode(),
                    mutant.instruction
                )),
                // An entry for any number also matches mutants that are noticed.
                (Some((index, entry)), outcome) if !entry.numbers.is_empty() => {
                    used[index] = true;
                    problems.push(format!(
                        "listed as equivalent ({}), and {outcome:?}: {}, {:?}: `{}`",
                        entry.reason, mutant.function, mutant.change, mutant.instruction
                    ));
                }
                _ => {}
            }
        }
        for (entry, used) in self.equivalent.iter().zip(used) {
            if !used && (!is_quick || entry.change.is_quick()) {
                problems.push(format!(
                    "the list has an entry that no mutant uses: {}, {:?}: `{}`",
                    entry.kernel, entry.change, entry.instruction
                ));
            }
        }
        assert!(problems.is_empty(), "{figures}\n{}", problems.join("\n"));
        figures
    }

    /// Returns the tests that launch a kernel, for each function of the code.
    fn tests_of_functions(&self, functions: &[Function<'_>]) -> BTreeMap<String, Vec<String>> {
        let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for kernel in functions.iter().filter(|function| function.is_entry) {
            let mut names = Vec::new();
            for (module, source) in self.modules {
                // What stands before the first test are functions that all tests of the module use.
                let mut sections = source.split("#[test]");
                let is_in_all = sections
                    .next()
                    .is_some_and(|section| mentions(section, kernel.name));
                for section in sections {
                    let name = section
                        .split_once("fn ")
                        .and_then(|(_, rest)| rest.split('(').next());
                    let (true, Some(name)) = (is_in_all || mentions(section, kernel.name), name)
                    else {
                        continue;
                    };
                    names.push(format!("{module}::{name}"));
                }
            }
            assert_eq!(
                names.is_empty(),
                self.without_mutants.contains(&kernel.name),
                "whether a test of these modules launches {}",
                kernel.name
            );
            tests.insert(kernel.name.to_owned(), names);
        }
        // A function is a part of the kernels that use it, also by another function.
        loop {
            let mut is_changed = false;
            for function in functions.iter().filter(|function| !function.is_entry) {
                let mut names = tests.get(function.name).cloned().unwrap_or_default();
                for caller in functions {
                    if caller.name != function.name && contains_name(caller.body, function.name) {
                        names.extend(tests.get(caller.name).cloned().unwrap_or_default());
                    }
                }
                names.sort();
                names.dedup();
                if tests.get(function.name) != Some(&names) {
                    tests.insert(function.name.to_owned(), names);
                    is_changed = true;
                }
            }
            if !is_changed {
                break;
            }
        }
        // A function that only tables of functions name is a part of the kernels that call through pointers.
        let mut indirect = Vec::new();
        for function in functions {
            if function.body.contains("prototype_") {
                indirect.extend(tests[function.name].iter().cloned());
            }
        }
        indirect.sort();
        indirect.dedup();
        for function in functions {
            let has_mutants = !mutants_of(self.ptx, function).is_empty();
            let names = tests.entry(function.name.to_owned()).or_default();
            if names.is_empty() {
                names.clone_from(&indirect);
            }
            assert!(
                !names.is_empty() || !has_mutants,
                "no test launches {}",
                function.name
            );
        }
        tests
    }
}

/// Returns `true` if the source has a field with this name, as in `kernels.name.launch(…)`.
fn mentions(source: &str, kernel: &str) -> bool {
    let field = format!(".{kernel}");
    let mut rest = source;
    while let Some(start) = rest.find(&field) {
        rest = &rest[start + field.len()..];
        if rest.trim_start().starts_with(['.', ',', ')', ';'])
            && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        {
            return true;
        }
    }
    false
}

fn contains_name(text: &str, name: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    text.match_indices(name).any(|(start, _)| {
        !text[start + name.len()..].starts_with(is_name) && !text[..start].ends_with(is_name)
    })
}

/// Runs a test of this program with other code.
fn run_test(test: &str, ptx: &Path) -> Outcome {
    let program = std::env::current_exe().expect("the test program has a path");
    let mut child = Command::new(program)
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(PTX_VARIABLE, ptx)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test program runs");
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the process exists") {
            break status;
        }
        if start.elapsed() > TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            return Outcome::Endless;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let text = reader.join().unwrap_or_default();
    if status.success() {
        Outcome::Unnoticed
    } else if text.contains("the test failed on the simulator") {
        Outcome::Reported
    } else {
        Outcome::Different
    }
}

/// A kernel or a function of PTX.
#[derive(Clone, Copy, Debug)]
struct Function<'a> {
    name: &'a str,
    is_entry: bool,
    /// The text between the braces, and where it starts.
    body: &'a str,
    start: usize,
}

fn functions(ptx: &str) -> Vec<Function<'_>> {
    let mut functions = Vec::new();
    let mut position = 0;
    for line in ptx.split_inclusive('\n') {
        let start = position;
        position += line.len();
        let is_entry = line.contains(".entry ");
        if !is_entry && !line.starts_with(".func") && !line.contains(" .func ") {
            continue;
        }
        let header = &ptx[start..];
        let (Some(open), semicolon) = (header.find("\n{"), header.find(';')) else {
            continue;
        };
        // A declaration has no body.
        if semicolon.is_some_and(|semicolon| semicolon < open) {
            continue;
        }
        let name = header[..open]
            .rsplit_once("\n)")
            .map_or(&header[..open], |(parameters, _)| parameters);
        let name = function_name(name, is_entry);
        let body_start = start + open + 2;
        let Some(end) = ptx[body_start..].find("\n}") else {
            continue;
        };
        functions.push(Function {
            name,
            is_entry,
            body: &ptx[body_start..body_start + end],
            start: body_start,
        });
    }
    functions
}

/// Returns the name in `.visible .entry name(` or `.func (.param .b32 result) name(`.
fn function_name(header: &str, is_entry: bool) -> &str {
    let keyword = if is_entry { ".entry " } else { ".func" };
    let rest = header
        .split_once(keyword)
        .map_or(header, |(_, rest)| rest)
        .trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(result) => result.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    rest.trim_start()
        .split(|c: char| c == '(' || c.is_whitespace())
        .next()
        .unwrap_or_default()
}

/// Returns the mutants of a function.
fn mutants_of(ptx: &str, function: &Function<'_>) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let mut position = 0;
    for piece in function.body.split_inclusive([';', '{', '}', '\n']) {
        let start = function.start + position;
        position += piece.len();
        let Some(instruction) = piece.strip_suffix(';') else {
            continue;
        };
        // A predicate remains.
        let trimmed = instruction.trim_start();
        let code = match trimmed.strip_prefix('@') {
            Some(rest) => rest
                .split_once(char::is_whitespace)
                .map_or("", |(_, code)| code)
                .trim_start(),
            None => trimmed,
        };
        let is_predicated = trimmed.starts_with('@');
        let code_start = start + (instruction.len() - code.len());
        debug_assert_eq!(&ptx[code_start..code_start + code.len()], code);
        for (change, replacement) in changes(code.trim_end(), is_predicated) {
            mutants.push(Mutant {
                function: function.name.to_owned(),
                change,
                instruction: code.split_whitespace().collect::<Vec<_>>().join(" "),
                start: if replacement.is_empty() {
                    start + (instruction.len() - trimmed.len())
                } else {
                    code_start
                },
                end: code_start + code.len() + 1,
                replacement,
            });
        }
    }
    mutants
}

/// Returns the changes of an instruction. A replacement ends with a semicolon or a brace, or is empty.
fn changes(code: &str, is_predicated: bool) -> Vec<(Change, String)> {
    let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    if REMOVED.iter().any(|removed| name.starts_with(removed)) {
        return vec![(Change::Removed, String::new())];
    }
    if name.starts_with("barrier.cta.red") || name.starts_with("bar.red") {
        let [target, .., condition] = &operands[..] else {
            panic!("{code}: the operands are not known");
        };
        let own = if name.ends_with(".pred") {
            format!("mov.pred {target}, {condition};")
        } else {
            format!("selp.u32 {target}, 1, 0, {condition};")
        };
        return vec![(Change::OwnVote, own)];
    }
    let mut changes = Vec::new();
    if MASKED.iter().any(|masked| name.starts_with(masked)) {
        let mask = operands.last().copied().unwrap_or_default();
        assert!(
            matches!(mask, "-1" | "0xffffffff" | "0xFFFFFFFF"),
            "{code}: the mask is not constant"
        );
        let mut operands = operands.clone();
        operands.pop();
        // All bits except that of lane 5.
        changes.push((
            Change::Mask,
            format!("{name} {}, 0xffffffdf;", operands.join(", ")),
        ));
    }
    if name.starts_with("shfl.sync") {
        let [target, value, lane, clamp, mask] = &operands[..] else {
            panic!("{code}: the operands are not known");
        };
        changes.push((
            Change::Lane,
            match lane.parse::<u32>() {
                Ok(lane) => {
                    // The own value, or that of lane 1.
                    let other = u32::from(lane == 0);
                    format!("{name} {target}, {value}, {other}, {clamp}, {mask};")
                }
                Err(_) => format!(
                    "{{ .reg .b32 other; xor.b32 other, {lane}, 1; {name} {target}, {value}, other, {clamp}, {mask}; }}"
                ),
            },
        ));
    }
    let parts: Vec<&str> = name.split('.').collect();
    match parts[0] {
        "atom" | "red" => {
            assert!(!is_predicated, "{code}: a predicated instruction");
            changes.push((Change::Weakened, weakened(code, &parts, &operands)));
        }
        "ld" | "st" if parts.iter().any(|part| is_ordering(part)) => {
            let plain: Vec<&str> = parts
                .iter()
                .copied()
                .filter(|part| !is_ordering(part) && !is_scope(part))
                .collect();
            let operands = operands.join(", ");
            changes.push((Change::Weakened, format!("{} {operands};", plain.join("."))));
        }
        _ => {}
    }
    changes
}

fn is_ordering(part: &str) -> bool {
    matches!(part, "relaxed" | "acquire" | "release" | "acq_rel" | "sc")
}

fn is_scope(part: &str) -> bool {
    matches!(part, "cta" | "cluster" | "gpu" | "sys")
}

/// Returns a load, an operation and a store instead of an atomic instruction.
fn weakened(code: &str, parts: &[&str], operands: &[&str]) -> String {
    let ty = parts.last().copied().unwrap_or_default();
    let operation = parts
        .iter()
        .find(|part| {
            matches!(
                **part,
                "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas"
            )
        })
        .unwrap_or_else(|| panic!("{code}: the operation is not known"));
    let space = parts
        .iter()
        .find(|part| part.starts_with("shared") || **part == "global")
        .map(|space| format!(".{space}"))
        .unwrap_or_default();
    let (target, operands) = if parts[0] == "atom" {
        (Some(operands[0]), &operands[1..])
    } else {
        (None, operands)
    };
    let address = operands[0];
    let value = operands[1];
    let update = match *operation {
        "exch" => format!("mov.{ty} new, {value};"),
        "cas" => format!(
            "setp.eq.{ty} equal, old, {value}; selp.{ty} new, {}, old, equal;",
            operands[2]
        ),
        _ => format!("{operation}.{ty} new, old, {value};"),
    };
    let result = match target {
        Some(target) if target != "_" => format!("mov.{ty} {target}, old;"),
        _ => String::new(),
    };
    format!(
        "{{ .reg .pred equal; .reg .{ty} old, new; ld{space}.{ty} old, {address}; {update} st{space}.{ty} {address}, new; {result} }}"
    )
}
