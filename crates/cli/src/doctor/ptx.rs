//! The header of PTX files.

use curium_format::{Target, ptx};

/// Major and minor version.
type Version = (u32, u32);

/// The header of PTX.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Header {
    /// The PTX version.
    pub(crate) version: Version,
    /// The target, such as `sm_90a`.
    pub(crate) target: String,
}

impl Header {
    /// Parses the header of `text`, if it is PTX.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let header = ptx::header(text)?;
        Some(Self {
            version: (header.version.major, header.version.minor),
            target: header.target.to_owned(),
        })
    }

    /// Returns `true` if a device of this compute capability can run the target; `None` for an
    /// unknown target.
    pub(crate) fn runs_on(&self, capability: Version) -> Option<bool> {
        let (major, minor) = capability;
        let device = major.checked_mul(10)?.checked_add(minor)?;
        Some(Target::parse(&self.target)?.runs_on(device))
    }
}

/// Parses two numbers separated by a dot.
pub(crate) fn pair(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
