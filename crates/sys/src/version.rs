//! CUDA versions.

use core::fmt;

/// A CUDA version as `cuDriverGetVersion` reports it: 1000 × major + 10 × minor.
///
/// ```
/// use curium_sys::CudaVersion;
///
/// assert_eq!(CudaVersion::new(12, 4).to_string(), "12.4");
/// assert_eq!(CudaVersion::from_raw(13050), CudaVersion::new(13, 5));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CudaVersion(u32);

impl CudaVersion {
    /// The oldest driver that Curium supports.
    pub const OLDEST_SUPPORTED: Self = Self::new(11, 8);
    /// The version of the header that the bindings were generated from.
    pub const NEWEST_KNOWN: Self = Self(crate::CUDA_VERSION);

    /// Returns the version `major.minor`, saturating at the largest number.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(
            major
                .saturating_mul(1000)
                .saturating_add(minor.saturating_mul(10)),
        )
    }

    /// Converts a version number of the driver, such as 12040 for 12.4.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the version number of the driver, such as 12040 for 12.4.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Returns the major version.
    #[must_use]
    pub const fn major(self) -> u32 {
        self.0 / 1000
    }

    /// Returns the minor version.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.0 % 1000 / 10
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major(), self.minor())
    }
}
