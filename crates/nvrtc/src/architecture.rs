//! What PTX is compiled for.

use std::fmt;

use curium_driver::ComputeCapability;

/// A virtual architecture: the least that a device must be able to do to run the PTX, such as `compute_75`.
///
/// ```
/// use curium_nvrtc::Architecture;
///
/// assert_eq!(Architecture::new(7, 5).to_string(), "compute_75");
/// assert_eq!(Architecture::new(9, 0).specific().to_string(), "compute_90a");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Architecture {
    capability: ComputeCapability,
    features: Features,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Features {
    Portable,
    Family,
    Specific,
}

impl Architecture {
    /// The architecture of compute capability `major.minor`; every later device runs its PTX.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { capability: ComputeCapability { major, minor }, features: Features::Portable }
    }

    /// The same with the features that only its family of devices has, as in `compute_100f`. Needs NVRTC 12.9.
    #[must_use]
    pub const fn family(mut self) -> Self {
        self.features = Features::Family;
        self
    }

    /// The same with the features that only devices of exactly this capability have, as in `compute_90a`.
    #[must_use]
    pub const fn specific(mut self) -> Self {
        self.features = Features::Specific;
        self
    }

    /// The compute capability that a device needs at least.
    #[must_use]
    pub const fn capability(self) -> ComputeCapability {
        self.capability
    }
}

impl From<ComputeCapability> for Architecture {
    fn from(capability: ComputeCapability) -> Self {
        Self { capability, features: Features::Portable }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ComputeCapability { major, minor } = self.capability;
        let suffix = match self.features {
            Features::Portable => "",
            Features::Family => "f",
            Features::Specific => "a",
        };
        write!(formatter, "compute_{major}{minor}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_compiler() {
        let capability = ComputeCapability { major: 12, minor: 1 };
        assert_eq!(Architecture::from(capability).to_string(), "compute_121");
        assert_eq!(Architecture::new(10, 0).family().to_string(), "compute_100f");
        assert_eq!(Architecture::new(10, 0).family().specific().to_string(), "compute_100a");
    }
}
