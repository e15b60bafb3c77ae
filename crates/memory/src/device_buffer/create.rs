//! How buffers are made.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::hazard::AccessGuard;
use curium_driver::{DevicePointer, Error, Result, Stream};

use super::DeviceBuffer;
use crate::capture_advice::ALLOCATE;
use crate::copy::host;
use crate::resource::{Resource, StreamOrdered};
use crate::size;
use crate::tracked::{Reach, Tracked};

impl<T> DeviceBuffer<T> {
    /// Allocates `len` elements on `stream` and leaves their bytes as they are: any values.
    ///
    /// CUDA: `cuMemAllocAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large to be a size; `CUDA_ERROR_OUT_OF_MEMORY` with the figures.
    #[doc(alias = "cuMemAlloc")]
    #[doc(alias = "cuMemAllocAsync")]
    #[track_caller]
    #[inline]
    pub fn uninit(stream: &Stream, len: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("DeviceBuffer::uninit", StreamOrdered, stream, len)
    }

    /// Allocates `len` elements on `stream` and sets every byte to zero there.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[doc(alias = "cuMemsetD8Async")]
    #[track_caller]
    #[inline]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::allocate_zeroed("DeviceBuffer::zeroed", StreamOrdered, stream, len)
    }

    /// Allocates `len` elements on `stream` and sets each to `value` there.
    ///
    /// CUDA: `cuMemAllocAsync`; [`DeviceSliceMut::fill`](crate::DeviceSliceMut::fill) says how it fills.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn filled(stream: &Stream, value: T, len: usize) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::allocate_filled("DeviceBuffer::filled", StreamOrdered, stream, (value, len))
    }

    /// Allocates as many elements as `source` has on `stream` and copies it there. Waits until the copy is done.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
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
        Self::from_slice_in(StreamOrdered, stream, source)
    }
}

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// As [`DeviceBuffer::uninit`], with memory of `resource`.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_memory::{DeviceBuffer, SyncAlloc};
    ///
    /// # let stream = driver.device(0)?.primary_context()?.stream()?;
    /// let buffer = DeviceBuffer::<u32, SyncAlloc>::uninit_in(SyncAlloc, &stream, 1024)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn uninit_in(resource: R, stream: &Stream, len: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("DeviceBuffer::uninit_in", resource, stream, len)
    }

    /// As [`DeviceBuffer::zeroed`], with memory of `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn zeroed_in(resource: R, stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::allocate_zeroed("DeviceBuffer::zeroed_in", resource, stream, len)
    }

    /// As [`DeviceBuffer::filled`], with memory of `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn filled_in(resource: R, stream: &Stream, value: T, len: usize) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::allocate_filled("DeviceBuffer::filled_in", resource, stream, (value, len))
    }

    /// As [`DeviceBuffer::from_slice`], with memory of `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn from_slice_in(resource: R, stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "DeviceBuffer::from_slice";
        stream.expect_captured(OPERATION, ALLOCATE)?;
        let mut buffer = Self::allocate(OPERATION, resource, stream, source.len())?;
        host::upload(OPERATION, stream, buffer.as_slice_mut(), source)?;
        Ok(buffer)
    }

    #[track_caller]
    #[inline]
    fn allocate_zeroed(operation: &'static str, resource: R, stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        stream.expect_captured(operation, ALLOCATE)?;
        let mut buffer = Self::allocate(operation, resource, stream, len)?;
        buffer.as_slice_mut().zero_on(stream)?;
        Ok(buffer)
    }

    #[track_caller]
    #[inline]
    fn allocate_filled(operation: &'static str, resource: R, stream: &Stream, (value, len): (T, usize)) -> Result<Self>
    where
        T: NoUninit,
    {
        stream.expect_captured(operation, ALLOCATE)?;
        let mut buffer = Self::allocate(operation, resource, stream, len)?;
        buffer.as_slice_mut().fill_on(stream, value)?;
        Ok(buffer)
    }

    /// Memory whose elements are not initialised yet.
    #[track_caller]
    #[inline]
    fn allocate(operation: &'static str, resource: R, stream: &Stream, len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        // What a resource of no graph allocates is no work of a stream.
        if resource.allocates_in_graphs() {
            stream.expect_captured(operation, ALLOCATE)?;
        }
        let pointer = if stream.is_created_by_capture() {
            allocate_captured(operation, &resource, stream, (bytes, Self::ALIGNMENT))?
        } else {
            resource.allocate(stream, bytes, Self::ALIGNMENT).map_err(|error| explain(error, stream, bytes))?
        };
        let tracked = Tracked::leasable(stream, Reach::Device).at(pointer.as_raw(), bytes);
        Ok(Self { pointer: pointer.cast(), len, tracked, resource, _elements: PhantomData })
    }
}

impl<T, R: Resource> DeviceBuffer<MaybeUninit<T>, R> {
    /// Allocates `len` places for elements on `stream`, with memory of `resource`: for types that not any bytes are a value of.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[track_caller]
    #[inline]
    pub fn places_in(resource: R, stream: &Stream, len: usize) -> Result<Self> {
        Self::allocate("DeviceBuffer::places_in", resource, stream, len)
    }
}

/// Allocates memory that belongs to the graph of a capture.
#[cold]
#[track_caller]
fn allocate_captured<R: Resource>(
    operation: &'static str,
    resource: &R,
    stream: &Stream,
    (bytes, alignment): (usize, usize),
) -> Result<DevicePointer<u8>> {
    let guard = AccessGuard::new(stream)?;
    if !guard.is_captured() || !resource.allocates_in_graphs() {
        return Err(in_capture(operation, stream));
    }
    let pointer = resource.allocate(stream, bytes, alignment).map_err(|error| explain(error, stream, bytes))?;
    // SAFETY: the memory was allocated in the capture just now, and its buffer takes it back before it frees it.
    unsafe { guard.add_allocation(pointer.as_raw()) };
    Ok(pointer)
}

/// The error for memory that a graph cannot own.
#[cold]
#[inline]
fn in_capture(operation: &'static str, stream: &Stream) -> Error {
    let reason = match stream.is_capture_active() {
        true => {
            "is being captured, and only memory of `StreamOrdered` can be a graph's own: allocate on another stream"
        }
        false => "was made for a capture that has ended",
    };
    Error::argument(operation, format!("{stream:?} {reason}"))
}

/// Adds the figures of the device to an error of a resource that adds none itself.
#[cold]
#[inline]
fn explain(error: Error, stream: &Stream, bytes: usize) -> Error {
    match error {
        Error::Call(_) => error.with_memory_figures(stream, bytes, None),
        other => other,
    }
}
