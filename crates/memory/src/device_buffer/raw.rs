//! Buffers and what they are made of.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

use curium_driver::{DevicePointer, Error, Result, Returned, Stream};

use super::DeviceBuffer;
use crate::resource::Resource;
use crate::size;
use crate::tracked::{Reach, Tracked};

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Takes the buffer apart: its address, which is the caller's to free, and the resource that it is to be given back to.
    ///
    /// The buffer's stream waits for every use of it on others: the memory may be used in the order of that stream from then on.
    ///
    /// CUDA: `cuEventRecord`, `cuStreamWaitEvent`, if there were uses on other streams.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if its stream cannot wait; with an argument error if a graph uses the memory.
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn into_raw(mut self) -> Result<(DevicePointer<T>, R), Returned<Self>> {
        if self.tracked.exclusive().is_leased() || self.stream().is_created_by_capture() {
            return Err(Returned::new(
                self,
                Error::argument("DeviceBuffer::into_raw", "a graph uses the memory, or owns it"),
            ));
        }
        let stream = self.stream().clone();
        match self.tracked.exclusive().before_free(&stream) {
            Ok(()) => {
                let (pointer, _, _, resource) = self.into_parts();
                Ok((pointer, resource))
            }
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    /// Makes a buffer of memory that came from `resource`.
    ///
    /// # Safety
    ///
    /// - `pointer` came from [`Resource::allocate`] of this resource, or of one that its memory can be given back to, on a stream of the
    ///   same context, with `len * size_of::<T>()` bytes and an alignment of 256, or of `T` if that is more.
    /// - Work that is put on `stream` from now on may use the memory, and nobody else does.
    /// - It holds values of `T`, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large to be a size, or if the pointer is null. The memory is the caller's then.
    #[inline]
    pub unsafe fn from_raw(stream: &Stream, pointer: DevicePointer<T>, len: usize, resource: R) -> Result<Self> {
        size::bytes::<T>("DeviceBuffer::from_raw", len)?;
        if pointer.as_raw() == 0 {
            return Err(Error::argument("DeviceBuffer::from_raw", "the pointer is null"));
        }
        if stream.is_created_by_capture() {
            return Err(Error::argument("DeviceBuffer::from_raw", "the stream is one of a capture"));
        }
        let tracked = Tracked::leasable(stream, Reach::Device).at(pointer.as_raw(), len * size_of::<T>());
        Ok(Self { pointer, len, tracked, resource, _elements: PhantomData })
    }

    /// The fields, of which nothing is freed.
    #[inline]
    fn into_parts(self) -> (DevicePointer<T>, usize, Tracked, R) {
        let buffer = ManuallyDrop::new(self);
        // SAFETY: the field is moved out of a value that is not used or dropped afterwards.
        let tracked = unsafe { ptr::read(&raw const buffer.tracked) };
        // SAFETY: as above.
        let resource = unsafe { ptr::read(&raw const buffer.resource) };
        (buffer.pointer, buffer.len, tracked, resource)
    }
}

impl<T, R: Resource> DeviceBuffer<MaybeUninit<T>, R> {
    /// The same buffer as one of values.
    ///
    /// # Safety
    ///
    /// Work on the buffer so far, once it is done, has left a value of `T` in each place.
    #[must_use]
    #[inline]
    pub unsafe fn assume_init(self) -> DeviceBuffer<T, R> {
        let (pointer, len, tracked, resource) = self.into_parts();
        DeviceBuffer { pointer: pointer.cast(), len, tracked, resource, _elements: PhantomData }
    }
}
