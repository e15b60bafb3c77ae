//! Copy directions, and how each is staged.

/// The direction of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
}

/// The length of the shortest tile in bytes, for a large staging buffer.
pub(super) const SHORTEST_TILE: usize = 128 << 10;

impl Direction {
    /// Returns the length of a tile in bytes, for a large staging buffer. Shorter tiles start the device earlier, but
    /// each is claimed under a lock, and in a copy to the host, its thread waits for an event.
    pub(super) fn tile(self) -> usize {
        match self {
            Self::ToDevice => SHORTEST_TILE,
            Self::ToHost => 256 << 10,
        }
    }

    /// Returns the minimum number of threads that is faster than the driver's own copy.
    pub(super) fn enough(self) -> usize {
        match self {
            Self::ToDevice => 2,
            Self::ToHost => 3,
        }
    }
}
