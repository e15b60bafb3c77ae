//! How buffers are made.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::{Error, Result, Stream};

use super::DeviceBuffer;
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
    #[inline]
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        let mut buffer = Self::allocate("DeviceBuffer::from_slice", StreamOrdered, stream, source.len())?;
        buffer.copy_from_slice(source)?;
        Ok(buffer)
    }
}

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// As [`DeviceBuffer::uninit`], with memory of `resource`.
    ///
    /// ```
    /// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new())?;
    /// # // SAFETY: the simulator implements the driver's functions, and outlives everything made from this table.
    /// # let driver = unsafe { curium_driver::Driver::from_api(simulator.api()) }?;
    /// use curium_memory::{DeviceBuffer, Plain};
    ///
    /// # let stream = driver.device(0)?.primary_context()?.stream()?;
    /// let buffer = DeviceBuffer::<u32, Plain>::uninit_in(Plain, &stream, 1024)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
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
    #[inline]
    pub fn from_slice_in(resource: R, stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        let mut buffer = Self::allocate("DeviceBuffer::from_slice_in", resource, stream, source.len())?;
        buffer.copy_from_slice(source)?;
        Ok(buffer)
    }

    #[inline]
    fn allocate_zeroed(operation: &'static str, resource: R, stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        let mut buffer = Self::allocate(operation, resource, stream, len)?;
        buffer.as_slice_mut().zero()?;
        Ok(buffer)
    }

    #[inline]
    fn allocate_filled(operation: &'static str, resource: R, stream: &Stream, (value, len): (T, usize)) -> Result<Self>
    where
        T: NoUninit,
    {
        let mut buffer = Self::allocate(operation, resource, stream, len)?;
        buffer.as_slice_mut().fill(value)?;
        Ok(buffer)
    }

    /// Memory whose elements are not initialised yet.
    #[inline]
    fn allocate(operation: &'static str, resource: R, stream: &Stream, len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        if stream.is_of_scope() && !resource.allocates_in_graphs() {
            return Err(in_capture(operation, stream));
        }
        let pointer = resource.allocate(stream, bytes, Self::ALIGNMENT).map_err(|error| explain(error, stream))?;
        if stream.is_of_scope() && !stream.note_allocation(pointer.as_raw()) {
            // SAFETY: the memory came from this resource just now, and nobody has used it.
            unsafe { resource.deallocate(stream, pointer, bytes, Self::ALIGNMENT) }?;
            return Err(in_capture(operation, stream));
        }
        let tracked = Tracked::leasable(stream, Reach::Device);
        Ok(Self { pointer: pointer.cast(), len, tracked, resource, _elements: PhantomData })
    }
}

impl<T, R: Resource> DeviceBuffer<MaybeUninit<T>, R> {
    /// Allocates `len` places for elements on `stream`, with memory of `resource`: for types that not any bytes are a value of.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[inline]
    pub fn places_in(resource: R, stream: &Stream, len: usize) -> Result<Self> {
        Self::allocate("DeviceBuffer::places_in", resource, stream, len)
    }
}

/// What is said of memory that a graph cannot own.
#[cold]
#[inline]
fn in_capture(operation: &'static str, stream: &Stream) -> Error {
    let reason = match stream.is_in_scope() {
        true => {
            "is being captured, and only memory of `StreamOrdered` can be a graph's own: allocate on another stream"
        }
        false => "was made for a capture that has ended",
    };
    Error::argument(operation, format!("{stream:?} {reason}"))
}

/// Adds to the error of an allocation what there is.
#[cold]
#[inline]
fn explain(error: Error, stream: &Stream) -> Error {
    if !error.is_out_of_memory() {
        return error;
    }
    let memory = stream.context().memory_info();
    error.advised(|_| {
        let memory = memory.ok()?;
        Some(format!("{} of {} bytes of the device are free", memory.free, memory.total).into())
    })
}
