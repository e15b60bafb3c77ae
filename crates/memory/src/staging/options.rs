//! Options for staged copies.

use std::num::NonZeroUsize;
use std::thread;

/// Options for copies from and to pageable slices, which are staged through pinned memory. The defaults suit machines
/// of any size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StagingOptions {
    /// The maximum number of threads of a copy, including the calling thread. The others sleep between copies. Values
    /// below 2 disable staging, and values above 64 count as 64. A copy of less than 64 MiB uses at most 12. The
    /// default is one per CPU core, at most 16.
    pub threads: usize,
    /// The maximum size of a staging buffer in bytes. A context has at most two of them, which are no longer than the
    /// longest copy so far, rounded up to a power of two. The default is 64 MiB.
    pub buffer_bytes: usize,
    /// The minimum size in bytes of a copy that is staged. The default is 8 MiB.
    pub threshold: usize,
}

impl StagingOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            threads: processors.min(16),
            buffer_bytes: 64 << 20,
            threshold: 8 << 20,
        }
    }

    /// Sets the maximum number of threads of a copy.
    #[must_use]
    pub const fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the maximum size of a staging buffer in bytes.
    #[must_use]
    pub const fn with_buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Sets the minimum size in bytes of a copy that is staged.
    #[must_use]
    pub const fn with_threshold(mut self, bytes: usize) -> Self {
        self.threshold = bytes;
        self
    }
}

impl Default for StagingOptions {
    fn default() -> Self {
        Self::new()
    }
}
