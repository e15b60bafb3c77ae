//! The count of memory that is leaked because it cannot be freed safely.

use std::sync::atomic::{AtomicU64, Ordering};

/// Memory that was leaked instead of freed. See
/// [`Driver::leaked_memory`](crate::Driver::leaked_memory).
///
/// Memory is freed only after a successful wait for the work that uses it. If every such wait
/// fails, or if a value that uses the memory was passed to [`mem::forget`](std::mem::forget), the
/// memory is leaked, because the device may still access it. Each leak is counted here, and
/// reported to `tracing` and to [`set_drop_observer`](crate::set_drop_observer).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeakedMemory {
    /// The number of driver allocations.
    pub allocations: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// Counts the leaked memory of one driver.
#[derive(Debug, Default)]
pub(crate) struct LeakCounter {
    allocations: AtomicU64,
    bytes: AtomicU64,
}

impl LeakedMemory {
    /// Creates a count of `allocations` allocations with a total size of `bytes` bytes.
    #[must_use]
    pub const fn new(allocations: u64, bytes: u64) -> Self {
        Self { allocations, bytes }
    }
}

impl LeakCounter {
    pub(crate) fn total(&self) -> LeakedMemory {
        LeakedMemory::new(
            self.allocations.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }

    pub(super) fn add(&self, leaked: LeakedMemory) {
        self.allocations
            .fetch_add(leaked.allocations, Ordering::Relaxed);
        self.bytes.fetch_add(leaked.bytes, Ordering::Relaxed);
    }
}
