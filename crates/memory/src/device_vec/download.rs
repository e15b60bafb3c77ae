//! Copies of a vector to the host.

use bytemuck::AnyBitPattern;
use curium_driver::{Result, Stream};

use super::DeviceVec;

impl<T> DeviceVec<T> {
    /// A copy of the elements on the host. Waits until it is there.
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

    /// As [`DeviceVec::to_vec`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::to_vec`]; an argument error if the stream is being captured.
    #[inline]
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec_on(stream)
    }
}
