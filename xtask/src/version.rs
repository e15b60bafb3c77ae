//! Versions of CUDA and of the libraries with a numbering of their own, and ranges of them.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, Result, ensure};
use serde::Deserialize;

/// A version: `12.4` in text, 12040 in C.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(try_from = "String")]
pub(crate) struct Version(u32);

impl Version {
    /// Creates a version from the value of `CUDA_VERSION` in a header.
    pub(crate) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the value of `CUDA_VERSION` in its header.
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text
            .split_once('.')
            .and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
        let (major, minor) =
            numbers.with_context(|| format!("`{text}` is not a CUDA version, such as `12.4`"))?;
        ensure!(
            major < 1000 && minor < 100,
            "`{text}` is not a CUDA version"
        );
        Ok(Self(major * 1000 + minor * 10))
    }
}

impl TryFrom<String> for Version {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{}.{}", self.0 / 1000, self.0 % 1000 / 10))
    }
}

/// A version of a product, such as `CUDA 12.4`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Release {
    pub(crate) product: &'static str,
    pub(crate) version: Version,
}

impl Release {
    pub(crate) const fn cuda(version: Version) -> Self {
        Self {
            product: "CUDA",
            version,
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.product, self.version)
    }
}

/// An inclusive range of versions: `12.0-12.9`, or a single version.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(crate) struct VersionRange {
    first: Version,
    last: Version,
}

impl VersionRange {
    pub(crate) fn contains(self, version: Version) -> bool {
        (self.first..=self.last).contains(&version)
    }
}

impl TryFrom<String> for VersionRange {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let first = first.parse()?;
        let last = last.parse()?;
        ensure!(first <= last, "the range `{text}` ends before it begins");
        Ok(Self { first, last })
    }
}

/// Parses a decimal number without a sign, which `u32::from_str` would accept.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_as_written() {
        let version: Version = "12.4".parse().expect("invalid version");
        assert_eq!(
            (version, version.to_string().as_str()),
            (Version::from_raw(12040), "12.4")
        );
        assert_eq!(Version::from_raw(11080).to_string(), "11.8");
    }

    #[test]
    fn text_that_is_no_version_is_an_error() {
        for text in ["", "12", "12.", "+12.4", "12.x", "12.4.1", "9999999999.0"] {
            text.parse::<Version>().expect_err(text);
        }
    }

    #[test]
    fn range_contains_its_ends_and_the_values_between() {
        let range = VersionRange::try_from("12.0-12.9".to_owned()).expect("invalid range");
        assert!(
            range.contains(Version::from_raw(12000)) && range.contains(Version::from_raw(12090))
        );
        assert!(
            !range.contains(Version::from_raw(11080)) && !range.contains(Version::from_raw(13000))
        );
        VersionRange::try_from("12.4-12.1".to_owned()).expect_err("it ends before it begins");
    }
}
