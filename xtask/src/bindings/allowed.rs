//! The committed list of harmless differences, each with its reason.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::difference::{Difference, Kind};
use crate::version::{Release, VersionRange};

/// The list in `xtask/allowed-differences.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    difference: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    versions: VersionRange,
    kind: Kind,
    name: String,
    reason: String,
}

/// The result of comparing the differences of one release with the list.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) allowed: usize,
    pub(crate) not_allowed: Vec<Difference>,
    /// Entries that name this release although it does not need them.
    pub(crate) stale: Vec<String>,
}

impl Allowed {
    /// Reads the list at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let list: Self = toml::from_str(text)?;
        for entry in &list.difference {
            ensure!(
                entry.reason.trim().ends_with('.'),
                "{} {}: the reason must end with a dot",
                entry.kind,
                entry.name
            );
        }
        Ok(list)
    }

    /// Sorts the differences of `release` into allowed and not allowed ones.
    pub(crate) fn judge(&self, release: Release, differences: Vec<Difference>) -> Verdict {
        let mut verdict = Verdict::default();
        let mut needed = BTreeSet::new();
        for difference in differences {
            let entries = self.difference.iter().enumerate();
            let matching: Vec<_> = entries
                .filter(|(_, entry)| entry.allows(&difference))
                .map(|(index, _)| index)
                .collect();
            if matching.is_empty() {
                verdict.not_allowed.push(difference);
            } else {
                verdict.allowed += 1;
                needed.extend(matching);
            }
        }
        let entries = self
            .difference
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.versions.contains(release.version));
        verdict.stale = entries
            .filter(|(index, _)| !needed.contains(index))
            .map(|(_, entry)| {
                format!(
                    "{release}: no {} {} differs; its entry is stale",
                    entry.kind, entry.name
                )
            })
            .collect();
        verdict
    }
}

impl Entry {
    fn allows(&self, difference: &Difference) -> bool {
        self.versions.contains(difference.release.version)
            && self.kind == difference.kind
            && self.name == difference.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    const LIST: &str = r#"
        [[difference]]
        versions = "12.0-12.9"
        kind = "size"
        name = "CUpair_st"
        reason = "It only lives inside a union of fixed size."
    "#;

    const RELEASE: Release = Release::cuda(Version::from_raw(12040));

    fn difference(kind: Kind, name: &str) -> Difference {
        Difference {
            release: RELEASE,
            kind,
            name: name.to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn listed_difference_is_allowed() {
        let list = Allowed::parse(LIST).expect("the list is valid");
        let verdict = list.judge(RELEASE, vec![difference(Kind::Size, "CUpair_st")]);
        assert_eq!(
            (
                verdict.allowed,
                verdict.not_allowed.len(),
                verdict.stale.len()
            ),
            (1, 0, 0)
        );
    }

    #[test]
    fn other_difference_is_not_allowed() {
        let list = Allowed::parse(LIST).expect("the list is valid");
        let differences = vec![
            difference(Kind::Alignment, "CUpair_st"),
            difference(Kind::Size, "CUother_st"),
        ];
        let verdict = list.judge(RELEASE, differences.clone());
        assert_eq!(verdict.not_allowed, differences);
    }

    #[test]
    fn unneeded_entry_is_stale_for_that_version() {
        let list = Allowed::parse(LIST).expect("the list is valid");
        let stale = list.judge(RELEASE, Vec::new()).stale;
        assert_eq!(
            stale,
            ["CUDA 12.4: no size CUpair_st differs; its entry is stale"]
        );
        assert!(
            list.judge(Release::cuda(Version::from_raw(13000)), Vec::new())
                .stale
                .is_empty()
        );
    }

    #[test]
    fn entry_without_a_reason_is_an_error() {
        let error =
            Allowed::parse(&LIST.replace("It only lives inside a union of fixed size.", ""));
        assert!(
            error
                .expect_err("there is no reason")
                .to_string()
                .contains("CUpair_st")
        );
    }
}
