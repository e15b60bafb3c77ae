//! What is copied to and from a vector.

use bytemuck::{AnyBitPattern, NoUninit};
use curium_driver::{Argument, Result, Stream, call};

use super::DeviceVec;
use crate::copy::{host, spanning};
use crate::{DeviceBuffer, size};

impl<T> DeviceVec<T> {
    /// Copies `source`, which has as many elements, to the vector. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[inline]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        size::same_len("DeviceVec::copy_from_slice", self.len, source.len())?;
        if source.is_empty() { Ok(()) } else { self.write(0, source) }
    }

    /// Copies the elements to `target`, which has as many. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; the error of any work of the context that failed before.
    #[inline]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        size::same_len("DeviceVec::copy_to_slice", self.len, target.len())?;
        if target.is_empty() {
            return Ok(());
        }
        let (stream, bytes, from) = (&self.stream, self.byte_len(), self.as_pointer().as_raw());
        let to = target.as_mut_ptr().cast();
        self.accesses.before_read(stream)?;
        // SAFETY: both sides have this many bytes, the memory is mapped, any bytes are valid elements, and `target` is borrowed until
        // the stream has been waited for below.
        let result = unsafe { host::to_host(stream, to, from, bytes) };
        result.map_err(|error| error.about(format!("{bytes} bytes")))?;
        self.accesses.after_read(stream);
        stream.synchronize()
    }

    /// Adds the elements of `source` on the device. Returns when the copy is on this vector's stream.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. The vector is as it was then.
    #[inline]
    pub fn extend_from_buffer(&mut self, mut source: &DeviceBuffer<T>) -> Result<()> {
        self.stream.driver().expect_same(source.stream().driver(), "DeviceVec::extend_from_buffer")?;
        let len = self.make_room("DeviceVec::extend_from_buffer", source.len())?;
        let (to, bytes) = (self.as_pointer().wrapping_add(self.len).as_raw(), source.byte_len());
        let stream: &Stream = &self.stream;
        self.accesses.before_write(stream)?;
        // SAFETY: the copy is noted by `launched` below, and the buffer is not used in between.
        let from = unsafe { Argument::<&[T]>::bind(&mut source, stream) }?;
        spanning::enqueue(stream, || {
            // SAFETY: the buffer has this many bytes, there is room for them, and the stream has waited for all that both must wait for.
            unsafe { call!(stream.driver(), cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())) }
        })?;
        // SAFETY: the buffer was bound to this stream above, and not used since.
        unsafe { Argument::<&[T]>::launched(&mut source, stream) };
        self.accesses.after_write(stream);
        self.len = len;
        Ok(())
    }

    /// Copies `source` to the elements from `first` on, which there is memory for, and waits.
    #[inline]
    pub(super) fn write(&mut self, first: usize, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let (to, bytes) = (self.as_pointer().wrapping_add(first).as_raw(), size_of_val(source));
        let (stream, accesses) = (&self.stream, &mut self.accesses);
        accesses.before_write(stream)?;
        let from = source.as_ptr().cast();
        // SAFETY: there is memory for these bytes, and `source` is borrowed until the stream has been waited for below.
        let result = unsafe { host::to_device(stream, to, from, bytes) };
        result.map_err(|error| error.about(format!("{bytes} bytes")))?;
        accesses.after_write(stream);
        stream.synchronize()
    }

    /// Sets `count` elements from `first` on, at least one, which there is memory for: one from the host, and the rest by copies of
    /// what is there already.
    #[inline]
    pub(super) fn fill(&mut self, first: usize, count: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.write(first, &[value])?;
        let (stream, from) = (&self.stream, self.as_pointer().wrapping_add(first));
        let mut done = 1;
        while done < count {
            let next = done.min(count - done);
            let (to, bytes) = (from.wrapping_add(done).as_raw(), next * size_of::<T>());
            spanning::enqueue(stream, || {
                // SAFETY: there is memory for both ranges, which do not overlap, and the stream has waited for all uses in `write`.
                unsafe { call!(stream.driver(), cuMemcpyDtoDAsync_v2(to, from.as_raw(), bytes, stream.as_raw())) }
            })?;
            self.accesses.after_write(stream);
            done += next;
        }
        Ok(())
    }
}
