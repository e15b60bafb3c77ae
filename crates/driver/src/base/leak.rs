//! Memory that is leaked because it cannot be freed safely.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::release::report;
use crate::{Driver, Error};

/// Memory that was leaked instead of freed. See [`Driver::leaked_memory`].
///
/// Memory is returned to the driver after a wait for the work that uses it has succeeded. If every such wait fails, or if a value that uses
/// the memory was forgotten ([`mem::forget`](std::mem::forget)), the memory is leaked: the device may still access it. Each leak is
/// counted here, and reported to `tracing` and to [`set_drop_observer`](crate::set_drop_observer).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeakedMemory {
    /// The number of allocations of the driver.
    pub allocations: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// Counts the memory of one driver that was leaked.
#[derive(Debug, Default)]
pub(crate) struct LeakCounter {
    allocations: AtomicU64,
    bytes: AtomicU64,
}

impl LeakedMemory {
    /// Returns the sum of `allocations` allocations of `bytes` bytes in all.
    #[must_use]
    #[inline]
    pub const fn new(allocations: u64, bytes: u64) -> Self {
        Self { allocations, bytes }
    }
}

impl LeakCounter {
    #[inline]
    pub(crate) fn total(&self) -> LeakedMemory {
        LeakedMemory::new(self.allocations.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    #[inline]
    fn add(&self, leaked: LeakedMemory) {
        self.allocations.fetch_add(leaked.allocations, Ordering::Relaxed);
        self.bytes.fetch_add(leaked.bytes, Ordering::Relaxed);
    }
}

/// Counts memory of `driver` that is leaked because of `error`, and reports the error.
///
/// The caller forgets the memory: it is never freed. See [`Driver::leaked_memory`].
#[cold]
#[inline]
pub fn leak(driver: &Driver, leaked: LeakedMemory, error: &Error) {
    driver.leaks().add(leaked);
    report(error);
}
