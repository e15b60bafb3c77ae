//! Copy directions, and how each is staged.

use super::MAX_THREADS;

/// The direction of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

/// The length of the shortest tile in bytes, for a large staging buffer.
pub(super) const SHORTEST_TILE: usize = 128 << 10;

impl Direction {
    /// Returns the length of a tile in bytes, for a large staging buffer. Shorter tiles start the
    /// device earlier, but each is claimed under a lock, and in a copy to the host, its thread
    /// waits for an event.
    pub(super) fn tile(self) -> usize {
        match self {
            Self::ToDevice => SHORTEST_TILE,
            Self::ToHost => 256 << 10,
        }
    }

    /// Returns the maximum number of threads of a copy of `bytes` bytes: more compete for the
    /// memory while the first batches are short, and each takes microseconds to wake.
    pub(super) fn max_threads(self, bytes: usize) -> usize {
        match (self, bytes >> 20) {
            (Self::ToDevice, 0..4) | (Self::ToHost, 0..16) => 4,
            (Self::ToDevice, 4..32) => 6,
            (Self::ToHost, 16..32) => 8,
            (_, 32..64) => 12,
            _ => MAX_THREADS,
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
