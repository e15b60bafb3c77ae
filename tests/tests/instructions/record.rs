//! The results of a GPU as text: one line for each form.
//!
//! The line of an exact form has a hash of every 32 results, so that a difference can be traced to
//! its operands; the line of an approximate form has all results, because no reference computes the
//! same ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::form::{Expected, Form};
use crate::operands::{COUNT, hash};

/// The number of results in a hash.
pub(crate) const PART: usize = 32;

/// The results of forms by name.
pub(crate) struct Record {
    /// The device and the driver.
    pub(crate) origin: String,
    lines: BTreeMap<String, String>,
}

impl Record {
    pub(crate) fn new(origin: String) -> Self {
        Self {
            origin,
            lines: BTreeMap::new(),
        }
    }

    /// Parses the output of [`Record::text`].
    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let origin = lines
            .next()
            .unwrap_or_default()
            .trim_start_matches("# ")
            .to_owned();
        let lines = lines.filter_map(|line| line.split_once('\t'));
        Self {
            origin,
            lines: lines
                .map(|(name, results)| (name.to_owned(), results.to_owned()))
                .collect(),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("# {}\n", self.origin);
        for (name, results) in &self.lines {
            writeln!(text, "{name}\t{results}").expect("writing a string failed");
        }
        text
    }

    pub(crate) fn add(&mut self, form: &Form, results: &[u64]) {
        assert_eq!(results.len(), COUNT);
        let line = match form.expected {
            Expected::Bits(_) => results
                .chunks(PART)
                .map(|part| digest(form, part))
                .collect(),
            Expected::Near { .. } => {
                let digits = (form.result.bits() / 4) as usize;
                results
                    .iter()
                    .map(|bits| format!("{bits:0digits$x}"))
                    .collect()
            }
        };
        let before = self.lines.insert(form.name.clone(), line);
        assert!(before.is_none(), "two forms are called {}", form.name);
    }

    /// Returns the parts that differ from the record, each as the index of its first result. Forms
    /// that are not in the record, or are approximate, have none.
    pub(crate) fn differing_parts(&self, form: &Form, results: &[u64]) -> Vec<usize> {
        let (Some(line), Expected::Bits(_)) = (self.lines.get(&form.name), &form.expected) else {
            return Vec::new();
        };
        let parts = results.chunks(PART).enumerate();
        let differs = |index: usize, part: &[u64]| {
            line.get(4 * index..4 * index + 4) != Some(digest(form, part).as_str())
        };
        parts
            .filter(|(index, part)| differs(*index, part))
            .map(|(index, _)| index * PART)
            .collect()
    }

    /// Returns the recorded results of an approximate form.
    pub(crate) fn values(&self, form: &Form) -> Option<Vec<u64>> {
        let Expected::Near { .. } = form.expected else {
            return None;
        };
        let digits = (form.result.bits() / 4) as usize;
        let line = self.lines.get(&form.name)?;
        (0..COUNT)
            .map(|index: usize| {
                u64::from_str_radix(line.get(index * digits..(index + 1) * digits)?, 16).ok()
            })
            .collect()
    }
}

/// Returns 16 bits of a hash.
fn digest(form: &Form, results: &[u64]) -> String {
    let hash = hash(
        results
            .iter()
            .flat_map(|bits| form.canonical(*bits).to_le_bytes()),
    );
    format!(
        "{:04x}",
        (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16
    )
}
