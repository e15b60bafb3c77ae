//! Copy directions, and how each is staged.

/// The direction of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
}

/// The length of the first parts in bytes. Shorter parts keep the device busy from the start, but each is a driver
/// call, and the threads contend for the driver's locks.
pub(super) const FIRST_PART: usize = 1 << 20;

impl Direction {
    /// Returns the fastest number of lanes, up to `most`. More lanes would contend for the driver's locks.
    #[inline]
    pub(super) fn lanes(self, most: usize) -> usize {
        match self {
            Self::ToDevice => most.min(8),
            Self::ToHost => most,
        }
    }

    /// Returns the minimum length in bytes of the last parts of each lane. In a copy to the host, the device's part
    /// comes first, so short last parts leave little work at the end.
    #[inline]
    pub(super) fn shortest_part(self) -> usize {
        match self {
            Self::ToDevice => FIRST_PART,
            Self::ToHost => 256 << 10,
        }
    }

    /// Returns the minimum number of lanes that is faster than the driver's own copy.
    #[inline]
    pub(super) fn enough(self) -> usize {
        match self {
            Self::ToDevice => 2,
            Self::ToHost => 3,
        }
    }
}
