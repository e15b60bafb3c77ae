//! A buffer in the memory of a device.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::hazard::Accesses;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, DevicePointer, Driver, Error, Result, Stream, call, release};

use crate::{size, staging};

/// A fixed number of elements in the memory of a device.
///
/// The buffer is allocated and freed in the order of one stream, its own, and may be used on any: whatever must be waited for on
/// other streams is waited for by streams, never by the host. It has at least one element.
pub struct DeviceBuffer<T> {
    pointer: DevicePointer<T>,
    len: usize,
    stream: Stream,
    accesses: Accesses,
    _elements: PhantomData<T>,
}

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
    pub fn uninit(stream: &Stream, len: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("DeviceBuffer::uninit", stream, len)
    }

    /// Allocates `len` elements on `stream` and sets every byte to zero there.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    #[doc(alias = "cuMemsetD8Async")]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        let mut buffer = Self::allocate("DeviceBuffer::zeroed", stream, len)?;
        let (pointer, bytes) = (buffer.pointer.as_raw(), buffer.byte_len());
        // SAFETY: the buffer is live on this stream, and has this many bytes.
        unsafe { call!(stream.driver(), cuMemsetD8Async(pointer, 0, bytes, stream.as_raw())) }?;
        buffer.accesses.after_write(stream);
        Ok(buffer)
    }

    /// Allocates as many elements as `source` has on `stream` and copies it there. Waits until the copy is done.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::uninit`].
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        let mut buffer = Self::allocate("DeviceBuffer::from_slice", stream, source.len())?;
        buffer.copy_from_slice(source)?;
        Ok(buffer)
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The stream that the buffer was allocated on, on which it copies and is freed.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// Copies `source`, which has as many elements as the buffer, to the device. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyHtoD")]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        size::same_len("DeviceBuffer::copy_from_slice", self.len, source.len())?;
        let (stream, bytes) = (&self.stream, self.len * size_of::<T>());
        let accesses = &mut self.accesses;
        let (to, from) = (self.pointer.as_raw(), source.as_ptr().cast::<c_void>());
        // SAFETY: the buffer is live, has as many bytes, and is borrowed exclusively until the copy is done.
        let staged =
            unsafe { staging::upload(stream, to, bytemuck::cast_slice(source), |lane| accesses.before_write(lane)) };
        if let Some(result) = staged {
            return result;
        }
        accesses.before_write(stream)?;
        // SAFETY: both sides have this many bytes, the buffer is live on this stream, and `source` is borrowed until the stream has
        // been waited for below.
        let result = unsafe { call!(stream.driver(), cuMemcpyHtoDAsync_v2(to, from, bytes, stream.as_raw())) };
        result.map_err(|error| error.about(format!("{bytes} bytes")))?;
        accesses.after_write(stream);
        stream.synchronize()
    }

    /// Copies the buffer to `target`, which has as many elements. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; the error of any work of the context that failed before.
    #[doc(alias = "cuMemcpyDtoH")]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        size::same_len("DeviceBuffer::copy_to_slice", self.len, target.len())?;
        let (stream, bytes) = (&self.stream, self.byte_len());
        let to = target.as_mut_ptr().cast::<c_void>();
        // SAFETY: the bytes are those of `target`, which is borrowed exclusively, and any bytes are valid elements.
        let places = unsafe { std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<u8>>(), bytes) };
        let order = |lane: &Stream| self.accesses.before_read(lane);
        // SAFETY: the buffer is live, has as many bytes, and nobody writes it while it is borrowed.
        let staged = unsafe { staging::download(stream, places, self.pointer.as_raw(), order) };
        if let Some(result) = staged {
            return result;
        }
        self.read(stream, |from| {
            // SAFETY: both sides have this many bytes, the buffer is live on this stream, any bytes are valid elements, and `target` is
            // borrowed until the stream has been waited for below.
            let result = unsafe { call!(stream.driver(), cuMemcpyDtoHAsync_v2(to, from, bytes, stream.as_raw())) };
            result.map_err(|error| error.about(format!("{bytes} bytes")))
        })?;
        stream.synchronize()
    }

    /// A copy of the buffer on the host. Waits until it is there.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let mut target = bytemuck::zeroed_vec(self.len);
        self.copy_to_slice(&mut target)?;
        Ok(target)
    }

    /// Copies `source`, which has as many elements, on the device. Returns when the copy is on this buffer's stream.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyDtoD")]
    pub fn copy_from_buffer(&mut self, source: &Self) -> Result<()>
    where
        T: Copy,
    {
        size::same_len("DeviceBuffer::copy_from_buffer", self.len, source.len)?;
        self.stream.driver().expect_same(source.stream.driver(), "DeviceBuffer::copy_from_buffer")?;
        let (stream, bytes, to) = (&self.stream, self.len * size_of::<T>(), self.pointer.as_raw());
        let accesses = &mut self.accesses;
        accesses.before_write(stream)?;
        source.read(stream, |from| {
            // SAFETY: both buffers have this many bytes and are live on this stream, which has waited for all that they must wait for.
            unsafe { call!(stream.driver(), cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())) }
        })?;
        accesses.after_write(stream);
        Ok(())
    }

    /// Frees the buffer, which [`Drop`] does as well, and says whether it succeeded. Its memory is free once every use of it, on
    /// whatever stream, is done; the host does not wait for that.
    ///
    /// CUDA: `cuMemFreeAsync`.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if the driver refuses.
    #[doc(alias = "cuMemFree")]
    #[doc(alias = "cuMemFreeAsync")]
    pub fn close(mut self) -> Result<(), (Self, Error)> {
        self.free().map_err(|error| (self, error))
    }

    fn allocate(operation: &'static str, stream: &Stream, len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let mut raw: CUdeviceptr = 0;
        // SAFETY: `raw` is a valid place for the answer, and the stream is live.
        let result = unsafe { call!(stream.driver(), cuMemAllocAsync(&raw mut raw, bytes, stream.as_raw())) };
        result.map_err(|error| explain(error, stream, bytes))?;
        Ok(Self {
            pointer: DevicePointer::from_raw(raw),
            len,
            stream: stream.clone(),
            accesses: Accesses::allocated(stream),
            _elements: PhantomData,
        })
    }

    /// Has `enqueue` put a read of the buffer on `stream`.
    fn read(&self, stream: &Stream, enqueue: impl FnOnce(CUdeviceptr) -> Result<()>) -> Result<()> {
        self.accesses.before_read(stream)?;
        enqueue(self.pointer.as_raw())?;
        self.accesses.after_read(stream);
        Ok(())
    }

    fn free(&mut self) -> Result<()> {
        let accesses = &mut self.accesses;
        // Where the stream cannot wait for the uses, the host can.
        accesses.before_write(&self.stream).or_else(|_| accesses.synchronize())?;
        let raw = self.pointer.as_raw();
        // SAFETY: the memory is live, its stream has waited for every use, and it is forgotten once it is freed.
        unsafe { call!(self.stream.driver(), cuMemFreeAsync(raw, self.stream.as_raw())) }?;
        self.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

// SAFETY: `bind` has the stream wait for the last write, and while the buffer is borrowed nobody can write it; a later writer
// waits for this use, which `launched` notes. The address is that of live memory: freeing waits as well.
unsafe impl<T> Argument<&[T]> for &DeviceBuffer<T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        self.accesses.before_read(stream)?;
        Ok(self.pointer.as_raw())
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        self.accesses.after_read(stream);
    }
}

// SAFETY: `bind` has the stream wait for every use, the buffer is borrowed exclusively, and later uses wait for this one, which
// `launched` notes. The address is that of live memory: freeing waits as well.
unsafe impl<T> Argument<&mut [T]> for &mut DeviceBuffer<T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        self.accesses.before_write(stream)?;
        Ok(self.pointer.as_raw())
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        self.accesses.after_write(stream);
    }
}

impl<T> AsRef<Driver> for DeviceBuffer<T> {
    fn as_ref(&self) -> &Driver {
        self.stream.driver()
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(formatter, "DeviceBuffer({} × {name} at {:?})", self.len, self.pointer)
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.pointer.as_raw() != 0 {
            release(|| self.free());
        }
    }
}

/// Adds to the error of an allocation what was asked for, and what there is.
#[cold]
fn explain(error: Error, stream: &Stream, bytes: usize) -> Error {
    let error = error.about(format!("{bytes} bytes"));
    if !error.is_out_of_memory() {
        return error;
    }
    let memory = stream.context().memory_info();
    error.advised(|_| {
        let memory = memory.ok()?;
        Some(format!("{} of {} bytes of the device are free", memory.free, memory.total).into())
    })
}
