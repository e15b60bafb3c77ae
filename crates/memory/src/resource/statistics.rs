//! A resource with statistics.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_driver::{DevicePointer, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource adaptor that counts the allocations of all threads, with current and peak usage.
#[derive(Debug, Default)]
pub struct Statistics<R> {
    inner: R,
    allocations: AtomicU64,
    frees: AtomicU64,
    failures: AtomicU64,
    allocated_bytes: AtomicU64,
    live_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    live: AtomicU64,
    peak: AtomicU64,
}

/// Allocation counts. See [`Statistics`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct AllocationCounts {
    /// The number of successful allocations.
    pub allocations: u64,
    /// The number of successful frees.
    pub frees: u64,
    /// The number of failed allocations and frees.
    pub failures: u64,
    /// The bytes of all allocations.
    pub allocated_bytes: u64,
    /// The bytes in use.
    pub live_bytes: u64,
    /// The high-water mark of the bytes in use, since the start or the last reset.
    pub peak_bytes: u64,
    /// The number of live allocations.
    pub live: u64,
    /// The high-water mark of the number of live allocations.
    pub peak: u64,
}

impl<R: Resource> Statistics<R> {
    /// Creates an adaptor that counts the allocations of `inner`.
    pub fn new(inner: R) -> Self
    where
        R: Sized,
    {
        Self {
            inner,
            allocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            allocated_bytes: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            live: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }
    }

    /// Returns the inner resource.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Returns the current counts. Each count is exact, but concurrent operations may affect only
    /// some of them.
    pub fn counts(&self) -> AllocationCounts {
        AllocationCounts {
            allocations: self.allocations.load(Ordering::Relaxed),
            frees: self.frees.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            allocated_bytes: self.allocated_bytes.load(Ordering::Relaxed),
            live_bytes: self.live_bytes.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
            live: self.live.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
        }
    }

    /// Resets the high-water marks to the current usage.
    pub fn reset_peaks(&self) {
        self.peak_bytes
            .store(self.live_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        self.peak
            .store(self.live.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Increases a count and updates its high-water mark.
fn rise(count: &AtomicU64, peak: &AtomicU64, by: u64) {
    let now = count.fetch_add(by, Ordering::Relaxed) + by;
    peak.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: all memory comes from the inner resource, which upholds the contract.
unsafe impl<R: Resource> Resource for Statistics<R> {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        let pointer = self
            .inner
            .allocate(stream, bytes, alignment)
            .inspect_err(|_| {
                self.failures.fetch_add(1, Ordering::Relaxed);
            })?;
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.allocated_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        rise(&self.live_bytes, &self.peak_bytes, bytes as u64);
        rise(&self.live, &self.peak, 1);
        Ok(pointer)
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // SAFETY: the inner resource allocated the memory with this size and alignment, and the
        // caller guarantees that only earlier work on `stream` uses it.
        let freed = unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) };
        freed.inspect_err(|_| {
            self.failures.fetch_add(1, Ordering::Relaxed);
        })?;
        self.frees.fetch_add(1, Ordering::Relaxed);
        self.live_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.live.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    upkeep_of_inner!();
}
