//! The directions of copies, and how each is staged.

/// The direction of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
}

/// The length of the first parts in bytes. Shorter ones keep the device from idling at the beginning, but each is a call of the driver, and
/// the threads contend for its locks.
pub(super) const FIRST_PART: usize = 1 << 20;

impl Direction {
    /// Returns the fastest number of lanes up to `most`; more lanes would contend for the driver's locks.
    #[inline]
    pub(super) fn lanes(self, most: usize) -> usize {
        match self {
            Self::ToDevice => most.min(8),
            Self::ToHost => most,
        }
    }

    /// Returns the length in bytes of the shortest parts, with which the lanes end. The device's part of a copy to the host comes first, so
    /// that short last parts leave little to do after it.
    #[inline]
    pub(super) fn shortest_part(self) -> usize {
        match self {
            Self::ToDevice => FIRST_PART,
            Self::ToHost => 256 << 10,
        }
    }

    /// Returns the smallest number of lanes that is faster than the driver's own copy.
    #[inline]
    pub(super) fn enough(self) -> usize {
        match self {
            Self::ToDevice => 2,
            Self::ToHost => 3,
        }
    }
}
