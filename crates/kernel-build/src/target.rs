//! GPU architectures and versions of PTX.

use std::fmt;

use curium_format::{CudaVersion, PtxVersion, TargetVariant};

use crate::error::{Error, Result};

/// The oldest architecture that kernels are compiled for, times ten.
const OLDEST_ARCHITECTURE: u32 = 70;

/// A GPU architecture, such as `sm_80`. Newer GPUs run its PTX too, except with the suffix `a`
/// (this architecture only) or `f` (its family).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    target: curium_format::Target,
    ptx: PtxVersion,
}

/// Returns the architectures in ascending order.
fn architectures() -> impl Iterator<Item = curium_format::Target> {
    curium_format::Target::all().filter(|target| target.architecture >= OLDEST_ARCHITECTURE)
}

impl Target {
    /// Parses the name of an architecture, `sm_70` to `sm_121a`. The version of PTX is the oldest
    /// that has the architecture, but at least 7.8, which every driver since CUDA 11.8 reads.
    ///
    /// # Errors
    ///
    /// An error if there is no such architecture.
    pub fn new(name: &str) -> Result<Self> {
        let target = architectures().find(|target| target.to_string() == name);
        match target.and_then(|target| Some((target, target.first_ptx()?))) {
            Some((target, first)) => Ok(Self {
                target,
                ptx: CudaVersion::OLDEST_SUPPORTED
                    .newest_ptx()
                    .map_or(first, |oldest| first.max(oldest)),
            }),
            None => {
                let names: Vec<String> = architectures().map(|target| target.to_string()).collect();
                Err(Error::Source(format!(
                    "target `{name}`: no such architecture; the architectures are {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// Sets the version of PTX, such as `(8, 0)`. Newer versions have more instructions, and need a
    /// newer driver.
    ///
    /// # Errors
    ///
    /// An error if that version does not have the architecture.
    pub fn with_ptx_version(self, major: u32, minor: u32) -> Result<Self> {
        let ptx = PtxVersion::new(major, minor);
        let has_architecture = self.target.first_ptx().is_some_and(|first| ptx >= first);
        // The features of LLVM's back end have one digit for the minor version.
        if minor > 9 || !has_architecture {
            return Err(Error::Source(format!(
                "target `{self}`: PTX {ptx} does not have this architecture"
            )));
        }
        Ok(Self { ptx, ..self })
    }

    /// The compute capability.
    pub fn compute_capability(&self) -> (u32, u32) {
        let architecture = self.target.architecture;
        (architecture / 10, architecture % 10)
    }

    /// `a`, `f` or nothing.
    pub fn suffix(&self) -> &str {
        match self.target.variant {
            TargetVariant::Baseline => "",
            TargetVariant::Family => "f",
            TargetVariant::Architecture => "a",
        }
    }

    /// The version of PTX.
    pub fn ptx_version(&self) -> (u32, u32) {
        (self.ptx.major, self.ptx.minor)
    }

    /// The feature of LLVM's back end for the version of PTX.
    pub(crate) fn feature(&self) -> String {
        format!("+ptx{}{}", self.ptx.major, self.ptx.minor)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(formatter)
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
        // ptxas of CUDA 11 and later refuses PTX 6.5 for it.
        assert!(Target::new("sm_80")?.with_ptx_version(6, 5).is_err());
        assert!(Target::new("sm_70")?.with_ptx_version(6, 0).is_ok());
        Ok(())
    }
}
