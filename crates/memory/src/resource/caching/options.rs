//! How memory is kept.

/// How a [`CachingResource`](crate::CachingResource) keeps memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CachingOptions {
    /// Memory is taken from the device in pieces of at least this many bytes, unless there are not as many. The default is 32 MiB.
    pub segment_bytes: usize,
    /// Whether memory is kept at all; if not, every allocation and every free goes to the driver, so that memory checkers see them.
    /// The default is that it is, unless the environment has `CURIUM_NO_CACHE` with a value other than 0.
    pub cache: bool,
}

/// The variable of the environment that turns caching off.
const NO_CACHE: &str = "CURIUM_NO_CACHE";

/// The largest alignment that can be asked for: a page of the device.
pub(super) const LARGEST_ALIGNMENT: usize = 2 << 20;

impl CachingOptions {
    /// The defaults.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        let is_off = std::env::var_os(NO_CACHE).is_some_and(|value| !value.is_empty() && value != "0");
        Self { segment_bytes: 32 << 20, cache: !is_off }
    }

    /// The same with segments of at least this many bytes.
    #[must_use]
    #[inline]
    pub const fn with_segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// The same with memory kept, or not.
    #[must_use]
    #[inline]
    pub const fn with_cache(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }
}

impl Default for CachingOptions {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}
