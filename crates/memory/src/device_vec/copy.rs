//! Copies of whole vectors. Use slices to copy parts.

use crate::{AnyBitPattern, NoUninit};
use curium_driver::{Result, Stream};

use super::DeviceVec;
use crate::AsDeviceSlice;

impl<T> DeviceVec<T> {
    /// Copies `source`, which must have the same length, to the vector. Waits until the copy has completed.
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

    /// Copies like [`DeviceVec::copy_from_slice`], on `stream`. In a capture, the graph keeps a copy of `source` and uploads it at each
    /// launch.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::copy_from_slice`].
    pub fn copy_from_slice_on(&mut self, stream: &Stream, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        self.as_slice_mut().copy_from_slice_on(stream, source)
    }

    /// Copies the elements to `target`, which must have the same length. Waits until the copy has completed.
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

    /// Copies like [`DeviceVec::copy_to_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::copy_to_slice`]; an argument error if the stream is being captured.
    pub fn copy_to_slice_on(&self, stream: &Stream, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.as_slice().copy_to_slice_on(stream, target)
    }

    /// Copies the elements to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// Copies like [`DeviceVec::to_vec`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::to_vec`]; an argument error if the stream is being captured.
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec_on(stream)
    }

    /// Appends the elements of `source`, which may be on another device. Returns once the copy is enqueued on this vector's stream.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. On error, the vector is unchanged.
    #[doc(alias = "cuMemcpyDtoD")]
    #[doc(alias = "cudaMemcpy")]
    pub fn extend_from_device(&mut self, source: &impl AsDeviceSlice<Element = T>) -> Result<()>
    where
        T: Copy,
    {
        const OPERATION: &str = "DeviceVec::extend_from_device";
        let source = source.as_device_slice();
        self.stream()
            .driver()
            .expect_same(source.stream().driver(), OPERATION)?;
        let len = self.make_room_on_own(OPERATION, source.len())?;
        self.uninit(self.len, source.len())
            .copy_from_device(&source)?;
        self.len = len;
        Ok(())
    }

    /// Appends like [`DeviceVec::extend_from_device`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::extend_from_device`]; an argument error if the stream is being captured.
    pub fn extend_from_device_on(
        &mut self,
        stream: &Stream,
        source: &impl AsDeviceSlice<Element = T>,
    ) -> Result<()>
    where
        T: Copy,
    {
        const OPERATION: &str = "DeviceVec::extend_from_device_on";
        let source = source.as_device_slice();
        self.stream()
            .driver()
            .expect_same(source.stream().driver(), OPERATION)?;
        let len = self.make_room_on(OPERATION, stream, source.len())?;
        self.uninit(self.len, source.len())
            .copy_from_device_on(stream, &source)?;
        self.len = len;
        Ok(())
    }
}
