//! Conversion of buffers to and from raw parts.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

use curium_driver::{DevicePointer, Error, Result, Returned, Stream};

use super::DeviceBuffer;
use crate::device_slice::Parts;
use crate::resource::Resource;
use crate::size;
use crate::tracked::{Accessibility, Tracked};

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Decomposes the buffer into its address, which the caller must free, and its resource.
    ///
    /// The buffer's stream waits for accesses on other streams. Afterwards the memory may be used
    /// in the order of that stream.
    ///
    /// CUDA: `cuEventRecord`, `cuStreamWaitEvent`, if other streams accessed the memory.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if its stream cannot wait; an argument error if a
    /// graph uses the memory.
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    pub fn into_raw(mut self) -> Result<(DevicePointer<T>, R), Returned<Self>> {
        if self.parts.origin.exclusive().is_leased() || self.stream().is_created_by_capture() {
            return Err(Returned::new(
                self,
                Error::argument("DeviceBuffer::into_raw", "a graph uses or owns the memory"),
            ));
        }
        let stream = self.stream().clone();
        match self.parts.origin.exclusive().before_free(&stream) {
            Ok(()) => {
                let (parts, resource) = self.into_parts();
                Ok((parts.pointer, resource))
            }
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    /// Creates a buffer from memory of `resource`.
    ///
    /// # Safety
    ///
    /// - `pointer` was returned by [`Resource::allocate`] of this resource, or of one that shares
    ///   its state, on a stream of the same context, with `len * size_of::<T>()` bytes and an
    ///   alignment of 256 or that of `T`, whichever is larger.
    /// - Work enqueued on `stream` afterwards may access the memory, and no other work does.
    /// - The memory contains valid values of `T` in the order of `stream`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large, or if the pointer is null. On error, the
    /// caller keeps the memory.
    pub unsafe fn from_raw(
        stream: &Stream,
        pointer: DevicePointer<T>,
        len: usize,
        resource: R,
    ) -> Result<Self> {
        size::bytes::<T>("DeviceBuffer::from_raw", len)?;
        if pointer.as_raw() == 0 {
            return Err(Error::argument("DeviceBuffer::from_raw", "null pointer"));
        }
        if stream.is_created_by_capture() {
            return Err(Error::argument(
                "DeviceBuffer::from_raw",
                "the stream belongs to a capture",
            ));
        }
        let tracked = Tracked::leasable(stream, Accessibility::Device)
            .at(pointer.as_raw(), len * size_of::<T>());
        Ok(Self {
            parts: Parts::new(pointer, len, tracked),
            resource,
        })
    }

    /// Returns the fields without freeing the memory.
    fn into_parts(self) -> (Parts<T>, R) {
        let buffer = ManuallyDrop::new(self);
        // SAFETY: the field is moved out of a value that is not used or dropped afterwards.
        let parts = unsafe { ptr::read(&raw const buffer.parts) };
        // SAFETY: the field is moved out of a value that is not used or dropped afterwards.
        let resource = unsafe { ptr::read(&raw const buffer.resource) };
        (parts, resource)
    }
}

impl<T, R: Resource> DeviceBuffer<MaybeUninit<T>, R> {
    /// Converts the buffer into one of initialized elements.
    ///
    /// # Safety
    ///
    /// Once the work enqueued so far has completed, every element is a valid `T`.
    #[must_use]
    pub unsafe fn assume_init(self) -> DeviceBuffer<T, R> {
        let (parts, resource) = self.into_parts();
        DeviceBuffer {
            parts: Parts::new(parts.pointer.cast(), parts.len, parts.origin),
            resource,
        }
    }
}
