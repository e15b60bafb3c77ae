//! Copies and fills.

use crate::capture_advice::ON_MUT;
use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::Result;

use super::DeviceSlice;
use crate::operand::Operand;
use crate::transfer::{CopyOptions, device, host};
use crate::{fill, size};

impl<T> DeviceSlice<T> {
    /// Copies `source`, which must have the same length, to the device. `source` may be changed as
    /// soon as the function returns.
    ///
    /// Waits until the copy has completed, unless it is [small](crate::copy#small-copies): then it
    /// returns once the copy is enqueued, and errors of the device are reported later.
    ///
    /// In a capture, the graph keeps a copy of `source` and uploads it at each launch.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`; `cuStreamSynchronize`, unless the copy is small;
    /// `cuEventRecord`, once for several small copies.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; an error of earlier asynchronous work in the
    /// context.
    #[doc(alias = "cuMemcpyHtoD")]
    #[doc(alias = "cudaMemcpy")]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let origin = self.origin();
        let operation = origin.names.copy_from_slice;
        size::same_len(operation, self.len(), source.len())?;
        host::upload(operation, origin.stream, self.operand(), source)
    }

    /// Copies the elements to `target`, which must have the same length. Waits until the copy has
    /// completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ, or if the stream is being captured; an error of
    /// earlier asynchronous work in the context.
    #[doc(alias = "cuMemcpyDtoH")]
    #[doc(alias = "cudaMemcpy")]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        let origin = self.origin();
        let operation = origin.names.copy_to_slice;
        size::same_len(operation, self.len(), target.len())?;
        host::download(operation, origin.stream, self.operand(), target)
    }

    /// Copies the elements to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is being captured; an error of earlier asynchronous work in
    /// the context.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let origin = self.origin();
        let mut target = bytemuck::zeroed_vec(self.len());
        host::download(
            origin.names.to_vec,
            origin.stream,
            self.operand(),
            &mut target,
        )?;
        Ok(target)
    }

    /// Copies the element at `index` to the host. Waits until the copy has completed. Copying many
    /// elements at once is much faster.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `index` is out of bounds, or if the stream is being captured; an error
    /// of earlier asynchronous work in the context.
    pub fn get(&self, index: usize) -> Result<T>
    where
        T: AnyBitPattern,
    {
        let origin = self.origin();
        let operation = origin.names.get;
        let element = self.element(operation, index)?;
        let mut value = T::zeroed();
        let target = std::slice::from_mut(&mut value);
        host::download(operation, origin.stream, element, target)?;
        Ok(value)
    }

    /// Copies `value` to the element at `index`, like [`DeviceSlice::copy_from_slice`]. Copying
    /// many elements at once is much faster.
    ///
    /// In a capture, each launch of the graph sets the element.
    ///
    /// CUDA: as for [`DeviceSlice::copy_from_slice`].
    ///
    /// # Errors
    ///
    /// An argument error if `index` is out of bounds.
    pub fn set(&mut self, index: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let origin = self.origin();
        let operation = origin.names.set;
        let element = self.element(operation, index)?;
        host::upload(operation, origin.stream, element, &[value])
    }

    /// Copies `source`, which must have the same length and may be on another device. Returns once
    /// the copy is enqueued.
    ///
    /// A copy between devices is direct if they have peer access, and staged through the host
    /// otherwise.
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
    #[doc(alias = "cuMemcpyPeer")]
    #[doc(alias = "cudaMemcpyPeer")]
    pub fn copy_from_device(&mut self, source: &DeviceSlice<T>) -> Result<()>
    where
        T: Copy,
    {
        let origin = self.origin();
        let operation = origin.names.copy_from_device;
        size::same_len(operation, self.len(), source.len())?;
        let operation = origin.stream.enqueue_or(operation, ON_MUT)?;
        device::copy(operation, self.operand(), source.operand())
    }

    /// Copies like [`DeviceSlice::copy_from_device`], with hints for drivers that support them.
    ///
    /// CUDA: `cuMemcpyWithAttributesAsync` (since 13.2) or `cuMemcpyBatchAsync_v2` (since 13.0); an
    /// older driver ignores the options.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSlice::copy_from_device`].
    #[doc(alias = "cuMemcpyWithAttributesAsync")]
    pub fn copy_from_device_with(
        &mut self,
        source: &DeviceSlice<T>,
        options: CopyOptions,
    ) -> Result<()>
    where
        T: Copy,
    {
        let origin = self.origin();
        let operation = origin.names.copy_from_device_with;
        size::same_len(operation, self.len(), source.len())?;
        let operation = origin.stream.enqueue_or(operation, ON_MUT)?;
        device::copy_with(operation, self.operand(), source.operand(), options)
    }

    /// Sets every element to `value`. Returns once the fill is enqueued.
    ///
    /// A value whose bytes repeat with a period of 1, 2 or 4 takes one driver call. Any other value
    /// takes one call per word of up to 4 bytes, and is slower than a kernel.
    ///
    /// CUDA: `cuMemsetD8Async`, `cuMemsetD16Async`, `cuMemsetD32Async`, `cuMemsetD2D8Async`,
    /// `cuMemsetD2D16Async`, `cuMemsetD2D32Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "cuMemsetD16Async")]
    pub fn fill(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let origin = self.origin();
        let operation = origin.stream.enqueue_or(origin.names.fill, ON_MUT)?;
        fill::elements(operation, &self.operand(), bytemuck::bytes_of(&value))
    }

    /// Sets every byte to zero. Returns once the fill is enqueued.
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
        let origin = self.origin();
        let operation = origin.stream.enqueue_or(origin.names.zero, ON_MUT)?;
        fill::elements(operation, &self.operand(), &[0])
    }

    /// Returns the element at `index` as a copy operand.
    fn element(&self, operation: &'static str, index: usize) -> Result<Operand<'_>> {
        size::index(operation, self.len(), index)?;
        Ok(Operand {
            address: self.as_pointer().wrapping_add(index).as_raw(),
            bytes: size_of::<T>(),
            ..self.operand()
        })
    }
}
