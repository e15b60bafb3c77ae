//! GPU architectures and versions of PTX.

use std::fmt;

use crate::error::{Error, Result};

/// The newest driver of CUDA 11.8 reads PTX of this version.
const OLDEST_PTX: u32 = 78;

/// The architectures, and the oldest version of PTX that has them.
const ARCHITECTURES: &[(&str, u32)] = &[
    ("70", OLDEST_PTX),
    ("72", OLDEST_PTX),
    ("75", OLDEST_PTX),
    ("80", OLDEST_PTX),
    ("86", OLDEST_PTX),
    ("87", OLDEST_PTX),
    ("88", 90),
    ("89", OLDEST_PTX),
    ("90", OLDEST_PTX),
    ("90a", 80),
    ("100", 86),
    ("100a", 86),
    ("100f", 88),
    ("101", 86),
    ("101a", 86),
    ("101f", 88),
    ("103", 88),
    ("103a", 88),
    ("103f", 88),
    ("110", 90),
    ("110a", 90),
    ("110f", 90),
    ("120", 87),
    ("120a", 87),
    ("120f", 88),
    ("121", 88),
    ("121a", 88),
    ("121f", 88),
];

/// A GPU architecture, such as `sm_80`. Newer GPUs run its PTX too, except with the suffix `a` (this architecture only) or `f` (its family).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    major: u32,
    minor: u32,
    suffix: String,
    ptx: u32,
}

impl Target {
    /// Parses the name of an architecture, `sm_70` to `sm_121a`. The version of PTX is the oldest that has the architecture, but at least
    /// 7.8, which every driver since CUDA 11.8 reads.
    ///
    /// # Errors
    ///
    /// An error if there is no such architecture.
    pub fn new(name: &str) -> Result<Self> {
        let unknown = || {
            let names: Vec<String> = ARCHITECTURES
                .iter()
                .map(|(name, _)| format!("sm_{name}"))
                .collect();
            Error::Source(format!(
                "target `{name}`: no such architecture; the architectures are {}",
                names.join(", ")
            ))
        };
        let number = name.strip_prefix("sm_").ok_or_else(unknown)?;
        let (_, ptx) = ARCHITECTURES
            .iter()
            .find(|(architecture, _)| *architecture == number)
            .ok_or_else(unknown)?;
        let digits = number.trim_end_matches(['a', 'f']);
        let version: u32 = digits.parse().map_err(|_| unknown())?;
        Ok(Self {
            major: version / 10,
            minor: version % 10,
            suffix: number[digits.len()..].to_owned(),
            ptx: *ptx,
        })
    }

    /// Sets the version of PTX, such as `(8, 0)`. Newer versions have more instructions, and need a newer driver.
    ///
    /// # Errors
    ///
    /// An error if that version does not have the architecture.
    pub fn with_ptx_version(self, major: u32, minor: u32) -> Result<Self> {
        let ptx = major * 10 + minor;
        let name = self.to_string();
        let number = name.trim_start_matches("sm_");
        let oldest = ARCHITECTURES
            .iter()
            .find(|(architecture, _)| *architecture == number);
        // The entries of old architectures are limited by drivers, not by PTX.
        let is_known = oldest
            .is_some_and(|(_, oldest)| ptx >= *oldest || (*oldest == OLDEST_PTX && ptx >= 63));
        if minor > 9 || !is_known {
            return Err(Error::Source(format!(
                "target `{name}`: PTX {major}.{minor} does not have this architecture"
            )));
        }
        Ok(Self { ptx, ..self })
    }

    /// The compute capability.
    pub fn compute_capability(&self) -> (u32, u32) {
        (self.major, self.minor)
    }

    /// `a`, `f` or nothing.
    pub fn suffix(&self) -> &str {
        &self.suffix
    }

    /// The version of PTX.
    pub fn ptx_version(&self) -> (u32, u32) {
        (self.ptx / 10, self.ptx % 10)
    }

    /// The feature of LLVM's back end for the version of PTX.
    pub(crate) fn feature(&self) -> String {
        format!("+ptx{}", self.ptx)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sm_{}{}{}", self.major, self.minor, self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_versions_of_ptx() -> Result<()> {
        let target = Target::new("sm_90a")?;
        assert_eq!(target.compute_capability(), (9, 0));
        assert_eq!(target.suffix(), "a");
        assert_eq!(target.ptx_version(), (8, 0));
        assert_eq!(target.to_string(), "sm_90a");
        assert_eq!(Target::new("sm_121")?.compute_capability(), (12, 1));
        assert_eq!(
            Target::new("sm_80")?.with_ptx_version(8, 5)?.feature(),
            "+ptx85"
        );
        Ok(())
    }

    #[test]
    fn unknown_targets_are_refused() -> Result<()> {
        for name in ["sm_69", "80", "sm_80a", "compute_80", "sm_"] {
            assert!(Target::new(name).is_err(), "{name}");
        }
        assert!(Target::new("sm_120")?.with_ptx_version(8, 0).is_err());
        Ok(())
    }
}
