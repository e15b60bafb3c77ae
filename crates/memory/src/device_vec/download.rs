//! Copies of a vector to the host.

use bytemuck::AnyBitPattern;
use curium_driver::{Result, Stream};

use super::DeviceVec;

impl<T> DeviceVec<T> {
    /// Copies the elements to a vector. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier work of the context.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// Like [`DeviceVec::to_vec`], on the given stream.
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
}
