//! Copies and fills of whole buffers. Use slices for parts.

use curium_driver::{Result, Stream};

use super::DeviceBuffer;
use crate::resource::Resource;
use crate::{AnyBitPattern, AsDeviceSlice, DeviceSliceMut, NoUninit, Zeroable};

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Sets every element to `value`. Returns once the fill is enqueued on the buffer's stream. See [`DeviceSliceMut::fill`].
    ///
    /// CUDA: `cuMemsetD8Async`, `cuMemsetD16Async`, `cuMemsetD32Async`, `cuMemsetD2D8Async`, `cuMemsetD2D16Async`, `cuMemsetD2D32Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemsetD32Async")]
    pub fn fill(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.as_slice_mut().fill(value)
    }

    /// Fills like [`DeviceBuffer::fill`], on `stream`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.as_slice_mut().fill_on(stream, value)
    }

    /// Sets every byte to zero. Returns once the fill is enqueued on the buffer's stream.
    ///
    /// CUDA: `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cudaMemsetAsync")]
    pub fn zero(&mut self) -> Result<()>
    where
        T: Zeroable,
    {
        self.as_slice_mut().zero()
    }

    /// Fills like [`DeviceBuffer::zero`], on `stream`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn zero_on(&mut self, stream: &Stream) -> Result<()>
    where
        T: Zeroable,
    {
        self.as_slice_mut().zero_on(stream)
    }

    /// Returns the first `middle` elements and the rest, as two views that different operations may write.
    ///
    /// ```
    /// # let device = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Device>()?;
    /// use curium_memory::DeviceBuffer;
    ///
    /// # let stream = device.primary_context()?.stream()?;
    /// let mut buffer = DeviceBuffer::zeroed(&stream, 4)?;
    /// let (mut left, mut right) = buffer.split_at_mut(1)?;
    /// left.fill(1)?;
    /// right.fill(2)?;
    /// assert_eq!(buffer.to_vec()?, [1, 2, 2, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An argument error if `middle` is greater than the length.
    pub fn split_at_mut(
        &mut self,
        middle: usize,
    ) -> Result<(DeviceSliceMut<'_, T>, DeviceSliceMut<'_, T>)> {
        self.as_slice_mut()
            .split_at(middle)
            .map_err(|error| error.during("DeviceBuffer::split_at_mut"))
    }

    /// Copies `source`, which must have the same length, to the device. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyHtoD")]
    #[doc(alias = "cudaMemcpy")]
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
    #[doc(alias = "cudaMemcpy")]
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
    #[doc(alias = "cudaMemcpy")]
    #[doc(alias = "cuMemcpyPeerAsync")]
    #[doc(alias = "cudaMemcpyPeerAsync")]
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
