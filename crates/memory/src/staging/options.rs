//! Options for staged copies.

use std::num::NonZeroUsize;
use std::thread;

/// Options for copies from and to pageable slices, which are staged through pinned memory. The defaults suit machines
/// of any size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StagingOptions {
    /// The maximum number of lanes of a context. A lane is a thread with two pinned blocks, which sleeps between
    /// copies. 0 disables staging, and values above 64 count as 64. The default is one per CPU core, at most 12.
    pub lanes: usize,
    /// The size of a pinned block in bytes. Each lane has two of them. The default is 4 MiB.
    pub block_bytes: usize,
    /// The minimum size in bytes of a copy that is staged. The default is 8 MiB.
    pub threshold: usize,
}

impl StagingOptions {
    /// Creates the default options.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { lanes: processors.min(12), block_bytes: 4 << 20, threshold: 8 << 20 }
    }

    /// Sets the maximum number of lanes.
    #[must_use]
    #[inline]
    pub const fn with_lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// Sets the size of a pinned block in bytes.
    #[must_use]
    #[inline]
    pub const fn with_block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Sets the minimum size in bytes of a copy that is staged.
    #[must_use]
    #[inline]
    pub const fn with_threshold(mut self, bytes: usize) -> Self {
        self.threshold = bytes;
        self
    }
}

impl Default for StagingOptions {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}
