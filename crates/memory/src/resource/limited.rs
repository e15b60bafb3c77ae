//! A resource that hands out so much and no more.

use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::{DevicePointer, Error, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource that never has more than a number of bytes in use.
///
/// What counts is what is asked for. Beyond the limit the error is one that [says that memory is short](Error::is_out_of_memory), with
/// the limit in it, so that [`Reclaiming`](super::Reclaiming) around it asks for memory to be given up.
#[derive(Debug)]
pub struct LimitedResource<R> {
    inner: R,
    limit: usize,
    used: AtomicUsize,
}

impl<R: Resource> LimitedResource<R> {
    /// A resource that has at most `limit` bytes of `inner` in use.
    #[inline]
    pub const fn new(inner: R, limit: usize) -> Self {
        Self { inner, limit, used: AtomicUsize::new(0) }
    }

    /// The resource inside.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// The most bytes in use.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The bytes in use now.
    #[inline]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts `bytes` as in use, unless that were too many.
    #[inline]
    fn charge(&self, bytes: usize) -> Result<()> {
        let charged = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charged) {
            Ok(_) => Ok(()),
            Err(used) => Err(Error::refused_memory(bytes, Some(self.limit), Some(used))),
        }
    }

    #[inline]
    fn discharge(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource> Resource for LimitedResource<R> {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        self.charge(bytes)?;
        self.inner.allocate(stream, bytes, alignment).inspect_err(|_| self.discharge(bytes))
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
        unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) }?;
        self.discharge(bytes);
        Ok(())
    }

    upkeep_of_inner!();
}
