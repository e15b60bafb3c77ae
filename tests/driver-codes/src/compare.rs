//! Compares the log of the simulator with the answers of a GPU.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::digest;
use crate::log::{self, Entry};

/// The answers to compare.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// The log of the simulator.
    simulator: PathBuf,
    /// The log of a GPU, or its digest.
    gpu: PathBuf,
    /// Also print the differences that are expected.
    #[arg(long)]
    expected: bool,
}

/// Differences that stay, with their reasons.
const EXPECTED: &str = include_str!("../expected.txt");

/// The common properties of calls with the same difference.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Group {
    function: String,
    notes: String,
    simulator: String,
    gpu: String,
    /// The reason why the difference is expected.
    reason: Option<&'static str>,
}

/// The calls of a group.
struct Calls {
    count: usize,
    /// The number of calls that are the first difference of their sequence.
    first: usize,
    /// The example that has the fewest calls before it.
    example: Example,
}

struct Example {
    sequence: u64,
    index: usize,
    text: String,
}

impl Compare {
    /// Compares the logs. Returns `true` if every difference is expected.
    #[expect(
        clippy::print_stdout,
        reason = "the differences are the output of the program"
    )]
    pub(crate) fn run(&self) -> Result<bool> {
        let simulator = log::read(&self.simulator)?;
        let gpu = if digest::is_digest(&self.gpu)? {
            digest::read(&self.gpu, &simulator)?
        } else {
            log::read(&self.gpu)?
        };
        let rules = rules()?;
        let mut groups: BTreeMap<Group, Calls> = BTreeMap::new();
        let mut compared = 0_usize;
        for (sequence, simulated) in &simulator {
            if let Some(executed) = gpu.get(sequence) {
                compared += compare(*sequence, simulated, executed, &rules, &mut groups)?;
            }
        }
        let mut sorted: Vec<_> = groups.iter().collect();
        sorted.sort_by_key(|(_, calls)| std::cmp::Reverse((calls.first, calls.count)));
        let mut unexpected = 0_usize;
        for (group, calls) in sorted {
            if group.reason.is_some() && !self.expected {
                continue;
            }
            if group.reason.is_none() {
                unexpected += 1;
            }
            let Group {
                function,
                notes,
                simulator,
                gpu,
                reason,
            } = group;
            let notes = if notes.is_empty() { "valid" } else { notes };
            let Example {
                sequence,
                index,
                text,
            } = &calls.example;
            println!(
                "{} ({} first)\t{function}\t{notes}\t{simulator}\t{gpu}",
                calls.count, calls.first
            );
            println!("\tsequence {sequence}, call {index}: {text}");
            if let Some(reason) = reason {
                println!("\texpected: {reason}");
            }
        }
        println!(
            "{compared} calls compared, {} kinds of differences, {unexpected} unexpected",
            groups.len()
        );
        Ok(unexpected == 0)
    }
}

/// Compares a sequence. Returns the number of calls that were compared.
fn compare(
    sequence: u64,
    simulated: &[Entry],
    executed: &[Entry],
    rules: &[Rule],
    groups: &mut BTreeMap<Group, Calls>,
) -> Result<usize> {
    let mut compared = 0;
    let mut is_first = true;
    for (index, (simulator, gpu)) in simulated.iter().zip(executed).enumerate() {
        ensure!(
            simulator.text == gpu.text,
            "sequence {sequence} differs at call {index}: the logs have different seeds or versions"
        );
        if simulator.ends_process() || gpu.ends_process() {
            break;
        }
        if !simulator.has_code() || !gpu.has_code() {
            continue;
        }
        compared += 1;
        if simulator.outcome == gpu.outcome {
            continue;
        }
        let rule = rules
            .iter()
            .find(|rule| rule.covers(simulator, &gpu.outcome));
        let reason = rule.map(|rule| rule.reason);
        let group = Group {
            function: simulator.function().to_owned(),
            notes: simulator.notes.clone(),
            simulator: simulator.outcome.clone(),
            gpu: gpu.outcome.clone(),
            reason,
        };
        let example = Example {
            sequence,
            index,
            text: simulator.text.clone(),
        };
        let calls = groups.entry(group).or_insert_with(|| Calls {
            count: 0,
            first: 0,
            example: Example {
                sequence,
                index: usize::MAX,
                text: String::new(),
            },
        });
        calls.count += 1;
        calls.first += usize::from(is_first);
        if example.index < calls.example.index {
            calls.example = example;
        }
        is_first = false;
        // All later calls of one process fail, and none of the other.
        let ends_device = [simulator, gpu].iter().any(|entry| entry.ends_device());
        if ends_device || rule.is_some_and(|rule| rule.ends_comparison) {
            break;
        }
    }
    Ok(compared)
}

/// A kind of differences that is expected.
struct Rule {
    /// Patterns of functions, of which one is the call's; those with a parenthesis are of the text
    /// of the call.
    calls: Vec<&'static str>,
    notes: &'static str,
    simulator: &'static str,
    gpu: &'static str,
    reason: &'static str,
    /// `true` if the drivers are in different states afterwards, so that the rest of the sequence
    /// is not compared.
    ends_comparison: bool,
}

impl Rule {
    fn covers(&self, simulated: &Entry, gpu: &str) -> bool {
        let is_of_call = self.calls.iter().any(|call| {
            if call.contains('(') {
                matches(call, &simulated.text)
            } else {
                matches(call, simulated.function())
            }
        });
        is_of_call
            && matches(self.notes, &simulated.notes)
            && matches(self.simulator, &simulated.outcome)
            && matches(self.gpu, gpu)
    }
}

fn rules() -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for line in EXPECTED.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let (fields, ends_comparison) = match fields.split_last() {
            Some((&"end", fields)) => (fields, true),
            _ => (&fields[..], false),
        };
        let [calls, notes, simulator, gpu, reason] = fields[..] else {
            anyhow::bail!("expected.txt: a line has five fields, and may end with `end`: {line}");
        };
        rules.push(Rule {
            calls: calls.split(", ").collect(),
            notes,
            simulator,
            gpu,
            reason,
            ends_comparison,
        });
    }
    Ok(rules)
}

/// Returns `true` if a text equals a pattern, of which each `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut remaining) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return remaining.is_empty();
    };
    for part in middle {
        let Some((_, after)) = remaining.split_once(part) else {
            return false;
        };
        remaining = after;
    }
    remaining.ends_with(last)
}
