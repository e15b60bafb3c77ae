//! Options of a caching resource.

/// Options of a [`CachingResource`](crate::CachingResource).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CachingOptions {
    /// The minimum segment size in bytes. A segment may be smaller if memory is scarce, or if it
    /// extends free memory for an allocation. The default is 32 MiB.
    pub segment_bytes: usize,
    /// `true` to cache memory. If `false`, every allocation and deallocation goes to the driver,
    /// where memory checkers observe it. The default is `true`, unless the environment variable
    /// `CURIUM_NO_CACHE` is set to a value other than 0.
    pub cache: bool,
}

/// The environment variable that disables caching.
const NO_CACHE: &str = "CURIUM_NO_CACHE";

/// The maximum alignment: the page size of the device.
pub(super) const MAX_ALIGNMENT: usize = 2 << 20;

impl CachingOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        let is_off =
            std::env::var_os(NO_CACHE).is_some_and(|value| !value.is_empty() && value != "0");
        Self {
            segment_bytes: 32 << 20,
            cache: !is_off,
        }
    }

    /// Sets the minimum segment size in bytes.
    #[must_use]
    pub const fn with_segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Enables or disables caching.
    #[must_use]
    pub const fn with_cache(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }
}

impl Default for CachingOptions {
    fn default() -> Self {
        Self::new()
    }
}
