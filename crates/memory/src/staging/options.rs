//! Options for staged copies.

use std::num::NonZeroUsize;
use std::thread;

/// Options for copies from and to pageable slices, which are staged through pinned memory. The
/// defaults suit machines of any size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StagingOptions {
    /// The maximum number of threads of a copy, including the calling thread. The others sleep
    /// between copies. Values below 2 disable staging, and values above 64 count as 64. A copy of
    /// less than 64 MiB uses at most 12, and a shorter one fewer. The default is one per CPU core,
    /// at most 16.
    pub threads: usize,
    /// The maximum size of a staging buffer in bytes. A context has at most two of them, which are
    /// no longer than the longest copy so far, rounded up to a power of two. The default is 64 MiB.
    pub buffer_bytes: usize,
    /// The minimum size in bytes of a copy that is staged. The default is 768 KiB.
    pub threshold: usize,
    /// The maximum size in bytes of a copy to the device through a bounce buffer, for which the
    /// host does not wait. 0 disables it, and values above 1 MiB count as 1 MiB. The default is 768
    /// KiB.
    pub upload_bounce_bytes: usize,
    /// The maximum size in bytes of a copy to the host through a bounce buffer. 0 disables it, and
    /// values above 1 MiB count as 1 MiB. The default is 768 KiB.
    pub download_bounce_bytes: usize,
}

/// The default of [`StagingOptions::upload_bounce_bytes`].
const UPLOAD_BOUNCE_BYTES: usize = 768 << 10;

/// The default of [`StagingOptions::download_bounce_bytes`].
const DOWNLOAD_BOUNCE_BYTES: usize = 768 << 10;

/// The default of [`StagingOptions::threshold`].
const THRESHOLD: usize = 768 << 10;

impl StagingOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            threads: processors.min(16),
            buffer_bytes: 64 << 20,
            threshold: THRESHOLD,
            upload_bounce_bytes: UPLOAD_BOUNCE_BYTES,
            download_bounce_bytes: DOWNLOAD_BOUNCE_BYTES,
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

    /// Sets the maximum size in bytes of a copy to the device through a bounce buffer.
    #[must_use]
    pub const fn with_upload_bounce_bytes(mut self, bytes: usize) -> Self {
        self.upload_bounce_bytes = bytes;
        self
    }

    /// Sets the maximum size in bytes of a copy to the host through a bounce buffer.
    #[must_use]
    pub const fn with_download_bounce_bytes(mut self, bytes: usize) -> Self {
        self.download_bounce_bytes = bytes;
        self
    }
}

impl Default for StagingOptions {
    fn default() -> Self {
        Self::new()
    }
}
