//! Expected and actual results of the packages' own tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The number of slow tests that are printed.
const SLOWEST: usize = 10;

/// The entry of one program in `expected.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    name: String,
    pub(super) version: String,
    /// The tests that run, in a few words.
    pub(super) about: String,
    /// The CPU time of a run of its own tests in minutes, if it was measured.
    pub(super) cpu_minutes: Option<f64>,
    /// The minimum number of its own tests that pass.
    #[serde(default)]
    pub(super) passed: usize,
    /// Tests that fail, each with the reason.
    #[serde(default)]
    pub(super) fails: BTreeMap<String, String>,
    /// Tests that are not run, each with the reason.
    #[serde(default)]
    pub(super) left_out: BTreeMap<String, String>,
}

/// The contents of `expected.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    pub(super) program: Vec<Expected>,
}

/// The results of a package's tests.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcomes {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    ignored: usize,
    /// The CPU times of tests in seconds, if they are known.
    seconds: BTreeMap<String, f64>,
}

/// Reads the list in this folder.
pub(super) fn read(folder: &Path) -> Result<List> {
    let path = folder.join("expected.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

impl List {
    /// Returns the expectations for one program.
    pub(super) fn find(&self, name: &str) -> Result<&Expected> {
        self.program
            .iter()
            .find(|expected| expected.name == name)
            .with_context(|| format!("expected.toml lacks {name}"))
    }
}

impl Outcomes {
    /// Parses lines such as `test NAME ... ok`, written by Rust's tests, and `test NAME ... ok, 1.2
    /// s`, written by our pytest plugin. A test that has started and has no outcome crashed or was
    /// killed: it failed.
    pub(super) fn read(text: &str) -> Self {
        let mut outcomes = Self::default();
        let tests = text
            .lines()
            .filter_map(|line| line.strip_prefix("test ")?.rsplit_once(" ... "));
        for (name, outcome) in tests {
            // The name of a test that should panic is followed by a remark.
            let name = name.split(" - ").next().unwrap_or(name).to_owned();
            let (outcome, remark) = outcome.split_once(", ").unwrap_or((outcome, ""));
            if let Some(seconds) = remark.strip_suffix(" s").and_then(|text| text.parse().ok()) {
                outcomes.seconds.insert(name.clone(), seconds);
            }
            outcomes.failed.remove(&name);
            match outcome {
                "ok" => drop(outcomes.passed.insert(name)),
                "FAILED" | "begun" => drop(outcomes.failed.insert(name)),
                _ => outcomes.ignored += 1,
            }
        }
        outcomes
    }

    /// Returns the tests that took the most CPU time, the slowest first.
    fn slowest(&self) -> Vec<(&str, f64)> {
        let mut tests: Vec<_> = self
            .seconds
            .iter()
            .map(|(name, seconds)| (name.as_str(), *seconds))
            .collect();
        tests.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        tests.truncate(SLOWEST);
        tests
    }
}

impl Expected {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the table's summary of the outcomes, or an error if they are worse than expected or
    /// better than the list.
    pub(super) fn compare(&self, outcomes: &Outcomes) -> Result<String> {
        let run = outcomes.passed.len() + outcomes.failed.len();
        let counts = format!("{} of {run} pass", outcomes.passed.len());
        println!(
            "{counts}, {} skipped, {} left out",
            outcomes.ignored,
            self.left_out.len()
        );
        for (name, seconds) in outcomes.slowest() {
            println!("{seconds:8.1} s of CPU time: {name}");
        }
        let unexpected: Vec<_> = outcomes
            .failed
            .iter()
            .filter(|name| !self.fails.contains_key(*name))
            .collect();
        ensure!(
            unexpected.is_empty(),
            "{counts}; these should not fail: {unexpected:#?}"
        );
        let mended: Vec<_> = self
            .fails
            .keys()
            .filter(|name| outcomes.passed.contains(*name))
            .collect();
        ensure!(
            mended.is_empty(),
            "{counts}; these pass, so remove them from the list of failures: {mended:#?}"
        );
        ensure!(
            outcomes.passed.len() >= self.passed,
            "{counts}, but {} should pass",
            self.passed
        );
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "running 4 tests\ntest a::b ... ok\ntest a::c - should panic ... ok\ntest d ... FAILED\n\
                        test e ... ignored, needs two devices\n\ntest result: FAILED. 2 passed; 1 failed\n";

    #[test]
    fn test_that_has_begun_and_not_ended_has_failed() {
        let outcomes = Outcomes::read(
            "test a ... begun\ntest a ... ok\ntest b ... begun\ntest c ... begun\ntest c ... ignored\n",
        );
        assert_eq!(outcomes.passed, BTreeSet::from(["a".to_owned()]));
        assert_eq!(outcomes.failed, BTreeSet::from(["b".to_owned()]));
        assert_eq!(outcomes.ignored, 1);
    }

    #[test]
    fn cpu_times_are_read_and_sorted() {
        let outcomes = Outcomes::read(
            "test a ... begun\ntest a ... ok, 0.5 s\ntest b ... FAILED, 12.0 s\ntest c ... ignored, no GPU\n",
        );
        assert_eq!(outcomes.passed, BTreeSet::from(["a".to_owned()]));
        assert_eq!(outcomes.failed, BTreeSet::from(["b".to_owned()]));
        assert_eq!(outcomes.ignored, 1);
        assert_eq!(outcomes.slowest(), [("b", 12.0), ("a", 0.5)]);
    }

    fn expected(passed: usize, fails: &str) -> Expected {
        let text = format!(
            "name = \"n\"\nversion = \"1\"\nabout = \"\"\npassed = {passed}\n[fails]\n{fails}"
        );
        toml::from_str(&text).expect("invalid table")
    }

    #[test]
    fn only_test_lines_are_read() {
        let outcomes = Outcomes::read(TEXT);
        assert_eq!(
            outcomes.passed,
            BTreeSet::from(["a::b".to_owned(), "a::c".to_owned()])
        );
        assert_eq!(outcomes.failed, BTreeSet::from(["d".to_owned()]));
        assert_eq!(outcomes.ignored, 1);
    }

    /// Outcomes match only if no other test fails and enough tests pass.
    #[test]
    fn unexpected_outcomes_are_detected() {
        let outcomes = Outcomes::read(TEXT);
        assert_eq!(
            expected(2, "d = \"why\"")
                .compare(&outcomes)
                .expect("the outcomes are expected"),
            "2 of 3 pass"
        );
        for (passed, fails, part) in [
            (2, "", "should not fail"),
            (3, "d = \"why\"", "but 3 should pass"),
            (
                1,
                "d = \"why\"\n\"a::b\" = \"why\"",
                "remove them from the list",
            ),
        ] {
            let error = expected(passed, fails)
                .compare(&outcomes)
                .expect_err(part)
                .to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
