//! What a cache did, and what it holds.

/// What a [`CachingResource`](crate::CachingResource) did so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CachingStatistics {
    /// How many allocations succeeded.
    pub allocations: u64,
    /// How many of them the calling thread served from what it had, without a lock or a call.
    pub hits: u64,
    /// How many frees there were.
    pub frees: u64,
    /// The bytes that were asked for, in all.
    pub allocated_bytes: u64,
    /// The bytes that were given back, in all.
    pub freed_bytes: u64,
    /// The bytes of all segments.
    pub reserved_bytes: u64,
    /// The bytes that are free, in segments and with threads.
    pub free_bytes: u64,
    /// The longest row of bytes that is free for every stream.
    pub longest_free_bytes: u64,
    /// How often segments were added or made longer.
    pub growths: u64,
}

impl CachingStatistics {
    /// The bytes that are in use now, as they were asked for.
    #[must_use]
    #[inline]
    pub fn live_bytes(&self) -> u64 {
        // A free may be counted before its allocation, on another thread.
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }

    /// How many allocations are in use now.
    #[must_use]
    #[inline]
    pub fn live_allocations(&self) -> u64 {
        self.allocations.saturating_sub(self.frees)
    }

    /// Which part of the free bytes is not in the longest free row: 0 if they are all in one, towards 1 the more they are scattered.
    #[must_use]
    #[inline]
    pub fn fragmentation(&self) -> f64 {
        if self.free_bytes == 0 {
            return 0.0;
        }
        1.0 - (self.longest_free_bytes as f64 / self.free_bytes as f64).min(1.0)
    }
}
