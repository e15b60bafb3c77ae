//! Targets of PTX and of compiled code.

use core::fmt;

use crate::PtxVersion;
use crate::generated::versions::TARGETS;

/// A target of PTX or of compiled code, such as `sm_90a`.
///
/// ```
/// use curium_format::{PtxVersion, Target};
///
/// let target = Target::parse("sm_100f").ok_or("not a target")?;
/// assert_eq!(target.first_ptx(), Some(PtxVersion::new(8, 8)));
/// assert!(target.runs_on(103) && !target.runs_on(120));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Target {
    /// The compute capability times ten: 90 for `sm_90a`.
    pub architecture: u32,
    /// The suffix.
    pub variant: TargetVariant,
}

/// The devices of a [`Target`], from the most general to the most specific.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TargetVariant {
    /// `sm_90`: this architecture and newer ones.
    Baseline,
    /// `sm_100f`: this architecture and newer ones of its family.
    Family,
    /// `sm_90a`: this architecture only.
    Architecture,
}

/// A row of the table of targets.
pub(crate) struct TargetRelease {
    pub(crate) target: Target,
    pub(crate) ptx: PtxVersion,
}

/// The architecture that CUDA 13.0 renamed, and its new name.
const RENAMED: (u32, u32) = (101, 110);

impl Target {
    /// Parses the name of a real or virtual architecture, such as `sm_90a` or `compute_90a`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let number = name
            .strip_prefix("sm_")
            .or_else(|| name.strip_prefix("compute_"))?;
        let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let variant = match &number[digits.len()..] {
            "" => TargetVariant::Baseline,
            "f" => TargetVariant::Family,
            "a" => TargetVariant::Architecture,
            _ => return None,
        };
        // `u32::from_str` would accept a sign.
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self {
            architecture: digits.parse().ok().filter(|_| is_number)?,
            variant,
        })
    }

    /// Returns every released target from `sm_32` on, in ascending order.
    pub fn all() -> impl Iterator<Item = Self> {
        TARGETS.iter().map(|release| release.target)
    }

    /// Returns the first PTX version that supports the target.
    ///
    /// Returns `None` if it is unknown: for targets that do not exist or are older than `sm_32`.
    #[must_use]
    pub fn first_ptx(self) -> Option<PtxVersion> {
        TARGETS
            .iter()
            .find(|release| release.target == self)
            .map(|release| release.ptx)
    }

    /// Returns `true` if a device of this compute capability, times ten, can run code for the
    /// target.
    #[must_use]
    pub fn runs_on(self, device: u32) -> bool {
        let architecture = current_name(self.architecture);
        let device_architecture = current_name(device);
        match self.variant {
            TargetVariant::Baseline => self.architecture <= device,
            TargetVariant::Family => {
                architecture <= device_architecture && architecture / 10 == device_architecture / 10
            }
            TargetVariant::Architecture => architecture == device_architecture,
        }
    }
}

/// Returns the present name of an architecture.
fn current_name(architecture: u32) -> u32 {
    let (former, current) = RENAMED;
    if architecture == former {
        current
    } else {
        architecture
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.variant {
            TargetVariant::Baseline => "",
            TargetVariant::Family => "f",
            TargetVariant::Architecture => "a",
        };
        write!(formatter, "sm_{}{suffix}", self.architecture)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;

    #[test]
    fn name_of_every_target_is_parsed() {
        for target in Target::all() {
            assert_eq!(Target::parse(&target.to_string()), Some(target));
        }
        assert_eq!(Target::parse("compute_90a"), Target::parse("sm_90a"));
    }

    #[test]
    fn other_names_are_no_targets() {
        for name in [
            "",
            "90",
            "sm_",
            "sm_a",
            "sm_+90",
            "sm_90b",
            "sm_90aa",
            "sm_90A",
            "gfx90a",
            "compute",
            "sm_4294967296",
            "sm_\u{663}",
        ] {
            assert_eq!(Target::parse(name), None, "{name:?}");
        }
    }

    #[test]
    fn suffix_limits_the_devices() -> Result<(), std::string::String> {
        for (target, devices) in [
            ("sm_90", &[90, 100, 101, 103, 107, 110, 120, 121][..]),
            ("sm_90a", &[90]),
            ("sm_100f", &[100, 103, 107]),
            ("sm_103f", &[103, 107]),
            ("sm_120f", &[120, 121]),
            ("sm_101f", &[101, 110]),
            ("sm_101a", &[101, 110]),
            ("sm_110f", &[101, 110]),
        ] {
            let parsed = Target::parse(target).ok_or(target)?;
            for device in [75, 90, 100, 101, 103, 107, 110, 120, 121] {
                let expected = devices.contains(&device);
                assert_eq!(parsed.runs_on(device), expected, "{target} on {device}");
            }
        }
        Ok(())
    }

    /// The order of targets is that of preference among those that a device can run.
    #[test]
    fn more_specific_target_is_greater() -> Result<(), &'static str> {
        let names = ["sm_90", "sm_100", "sm_100f", "sm_100a", "sm_103"];
        let targets = names.map(Target::parse);
        assert!(targets.is_sorted_by(|one, next| one < next));
        assert!(targets.iter().all(Option::is_some));
        Ok(())
    }
}
