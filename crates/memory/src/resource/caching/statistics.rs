//! Statistics of a caching resource.

/// Statistics of a [`CachingResource`](crate::CachingResource).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CachingStatistics {
    /// The number of successful allocations.
    pub allocations: u64,
    /// The number of allocations served by a thread cache, without a shared lock or a driver call.
    pub hits: u64,
    /// The number of deallocations.
    pub frees: u64,
    /// The sum of all requested sizes in bytes.
    pub allocated_bytes: u64,
    /// The sum of all deallocated sizes in bytes.
    pub freed_bytes: u64,
    /// The size of all segments in bytes.
    pub reserved_bytes: u64,
    /// The size of all free memory in bytes, including that in thread caches.
    pub free_bytes: u64,
    /// The length in bytes of the longest range available to every stream.
    pub longest_free_bytes: u64,
    /// The number of times that segments were added or extended.
    pub growths: u64,
    /// The number of times that fragmented memory was mapped at further addresses, in one piece.
    /// Each takes driver calls. Its use there in later allocations takes none, and is not counted.
    pub stitches: u64,
    /// The number of times that free memory stayed with the stream that freed it although the
    /// stream's work may have been done: the stream was being captured, or the driver failed to
    /// query it or to record an event. Each later search for memory, and
    /// [`purge`](crate::Resource::purge) and [`trim`](crate::Resource::trim), try again; those two
    /// return the driver's error.
    pub deferrals: u64,
}

impl CachingStatistics {
    /// Returns the requested size of all live allocations in bytes.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        // The deallocation may be counted before its allocation, which another thread made.
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }

    /// Returns the number of live allocations.
    #[must_use]
    pub fn live_allocations(&self) -> u64 {
        self.allocations.saturating_sub(self.frees)
    }

    /// Returns the fraction of free memory outside the longest free range: 0 without fragmentation,
    /// and close to 1 in the worst case.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        if self.free_bytes == 0 {
            return 0.0;
        }
        1.0 - (self.longest_free_bytes as f64 / self.free_bytes as f64).min(1.0)
    }
}
