//! Target architectures of compilations.

use std::fmt;

use curium_driver::{ComputeCapability, Device};

use crate::Result;

/// A virtual architecture such as `compute_75`, which is the minimum compute capability of the PTX,
/// or a real architecture such as `sm_90`, for which NVRTC generates machine code.
///
/// ```
/// use curium_nvrtc::Architecture;
///
/// assert_eq!(Architecture::new(7, 5).to_string(), "compute_75");
/// assert_eq!(Architecture::new(9, 0).specific().to_string(), "compute_90a");
/// assert_eq!(Architecture::new(9, 0).real().to_string(), "sm_90");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Architecture {
    capability: ComputeCapability,
    features: Features,
    is_real: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Features {
    Portable,
    Family,
    Specific,
}

impl Architecture {
    /// Returns the virtual architecture of compute capability `major.minor`. Every later device
    /// runs its PTX.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self {
            capability: ComputeCapability { major, minor },
            features: Features::Portable,
            is_real: false,
        }
    }

    /// Returns the virtual architecture of `device`. An NVRTC that is older than the device may not
    /// support it, and a driver that is older than NVRTC rejects its PTX:
    /// [`Nvrtc::architecture_for`](crate::Nvrtc::architecture_for) returns an architecture that
    /// works with both.
    ///
    /// CUDA: `cuDeviceGetAttribute`.
    ///
    /// # Errors
    ///
    /// Returns the error of the driver.
    pub fn for_device(device: &Device) -> Result<Self> {
        Ok(Self::from(device.compute_capability()?))
    }

    /// Adds the family-specific features, as in `compute_100f`. Requires NVRTC of CUDA 12.9.
    #[must_use]
    pub const fn family(mut self) -> Self {
        self.features = Features::Family;
        self
    }

    /// Adds the architecture-specific features, as in `compute_90a`.
    #[must_use]
    pub const fn specific(mut self) -> Self {
        self.features = Features::Specific;
        self
    }

    /// Returns the real architecture of the same capability: the output is machine code, which runs
    /// on devices of the same major capability and an equal or later minor one.
    #[must_use]
    pub const fn real(mut self) -> Self {
        self.is_real = true;
        self
    }

    /// Returns `true` for a real architecture.
    #[must_use]
    pub const fn is_real(self) -> bool {
        self.is_real
    }

    /// Returns the minimum compute capability.
    #[must_use]
    pub const fn capability(self) -> ComputeCapability {
        self.capability
    }
}

impl From<ComputeCapability> for Architecture {
    fn from(capability: ComputeCapability) -> Self {
        Self::new(capability.major, capability.minor)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ComputeCapability { major, minor } = self.capability;
        let kind = if self.is_real { "sm" } else { "compute" };
        let suffix = match self.features {
            Features::Portable => "",
            Features::Family => "f",
            Features::Specific => "a",
        };
        write!(formatter, "{kind}_{major}{minor}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_compiler() {
        let capability = ComputeCapability {
            major: 12,
            minor: 1,
        };
        assert_eq!(Architecture::from(capability).to_string(), "compute_121");
        assert_eq!(
            Architecture::new(10, 0).family().to_string(),
            "compute_100f"
        );
        assert_eq!(
            Architecture::new(10, 0)
                .family()
                .specific()
                .real()
                .to_string(),
            "sm_100a"
        );
    }
}
