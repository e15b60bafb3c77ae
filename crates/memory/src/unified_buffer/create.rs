//! Constructors.

use curium_driver::sys::{CUdeviceptr, CUmemAttach_flags};
use curium_driver::{DeviceAttribute, DevicePointer, Driver, Result, Stream, call};

use super::UnifiedBuffer;
use super::host_access::Attachment;
use crate::capture_advice::ALLOCATE_BEFORE;
use crate::device_slice::Parts;
use crate::tracked::{Accessibility, Tracked};
use crate::transfer::{device, host};
use crate::{AnyBitPattern, NoUninit, Zeroable, fill, size};

impl<T> UnifiedBuffer<T> {
    /// Allocates `len` elements and sets every byte to zero on `stream`, which is the buffer's
    /// stream.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large; `CUDA_ERROR_OUT_OF_MEMORY`;
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no managed memory.
    #[doc(alias = "cuMemAllocManaged")]
    #[doc(alias = "cudaMallocManaged")]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        let operation = stream.enqueue_or("UnifiedBuffer::zeroed", ALLOCATE_BEFORE)?;
        let buffer = Self::allocate("UnifiedBuffer::zeroed", stream, len)?;
        fill::elements(operation, &buffer.operand(), &[0])?;
        Ok(buffer)
    }

    /// Allocates `len` elements with unspecified values. `stream` is the buffer's stream.
    ///
    /// CUDA: `cuMemAllocManaged`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::zeroed`].
    #[inline]
    pub fn uninit(stream: &Stream, len: usize) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate("UnifiedBuffer::uninit", stream, len)
    }

    /// Allocates a buffer and copies `source` to it on `stream`, which is the buffer's stream.
    /// Waits until the copy has completed, unless it is [small](crate::copy#small-copies).
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemcpyHtoDAsync_v2`; `cuStreamSynchronize`, unless the copy is
    /// small.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::zeroed`].
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "UnifiedBuffer::from_slice";
        stream.check_enqueue(OPERATION, ALLOCATE_BEFORE)?;
        let buffer = Self::allocate(OPERATION, stream, source.len())?;
        host::upload(OPERATION, stream, buffer.operand(), source)?;
        Ok(buffer)
    }

    /// Allocates `len` elements and sets each to `value` on `stream`, which is the buffer's stream.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemsetD8Async` and its variants.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::zeroed`].
    pub fn filled(stream: &Stream, len: usize, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        let operation = stream.enqueue_or("UnifiedBuffer::filled", ALLOCATE_BEFORE)?;
        let buffer = Self::allocate("UnifiedBuffer::filled", stream, len)?;
        fill::elements(operation, &buffer.operand(), bytemuck::bytes_of(&value))?;
        Ok(buffer)
    }

    /// Allocates a buffer with the same contents on the same stream. Returns once the copy is
    /// enqueued.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemcpyDtoDAsync_v2`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::zeroed`].
    pub fn try_clone(&self) -> Result<Self>
    where
        T: Copy,
    {
        let operation = self
            .stream()
            .enqueue_or("UnifiedBuffer::try_clone", ALLOCATE_BEFORE)?;
        let clone = Self::allocate("UnifiedBuffer::try_clone", self.stream(), self.len())?;
        device::copy(operation, clone.operand(), self.operand())?;
        Ok(clone)
    }

    fn allocate(operation: &'static str, stream: &Stream, len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let tracked = Tracked::leasable_outside(operation, stream, Accessibility::Managed)?;
        let is_concurrent = is_concurrent(stream.driver())?;
        let pointer = stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            let flags: u32 = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
            // SAFETY: `raw` is a valid pointer, and the context is current.
            let result =
                unsafe { call!(driver, cuMemAllocManaged(&raw mut raw, bytes, flags) creates raw) };
            result.map_err(|error| error.about(format!("{bytes} bytes of managed memory")))?;
            Ok(DevicePointer::from_raw(raw))
        })?;
        let tracked = tracked.at(pointer.as_raw(), bytes);
        let buffer = Self {
            parts: Parts::new(pointer, len, tracked),
            is_concurrent,
            attachment: Attachment::Global,
        };
        size::aligned::<T>(operation, pointer.as_raw()).map(|()| buffer)
    }
}

/// Returns `true` if the host may access managed memory while any device of the system works. Every
/// device can access a buffer, so all are considered.
fn is_concurrent(driver: &Driver) -> Result<bool> {
    let attribute = DeviceAttribute::CONCURRENT_MANAGED_ACCESS;
    driver
        .devices()?
        .iter()
        .try_fold(true, |all, device| Ok(all && device.attribute(attribute)?))
}
