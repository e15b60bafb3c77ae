//! The outcome of the programs of tests.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The counts of one or several programs of tests.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) ignored: usize,
    /// The names of failed tests.
    pub(crate) failed: Vec<String>,
    /// The names of tests that are left out, each with the reason.
    pub(crate) skipped: Vec<String>,
}

impl Outcome {
    /// Runs a command, shows what it writes, and counts its tests.
    pub(crate) fn from_command(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{command:?} cannot be run"))?;
        let output = child.stdout.take().context("the output is a pipe")?;
        let mut outcome = Self::default();
        let mut is_complete = false;
        for line in BufReader::new(output).lines() {
            let line = line?;
            if outcome.read(&line) {
                is_complete = true;
            }
            println!("{line}");
        }
        let status = child.wait()?;
        ensure!(
            is_complete,
            "no test was run, or the program died: it ended with {status}"
        );
        ensure!(
            status.success() || !outcome.failed.is_empty(),
            "it ended with {status}"
        );
        Ok(outcome)
    }

    /// Reads a line of a test program, and returns `true` for its last.
    fn read(&mut self, line: &str) -> bool {
        if let Some(test) = line
            .strip_prefix("test ")
            .and_then(|result| result.trim_end().strip_suffix(" ... FAILED"))
        {
            self.failed.push(test.to_owned());
        }
        let Some(counts) = line.strip_prefix("test result: ") else {
            return false;
        };
        self.passed += count(counts, "passed");
        self.ignored += count(counts, "ignored");
        true
    }
}

/// Returns the count of one outcome in a list such as `ok. 3 passed; 0 failed; 2 ignored`.
fn count(counts: &str, outcome: &str) -> usize {
    let suffix = format!(" {outcome}");
    counts
        .split(['.', ';'])
        .find_map(|count| count.strip_suffix(&suffix)?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_programs_add_up() {
        let mut outcome = Outcome::default();
        assert!(!outcome.read("test stream::waits ... FAILED"));
        assert!(!outcome.read("test stream::ends ... ok"));
        let last = "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 7 filtered out; finished in 0.1s";
        assert!(outcome.read(last) && outcome.read(last));
        let failed = vec!["stream::waits".to_owned()];
        assert_eq!(
            outcome,
            Outcome {
                passed: 6,
                ignored: 4,
                failed,
                skipped: Vec::new()
            }
        );
    }
}
