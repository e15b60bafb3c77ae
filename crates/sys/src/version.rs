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

/// A PTX version, with the CUDA version that introduced it.
struct PtxRelease {
    /// Major and minor version.
    ptx: (u32, u32),
    cuda: CudaVersion,
}

/// NVIDIA's table of PTX releases, from CUDA 11.0 on. The drivers of a CUDA version without a row accept the PTX of the
/// row before it.
const PTX_RELEASES: &[PtxRelease] = &[
    PtxRelease::new((7, 0), (11, 0)),
    PtxRelease::new((7, 1), (11, 1)),
    PtxRelease::new((7, 2), (11, 2)),
    PtxRelease::new((7, 3), (11, 3)),
    PtxRelease::new((7, 4), (11, 4)),
    PtxRelease::new((7, 5), (11, 5)),
    PtxRelease::new((7, 6), (11, 6)),
    PtxRelease::new((7, 7), (11, 7)),
    PtxRelease::new((7, 8), (11, 8)),
    PtxRelease::new((8, 0), (12, 0)),
    PtxRelease::new((8, 1), (12, 1)),
    PtxRelease::new((8, 2), (12, 2)),
    PtxRelease::new((8, 3), (12, 3)),
    PtxRelease::new((8, 4), (12, 4)),
    PtxRelease::new((8, 5), (12, 5)),
    PtxRelease::new((8, 6), (12, 7)),
    PtxRelease::new((8, 7), (12, 8)),
    PtxRelease::new((8, 8), (12, 9)),
    PtxRelease::new((9, 0), (13, 0)),
    PtxRelease::new((9, 1), (13, 1)),
    PtxRelease::new((9, 2), (13, 2)),
    PtxRelease::new((9, 3), (13, 3)),
    PtxRelease::new((9, 4), (13, 4)),
    PtxRelease::new((9, 5), (13, 5)),
];

const _: () = assert!(
    PTX_RELEASES[PTX_RELEASES.len() - 1].cuda.0 == CudaVersion::NEWEST_KNOWN.0,
    "PTX_RELEASES lacks the PTX version of the newest CUDA version"
);

impl PtxRelease {
    const fn new(ptx: (u32, u32), cuda: (u32, u32)) -> Self {
        Self {
            ptx,
            cuda: CudaVersion::new(cuda.0, cuda.1),
        }
    }
}

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

    /// Returns the newest PTX version, major and minor, that drivers of this CUDA version accept.
    ///
    /// Returns `None` if it is unknown: for CUDA older than 11.0 or newer than [`CudaVersion::NEWEST_KNOWN`].
    ///
    /// ```
    /// use curium_sys::CudaVersion;
    ///
    /// assert_eq!(CudaVersion::new(12, 6).newest_ptx(), Some((8, 5)));
    /// ```
    #[must_use]
    pub fn newest_ptx(self) -> Option<(u32, u32)> {
        if self > Self::NEWEST_KNOWN {
            return None;
        }
        let newest = PTX_RELEASES
            .iter()
            .rev()
            .find(|release| release.cuda <= self);
        newest.map(|release| release.ptx)
    }

    /// Returns the oldest CUDA version, from 11.0 on, whose drivers accept a PTX version.
    ///
    /// Returns `None` if it is unknown: for PTX newer than that of [`CudaVersion::NEWEST_KNOWN`].
    ///
    /// ```
    /// use curium_sys::CudaVersion;
    ///
    /// assert_eq!(CudaVersion::for_ptx(8, 6), Some(CudaVersion::new(12, 7)));
    /// ```
    #[must_use]
    pub fn for_ptx(major: u32, minor: u32) -> Option<Self> {
        let oldest = PTX_RELEASES
            .iter()
            .find(|release| release.ptx >= (major, minor));
        oldest.map(|release| release.cuda)
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major(), self.minor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_ptx_matches_the_release() {
        for (cuda, ptx) in [
            ((11, 8), Some((7, 8))),
            ((12, 6), Some((8, 5))),
            ((12, 9), Some((8, 8))),
            ((13, 5), Some((9, 5))),
            ((14, 0), None),
            ((10, 2), None),
        ] {
            let version = CudaVersion::new(cuda.0, cuda.1);
            assert_eq!(version.newest_ptx(), ptx, "{version}");
        }
    }

    #[test]
    fn newer_ptx_has_no_cuda_version() {
        assert_eq!(CudaVersion::for_ptx(6, 0), Some(CudaVersion::new(11, 0)));
        assert_eq!(CudaVersion::for_ptx(8, 8), Some(CudaVersion::new(12, 9)));
        assert_eq!(CudaVersion::for_ptx(9, 5), Some(CudaVersion::new(13, 5)));
        assert_eq!(CudaVersion::for_ptx(u32::MAX, u32::MAX), None);
    }

    #[test]
    fn releases_are_in_order() {
        assert!(PTX_RELEASES.is_sorted_by(|one, next| one.ptx < next.ptx && one.cuda < next.cuda));
    }
}
