//! Versions of CUDA and PTX.

use core::fmt;

use crate::generated::versions::RELEASES;

/// A CUDA version as `cuDriverGetVersion` reports it: 1000 × major + 10 × minor.
///
/// ```
/// use curium_format::CudaVersion;
///
/// assert_eq!(CudaVersion::new(12, 4).to_string(), "12.4");
/// assert_eq!(CudaVersion::from_raw(13050), CudaVersion::new(13, 5));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CudaVersion(u32);

/// A version of the PTX ISA.
///
/// ```
/// use curium_format::PtxVersion;
///
/// assert!(PtxVersion::new(8, 10) > PtxVersion::new(8, 9));
/// assert_eq!(PtxVersion::new(8, 7).to_string(), "8.7");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PtxVersion {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

/// A PTX version, with the CUDA version that introduced it.
pub(crate) struct PtxRelease {
    pub(crate) ptx: PtxVersion,
    pub(crate) cuda: CudaVersion,
}

impl CudaVersion {
    /// The oldest driver that Curium supports.
    pub const OLDEST_SUPPORTED: Self = Self::new(11, 8);
    /// The newest CUDA version whose headers and PTX version Curium knows.
    pub const NEWEST_KNOWN: Self = RELEASES[RELEASES.len() - 1].cuda;

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

    /// Returns the newest PTX version that drivers of this CUDA version accept.
    ///
    /// Returns `None` if it is unknown: for CUDA older than 1.0 or newer than
    /// [`CudaVersion::NEWEST_KNOWN`].
    ///
    /// ```
    /// use curium_format::{CudaVersion, PtxVersion};
    ///
    /// assert_eq!(CudaVersion::new(12, 6).newest_ptx(), Some(PtxVersion::new(8, 5)));
    /// ```
    #[must_use]
    pub fn newest_ptx(self) -> Option<PtxVersion> {
        if self > Self::NEWEST_KNOWN {
            return None;
        }
        let newest = RELEASES.iter().rev().find(|release| release.cuda <= self);
        newest.map(|release| release.ptx)
    }
}

impl PtxVersion {
    /// The PTX version of [`CudaVersion::NEWEST_KNOWN`].
    pub const NEWEST_KNOWN: Self = RELEASES[RELEASES.len() - 1].ptx;

    /// Returns the version `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Parses a version such as `8.7`. It looks like a decimal fraction, but 8.10 follows 8.9.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        // `u32::from_str` would accept signs.
        let are_numbers = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        Some(Self {
            major: major.parse().ok().filter(|_| are_numbers)?,
            minor: minor.parse().ok()?,
        })
    }

    /// Returns the oldest CUDA version whose drivers accept this PTX version.
    ///
    /// Returns `None` if it is unknown: for PTX newer than [`PtxVersion::NEWEST_KNOWN`].
    ///
    /// ```
    /// use curium_format::{CudaVersion, PtxVersion};
    ///
    /// assert_eq!(PtxVersion::new(8, 6).first_cuda(), Some(CudaVersion::new(12, 7)));
    /// ```
    #[must_use]
    pub fn first_cuda(self) -> Option<CudaVersion> {
        let oldest = RELEASES.iter().find(|release| release.ptx >= self);
        oldest.map(|release| release.cuda)
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major(), self.minor())
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn newest_ptx_matches_the_release() {
        for (cuda, ptx) in [
            (CudaVersion::new(0, 9), None),
            (CudaVersion::new(10, 2), Some(PtxVersion::new(6, 5))),
            (CudaVersion::new(11, 8), Some(PtxVersion::new(7, 8))),
            (CudaVersion::new(12, 6), Some(PtxVersion::new(8, 5))),
            (CudaVersion::new(12, 9), Some(PtxVersion::new(8, 8))),
            (CudaVersion::new(13, 5), Some(PtxVersion::new(9, 5))),
            (CudaVersion::new(14, 0), None),
        ] {
            assert_eq!(cuda.newest_ptx(), ptx, "{cuda}");
        }
    }

    #[test]
    fn newer_ptx_has_no_cuda_version() {
        for (ptx, cuda) in [
            (PtxVersion::new(0, 1), Some(CudaVersion::new(1, 0))),
            (PtxVersion::new(8, 8), Some(CudaVersion::new(12, 9))),
            (PtxVersion::new(8, 9), Some(CudaVersion::new(13, 0))),
            (PtxVersion::new(9, 5), Some(CudaVersion::new(13, 5))),
            (PtxVersion::new(u32::MAX, u32::MAX), None),
        ] {
            assert_eq!(ptx.first_cuda(), cuda, "{ptx}");
        }
    }

    #[test]
    fn releases_are_in_order() {
        assert!(RELEASES.is_sorted_by(|one, next| one.ptx < next.ptx && one.cuda < next.cuda));
    }

    #[test]
    fn targets_have_released_versions() {
        for target in Target::all() {
            let ptx = target.first_ptx();
            let is_released = RELEASES.iter().any(|release| Some(release.ptx) == ptx);
            assert!(is_released, "{target}: {ptx:?}");
        }
    }

    #[test]
    fn other_texts_are_no_versions() {
        assert_eq!(PtxVersion::parse("8.10"), Some(PtxVersion::new(8, 10)));
        for text in [
            "",
            "8",
            "8.",
            ".8",
            "8.7.1",
            "+8.7",
            "8.+7",
            "8.4294967296",
            "a.b",
        ] {
            assert_eq!(PtxVersion::parse(text), None, "{text:?}");
        }
    }
}
