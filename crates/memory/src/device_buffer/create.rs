//! Constructors.

use std::mem::MaybeUninit;

use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::{DevicePointer, Error, Result, Stream};

use super::DeviceBuffer;
use crate::capture_advice::ALLOCATE;
use crate::device_slice::Parts;
use crate::resource::{Resource, StreamOrdered};
use crate::tracked::{Accessibility, Tracked};
use crate::transfer::{device, host};
use crate::{fill, size};

impl<T> DeviceBuffer<T> {
    /// Allocates `len` elements on `stream` with unspecified values.
    ///
    /// CUDA: `cuMemAllocAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large; `CUDA_ERROR_OUT_OF_MEMORY` with the free and
    /// the total memory.
    #[doc(alias = "cuMemAlloc")]
    #[doc(alias = "cudaMalloc")]
    #[doc(alias = "cuMemAllocAsync")]
    #[doc(alias = "cudaMallocAsync")]
    #[track_caller]
    #[inline]
    pub fn uninit(stream: &Stream, len: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("DeviceBuffer::uninit", stream, len, StreamOrdered)
    }

    /// Allocates `len` elements on `stream` and sets every byte to zero.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cudaMemsetAsync")]
    #[track_caller]
    #[inline]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::allocate_zeroed("DeviceBuffer::zeroed", stream, len, StreamOrdered)
    }

    /// Allocates `len` elements on `stream` and sets each to `value`, as
    /// [`DeviceSlice::fill`](crate::DeviceSlice::fill) does.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemsetD8Async` and its variants.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn filled(stream: &Stream, len: usize, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::allocate_filled("DeviceBuffer::filled", stream, len, value, StreamOrdered)
    }

    /// Allocates a buffer on `stream` and copies `source` to it, as
    /// [`DeviceSlice::copy_from_slice`](crate::DeviceSlice::copy_from_slice) does: waits until the
    /// copy has completed, unless it is [small](crate::copy#small-copies).
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyHtoDAsync_v2`; `cuStreamSynchronize`, unless the copy is
    /// small.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::allocate_copied("DeviceBuffer::from_slice", stream, source, StreamOrdered)
    }

    /// Allocates `len` uninitialized elements of any type on `stream`. Call
    /// [`DeviceBuffer::assume_init`] once device work that initializes them is enqueued.
    ///
    /// CUDA: `cuMemAllocAsync`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn maybe_uninit(stream: &Stream, len: usize) -> Result<DeviceBuffer<MaybeUninit<T>>> {
        DeviceBuffer::allocate("DeviceBuffer::maybe_uninit", stream, len, StreamOrdered)
    }
}

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Allocates like [`DeviceBuffer::uninit`], with memory from `resource`.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_memory::{DeviceBuffer, SyncAlloc};
    ///
    /// # let stream = driver.device(0)?.primary_context()?.stream()?;
    /// let buffer = DeviceBuffer::<u32, SyncAlloc>::uninit_in(&stream, 1024, SyncAlloc)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn uninit_in(stream: &Stream, len: usize, resource: R) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("DeviceBuffer::uninit_in", stream, len, resource)
    }

    /// Allocates like [`DeviceBuffer::zeroed`], with memory from `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn zeroed_in(stream: &Stream, len: usize, resource: R) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::allocate_zeroed("DeviceBuffer::zeroed_in", stream, len, resource)
    }

    /// Allocates like [`DeviceBuffer::filled`], with memory from `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn filled_in(stream: &Stream, len: usize, value: T, resource: R) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::allocate_filled("DeviceBuffer::filled_in", stream, len, value, resource)
    }

    /// Allocates like [`DeviceBuffer::from_slice`], with memory from `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    pub fn from_slice_in(stream: &Stream, source: &[T], resource: R) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::allocate_copied("DeviceBuffer::from_slice_in", stream, source, resource)
    }

    /// Allocates like [`DeviceBuffer::maybe_uninit`], with memory from `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn maybe_uninit_in(
        stream: &Stream,
        len: usize,
        resource: R,
    ) -> Result<DeviceBuffer<MaybeUninit<T>, R>> {
        DeviceBuffer::allocate("DeviceBuffer::maybe_uninit_in", stream, len, resource)
    }

    /// Allocates a buffer with the same contents on the same stream, from a clone of the resource.
    /// Returns once the copy is enqueued.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyDtoDAsync_v2`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    pub fn try_clone(&self) -> Result<Self>
    where
        T: Copy,
        R: Clone,
    {
        const OPERATION: &str = "DeviceBuffer::try_clone";
        let stream = self.stream();
        let clone = Self::allocate(OPERATION, stream, self.len(), self.resource.clone())?;
        device::copy(stream.enqueue(OPERATION)?, clone.operand(), self.operand())?;
        Ok(clone)
    }

    #[track_caller]
    #[inline]
    fn allocate_zeroed(
        operation: &'static str,
        stream: &Stream,
        len: usize,
        resource: R,
    ) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate(operation, stream, len, resource)?;
        fill::elements(stream.enqueue(operation)?, &buffer.operand(), &[0])?;
        Ok(buffer)
    }

    #[track_caller]
    fn allocate_filled(
        operation: &'static str,
        stream: &Stream,
        len: usize,
        value: T,
        resource: R,
    ) -> Result<Self>
    where
        T: NoUninit,
    {
        let buffer = Self::allocate(operation, stream, len, resource)?;
        let value = bytemuck::bytes_of(&value);
        fill::elements(stream.enqueue(operation)?, &buffer.operand(), value)?;
        Ok(buffer)
    }

    #[track_caller]
    fn allocate_copied(
        operation: &'static str,
        stream: &Stream,
        source: &[T],
        resource: R,
    ) -> Result<Self>
    where
        T: NoUninit,
    {
        let buffer = Self::allocate(operation, stream, source.len(), resource)?;
        host::upload(operation, stream, buffer.operand(), source)?;
        Ok(buffer)
    }

    /// Allocates uninitialized elements.
    #[track_caller]
    #[inline]
    pub(super) fn allocate(
        operation: &'static str,
        stream: &Stream,
        len: usize,
        resource: R,
    ) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let pointer = if stream.is_created_by_capture() {
            allocate_captured(operation, &resource, stream, bytes, Self::ALIGNMENT)?
        } else {
            resource
                .allocate(stream, bytes, Self::ALIGNMENT)
                .map_err(|error| explain(error, stream, bytes).during(operation))?
        };
        let tracked = Tracked::leasable(stream, Accessibility::Device).at(pointer.as_raw(), bytes);
        Ok(Self {
            parts: Parts::new(pointer.cast(), len, tracked),
            resource,
        })
    }
}

/// Allocates memory that the graph of a capture owns.
#[cold]
#[track_caller]
fn allocate_captured<R: Resource>(
    operation: &'static str,
    resource: &R,
    stream: &Stream,
    bytes: usize,
    alignment: usize,
) -> Result<DevicePointer<u8>> {
    let captured = stream.enqueue_or(operation, ALLOCATE)?;
    if !captured.is_captured() || !resource.allocates_in_graphs() {
        return Err(in_capture(operation, stream));
    }
    let pointer = resource
        .allocate(stream, bytes, alignment)
        .map_err(|error| explain(error, stream, bytes).during(operation))?;
    // SAFETY: the memory was just allocated in the capture, and its buffer deregisters it before
    // freeing it.
    unsafe { captured.add_allocation(pointer.as_raw()) };
    Ok(pointer)
}

/// Returns the error for memory that a graph cannot own.
#[cold]
fn in_capture(operation: &'static str, stream: &Stream) -> Error {
    let reason = match stream.is_capture_active() {
        true => {
            format!(
                "the resource cannot allocate in a capture ({stream:?}); use `StreamOrdered` or another stream"
            )
        }
        false => format!("the capture of the stream has ended ({stream:?})"),
    };
    Error::argument(operation, reason)
}

/// Adds the free and the total memory to an error that lacks them.
#[cold]
fn explain(error: Error, stream: &Stream, bytes: usize) -> Error {
    match error {
        Error::Call(_) => error.with_memory_figures(stream, bytes, None),
        other => other,
    }
}
