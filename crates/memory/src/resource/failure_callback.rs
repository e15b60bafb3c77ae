//! A resource that asks what to do when an allocation fails.

use std::fmt;

use curium_driver::{DevicePointer, Error, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource that calls a function when an allocation fails, and tries again for as long as the function says so.
///
/// The function is told the error, the stream and how many bytes were asked for. It is called without a lock.
pub struct FailureCallback<R, F> {
    inner: R,
    callback: F,
}

impl<R: Resource, F: Fn(&Error, &Stream, usize) -> bool + Send + Sync> FailureCallback<R, F> {
    /// A resource that asks `callback` whether to try again when `inner` fails.
    #[inline]
    pub const fn new(inner: R, callback: F) -> Self {
        Self { inner, callback }
    }

    /// The resource inside.
    #[inline]
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

// SAFETY: all memory is that of the resource inside, which keeps the promises.
unsafe impl<R: Resource, F: Fn(&Error, &Stream, usize) -> bool + Send + Sync> Resource for FailureCallback<R, F> {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        loop {
            match self.inner.allocate(stream, bytes, alignment) {
                Err(error) if (self.callback)(&error, stream, bytes) => {}
                result => return result,
            }
        }
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
        unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) }
    }

    upkeep_of_inner!();
}

impl<R: fmt::Debug, F> fmt::Debug for FailureCallback<R, F> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FailureCallback").field(&self.inner).finish()
    }
}
