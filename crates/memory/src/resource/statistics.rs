//! A resource that counts.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_driver::{DevicePointer, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource that counts what is asked of another, over all threads: what is in use, and what was at most.
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

/// What was asked of a resource. See [`Statistics`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct AllocationCounts {
    /// How many allocations succeeded.
    pub allocations: u64,
    /// How many frees succeeded.
    pub frees: u64,
    /// How many allocations or frees failed.
    pub failures: u64,
    /// The bytes of all allocations.
    pub allocated_bytes: u64,
    /// The bytes in use.
    pub live_bytes: u64,
    /// The most bytes in use since the beginning, or since the peaks were reset.
    pub peak_bytes: u64,
    /// The allocations in use.
    pub live: u64,
    /// The most allocations in use.
    pub peak: u64,
}

impl<R: Resource> Statistics<R> {
    /// A resource that counts what is asked of `inner`.
    #[inline]
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

    /// The resource inside.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// The counts now. Each is right by itself; while other threads are at work, they may be of slightly different moments.
    #[inline]
    pub fn counts(&self) -> AllocationCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AllocationCounts {
            allocations: load(&self.allocations),
            frees: load(&self.frees),
            failures: load(&self.failures),
            allocated_bytes: load(&self.allocated_bytes),
            live_bytes: load(&self.live_bytes),
            peak_bytes: load(&self.peak_bytes),
            live: load(&self.live),
            peak: load(&self.peak),
        }
    }

    /// Has the peaks begin anew at what is in use.
    #[inline]
    pub fn reset_peaks(&self) {
        self.peak_bytes.store(self.live_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        self.peak.store(self.live.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Adds to a count, and to the most that it ever was.
#[inline]
fn rise(count: &AtomicU64, peak: &AtomicU64, by: u64) {
    let now = count.fetch_add(by, Ordering::Relaxed) + by;
    peak.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource> Resource for Statistics<R> {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let pointer = self.inner.allocate(stream, bytes, alignment).inspect_err(|_| {
            self.failures.fetch_add(1, Ordering::Relaxed);
        })?;
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.allocated_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
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
        // SAFETY: the caller's promises are those of the resource inside, where the memory came from.
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
