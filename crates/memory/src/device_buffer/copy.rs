//! Copies of whole buffers. Parts are copied through views.

use bytemuck::{AnyBitPattern, NoUninit};
use curium_driver::Result;

use super::DeviceBuffer;
use crate::copy::{device, host};
use crate::resource::Resource;
use crate::size;

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Copies `source`, which has as many elements as the buffer, to the device. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyHtoD")]
    #[inline]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        size::same_len("DeviceBuffer::copy_from_slice", self.len, source.len())?;
        host::upload(self.as_slice_mut(), source)
    }

    /// Copies the buffer to `target`, which has as many elements. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; the error of any work of the context that failed before.
    #[doc(alias = "cuMemcpyDtoH")]
    #[inline]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        size::same_len("DeviceBuffer::copy_to_slice", self.len, target.len())?;
        host::download(self.as_slice(), target)
    }

    /// A copy of the buffer on the host. Waits until it is there.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[inline]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// Copies `source`, which has as many elements and may be on another device, on the device. Returns when the copy is on this
    /// buffer's stream.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyDtoD")]
    #[doc(alias = "cuMemcpyPeerAsync")]
    #[inline]
    pub fn copy_from_buffer(&mut self, source: &DeviceBuffer<T, impl Resource>) -> Result<()>
    where
        T: Copy,
    {
        const OPERATION: &str = "DeviceBuffer::copy_from_buffer";
        size::same_len(OPERATION, self.len, source.len)?;
        let target = self.as_slice_mut();
        device::copy(OPERATION, target.stream(), target.end(), source.as_slice().end())
    }
}
