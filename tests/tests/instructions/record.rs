//! What a GPU gave, in a text: a line for each form.
//!
//! A form that is exact has the hash of every 32 results, so that a difference is found with its operands; of one that is
//! approximate, all results stand there, because no other computes the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::form::{Expected, Form};
use crate::operands::{COUNT, hash};

/// Results of a hash.
pub(crate) const PART: usize = 32;

/// The results of forms by their names.
pub(crate) struct Record {
    /// The device and the driver.
    pub(crate) origin: String,
    lines: BTreeMap<String, String>,
}

impl Record {
    pub(crate) fn new(origin: String) -> Self {
        Self { origin, lines: BTreeMap::new() }
    }

    /// Reads what [`Record::text`] wrote.
    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let origin = lines.next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let lines = lines.filter_map(|line| line.split_once('\t'));
        Self { origin, lines: lines.map(|(name, results)| (name.to_owned(), results.to_owned())).collect() }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("# {}\n", self.origin);
        for (name, results) in &self.lines {
            writeln!(text, "{name}\t{results}").expect("a text takes all");
        }
        text
    }

    pub(crate) fn add(&mut self, form: &Form, results: &[u64]) {
        assert_eq!(results.len(), COUNT);
        let line = match form.expected {
            Expected::Bits(_) => results.chunks(PART).map(|part| digest(form, part)).collect(),
            Expected::Near { .. } => {
                let digits = (form.result.bits() / 4) as usize;
                results.iter().map(|bits| format!("{bits:0digits$x}")).collect()
            }
        };
        let before = self.lines.insert(form.name.clone(), line);
        assert!(before.is_none(), "two forms are called {}", form.name);
    }

    /// Returns the parts of the results that are others than those of the record, each by its first result. A form that is not in
    /// the record, or is approximate, has none.
    pub(crate) fn differing_parts(&self, form: &Form, results: &[u64]) -> Vec<usize> {
        let (Some(line), Expected::Bits(_)) = (self.lines.get(&form.name), &form.expected) else { return Vec::new() };
        let parts = results.chunks(PART).enumerate();
        let differs =
            |index: usize, part: &[u64]| line.get(4 * index..4 * index + 4) != Some(digest(form, part).as_str());
        parts.filter(|(index, part)| differs(*index, part)).map(|(index, _)| index * PART).collect()
    }

    /// Returns the results themselves, of a form that is approximate.
    pub(crate) fn values(&self, form: &Form) -> Option<Vec<u64>> {
        let Expected::Near { .. } = form.expected else { return None };
        let digits = (form.result.bits() / 4) as usize;
        let line = self.lines.get(&form.name)?;
        let number = |index: usize| u64::from_str_radix(line.get(index * digits..(index + 1) * digits)?, 16).ok();
        (0..COUNT).map(number).collect()
    }
}

/// 16 bits of a hash.
fn digest(form: &Form, results: &[u64]) -> String {
    let hash = hash(results.iter().flat_map(|bits| form.canonical(*bits).to_le_bytes()));
    format!("{:04x}", (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16)
}
