//! A resource with a limit.

use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::{DevicePointer, Error, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource adaptor that limits the number of bytes in use.
///
/// The requested sizes are counted. If the limit would be exceeded, an allocation fails with an
/// [out-of-memory error](Error::is_out_of_memory) that contains the limit, so an enclosing
/// [`Reclaiming`](crate::Reclaiming) starts out-of-memory recovery.
#[derive(Debug)]
pub struct LimitedResource<R> {
    inner: R,
    limit: usize,
    used: AtomicUsize,
}

impl<R: Resource> LimitedResource<R> {
    /// Creates an adaptor with at most `limit` bytes of `inner` in use.
    #[inline]
    pub const fn new(inner: R, limit: usize) -> Self {
        Self {
            inner,
            limit,
            used: AtomicUsize::new(0),
        }
    }

    /// Returns the inner resource.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Returns the limit in bytes.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of bytes in use.
    #[inline]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Adds `bytes` to the bytes in use, unless that exceeds the limit.
    fn charge(&self, bytes: usize) -> Result<()> {
        let charged = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|used| *used <= self.limit)
            });
        match charged {
            Ok(_) => Ok(()),
            Err(used) => Err(Error::refused_memory(bytes, Some(self.limit), Some(used))),
        }
    }

    #[inline]
    fn discharge(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: all memory comes from the inner resource, which upholds the contract.
unsafe impl<R: Resource> Resource for LimitedResource<R> {
    #[inline]
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        self.charge(bytes)?;
        self.inner
            .allocate(stream, bytes, alignment)
            .inspect_err(|_| self.discharge(bytes))
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
        unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) }?;
        self.discharge(bytes);
        Ok(())
    }

    upkeep_of_inner!();
}
