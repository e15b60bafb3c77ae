//! `docs/not-wrapped.md`: the functions that are not wrapped, with reasons.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};

use super::area::Area;

/// The tables of the page.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    section: Section,
    pattern: Pattern,
    reason: String,
}

/// The functions that an entry covers.
#[derive(Debug)]
enum Pattern {
    Name(String),
    /// All functions with this prefix: `cuTexRef*`.
    Beginning(String),
    /// All functions of a part of the API that are not wrapped, in words.
    Area(Area),
}

/// A table of the page, by its heading.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Section {
    /// Functions that CUDA deprecates or has superseded.
    Retired,
    /// Functions that are useful, but not in Curium.
    Left,
    /// Functions that will be wrapped.
    ToCome,
}

impl Reasons {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut reasons = Self::default();
        let mut section = None;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = Some(Section::from_heading(heading)?);
            } else if is_row(line) {
                let section =
                    section.with_context(|| format!("`{line}` stands under no heading"))?;
                reasons
                    .add(section, line)
                    .with_context(|| line.to_owned())?;
            }
        }
        Ok(reasons)
    }

    /// Returns the reason why the function called `name` is not wrapped.
    pub(crate) fn find(&self, name: &str) -> Option<(Section, &str)> {
        let entry = self.entries.iter().find(|entry| entry.matches(name))?;
        Some((entry.section, &entry.reason))
    }

    /// Returns a line for each entry that matches no function, or a wrapped one.
    pub(crate) fn stale(
        &self,
        names: &BTreeSet<String>,
        wrapped: &BTreeSet<String>,
    ) -> Vec<String> {
        self.entries
            .iter()
            .filter_map(|entry| entry.stale(names, wrapped))
            .collect()
    }

    fn add(&mut self, section: Section, row: &str) -> Result<()> {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        let (Some(patterns), Some(reason), None) = (cells.next(), cells.next(), cells.next())
        else {
            bail!("the row has not two cells");
        };
        ensure!(reason.ends_with('.'), "the reason is not a sentence");
        for pattern in patterns.split(", ") {
            self.entries.push(Entry {
                section,
                pattern: Pattern::parse(pattern)?,
                reason: reason.to_owned(),
            });
        }
        Ok(())
    }
}

impl Entry {
    fn matches(&self, name: &str) -> bool {
        match &self.pattern {
            Pattern::Name(pattern) => pattern == name,
            Pattern::Beginning(beginning) => name.starts_with(beginning),
            Pattern::Area(area) => Area::from_name(name) == *area,
        }
    }

    fn stale(&self, names: &BTreeSet<String>, wrapped: &BTreeSet<String>) -> Option<String> {
        let pattern = &self.pattern;
        let matching: Vec<_> = names.iter().filter(|name| self.matches(name)).collect();
        let wrapped: Vec<_> = matching
            .iter()
            .filter(|name| wrapped.contains(**name))
            .map(|name| name.as_str())
            .collect();
        if wrapped.len() == matching.len() {
            return Some(format!(
                "{pattern} stands for no function that is not wrapped"
            ));
        }
        let is_final = self.section != Section::ToCome;
        (is_final && !wrapped.is_empty())
            .then(|| format!("{pattern} is listed, but {} is wrapped", wrapped.join(", ")))
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self> {
        if let Some(area) = Area::ALL.into_iter().find(|area| area.to_string() == text) {
            return Ok(Self::Area(area));
        }
        let name = text
            .strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'));
        let name = name
            .with_context(|| format!("{text} is no part of the driver, nor a name in backticks"))?;
        Ok(match name.strip_suffix('*') {
            Some(beginning) => Self::Beginning(beginning.to_owned()),
            None => Self::Name(name.to_owned()),
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Beginning(beginning) => write!(formatter, "{beginning}*"),
            Self::Area(area) => area.fmt(formatter),
        }
    }
}

/// Returns `true` for a row of a table other than its header.
fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| function ")
}

impl Section {
    fn from_heading(heading: &str) -> Result<Self> {
        Ok(match heading {
            "Retired" => Self::Retired,
            "Left out" => Self::Left,
            "To come" => Self::ToCome,
            _ => bail!("there is no section `{heading}`"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Title\n\n## Retired\n\n| function | reason |\n|---|---|\n| `cuOld*`, `cuGone` | They are old. |\n\n\
                        ## To come\n\n| `cuNext*`, Graphs | They are to come. |\n";

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn rows_give_reasons_to_names_and_prefixes() {
        let reasons = Reasons::parse(PAGE).expect("the page is valid");
        assert_eq!(
            reasons.find("cuGone"),
            Some((Section::Retired, "They are old."))
        );
        assert_eq!(
            reasons.find("cuOldSet"),
            Some((Section::Retired, "They are old."))
        );
        assert_eq!(
            reasons.find("cuNextSet"),
            Some((Section::ToCome, "They are to come."))
        );
        assert_eq!(
            reasons.find("cuGraphCreate"),
            Some((Section::ToCome, "They are to come."))
        );
        assert_eq!(reasons.find("cuGoneSet"), None);
    }

    /// An entry is stale if its function is wrapped or does not exist.
    #[test]
    fn entry_without_a_purpose_is_stale() {
        let reasons = Reasons::parse(PAGE).expect("the page is valid");
        let all = names(&["cuOldA", "cuOldB", "cuNextA", "cuNextB", "cuGraphA"]);
        let stale = reasons.stale(&all, &names(&["cuOldA", "cuNextA"]));
        assert_eq!(
            stale,
            [
                "cuOld* is listed, but cuOldA is wrapped",
                "cuGone stands for no function that is not wrapped"
            ]
        );
        let stale = reasons.stale(
            &names(&["cuOldA", "cuGone", "cuNextA", "cuGraphA"]),
            &names(&["cuNextA"]),
        );
        assert_eq!(
            stale,
            ["cuNext* stands for no function that is not wrapped"]
        );
    }

    #[test]
    fn row_without_a_reason_is_an_error() {
        let error =
            Reasons::parse(&PAGE.replace("They are old.", "")).expect_err("there is no reason");
        assert!(format!("{error:#}").contains("cuOld*"), "{error:#}");
    }
}
