//! A resource with a failure callback.

use std::fmt;

use curium_driver::{DevicePointer, Error, Result, Stream};

use super::Resource;
use super::forward::upkeep_of_inner;

/// A resource adaptor that calls a function when an allocation fails, and retries for as long as
/// the function returns `true`.
///
/// The function receives the error, the stream and the requested size in bytes. No lock is held
/// during the call.
pub struct FailureCallback<R, F> {
    inner: R,
    callback: F,
}

impl<R: Resource, F: Fn(&Error, &Stream, usize) -> bool + Send + Sync> FailureCallback<R, F> {
    /// Creates an adaptor that calls `callback` when an allocation from `inner` fails.
    pub const fn new(inner: R, callback: F) -> Self {
        Self { inner, callback }
    }

    /// Returns the inner resource.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

// SAFETY: all memory comes from the inner resource, which upholds the contract.
unsafe impl<R: Resource, F: Fn(&Error, &Stream, usize) -> bool + Send + Sync> Resource
    for FailureCallback<R, F>
{
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        loop {
            match self.inner.allocate(stream, bytes, alignment) {
                Err(error) if (self.callback)(&error, stream, bytes) => {}
                result => return result,
            }
        }
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // SAFETY: the inner resource allocated the memory with this size and alignment, and the
        // caller guarantees that only earlier work on `stream` uses it.
        unsafe { self.inner.deallocate(stream, pointer, bytes, alignment) }
    }

    upkeep_of_inner!();
}

impl<R: fmt::Debug, F> fmt::Debug for FailureCallback<R, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("FailureCallback")
            .field(&self.inner)
            .finish()
    }
}
