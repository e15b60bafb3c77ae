//! Copies of whole buffers. Use slices to copy parts.

use crate::{AnyBitPattern, NoUninit};
use curium_driver::{Result, Stream};

use super::DeviceBuffer;
use crate::AsDeviceSlice;
use crate::resource::Resource;

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Copies `source`, which must have the same length, to the device. Waits until the copy has completed.
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
        self.as_slice_mut().copy_from_slice(source)
    }

    /// Copies like [`DeviceBuffer::copy_from_slice`], on `stream`. In a capture, the graph keeps a copy of `source` and uploads it at each
    /// launch.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::copy_from_slice`].
    pub fn copy_from_slice_on(&mut self, stream: &Stream, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        self.as_slice_mut().copy_from_slice_on(stream, source)
    }

    /// Copies the buffer to `target`, which must have the same length. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; an error of earlier asynchronous work in the context.
    #[doc(alias = "cuMemcpyDtoH")]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.as_slice().copy_to_slice(target)
    }

    /// Copies like [`DeviceBuffer::copy_to_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::copy_to_slice`]; an argument error if the stream is being captured.
    pub fn copy_to_slice_on(&self, stream: &Stream, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.as_slice().copy_to_slice_on(stream, target)
    }

    /// Copies the buffer to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    #[inline]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// Copies like [`DeviceBuffer::to_vec`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::to_vec`]; an argument error if the stream is being captured.
    #[inline]
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec_on(stream)
    }

    /// Copies `source`, which must have the same length and may be on another device. Returns once the copy is enqueued
    /// on this buffer's stream.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyDtoD")]
    #[doc(alias = "cuMemcpyPeerAsync")]
    #[inline]
    pub fn copy_from_device(&mut self, source: &impl AsDeviceSlice<Element = T>) -> Result<()>
    where
        T: Copy,
    {
        self.as_slice_mut().copy_from_device(source)
    }

    /// Copies like [`DeviceBuffer::copy_from_device`], on `stream`.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBuffer::copy_from_device`].
    #[inline]
    pub fn copy_from_device_on(
        &mut self,
        stream: &Stream,
        source: &impl AsDeviceSlice<Element = T>,
    ) -> Result<()>
    where
        T: Copy,
    {
        self.as_slice_mut().copy_from_device_on(stream, source)
    }
}
