//! Buffers in managed (unified) memory.

mod advice;
mod batch;
mod host_access;
mod residency;

use std::fmt;
use std::marker::PhantomData;

use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::sys::{CUdeviceptr, CUmemAttach_flags};
use curium_driver::{DeviceAttribute, DevicePointer, Driver, Result, Returned, Stream, call};

pub use self::advice::{MemoryAdvice, RangeAttributes};
pub use self::batch::{discard, discard_and_prefetch, prefetch};
use self::host_access::Attachment;
pub(crate) use self::host_access::HostAttachment;
use crate::capture_advice::ALLOCATE_BEFORE;
use crate::copy::{device, host};
use crate::device_slice::{WholeMut, argument_as, buffer_views};
use crate::tracked::{Accessibility, Tracked};
use crate::{fill, size, wait};

/// A buffer in managed (unified) memory.
///
/// Kernels accept it like a [`DeviceBuffer`](crate::DeviceBuffer). The host accesses it through
/// [`UnifiedBuffer::host_view`] and [`UnifiedBuffer::host_view_mut`], which wait for conflicting work. While a view
/// exists, no conflicting work can start.
///
/// # Concurrent managed access
///
/// On Linux with most GPUs, the host may access managed memory at any time. Elsewhere (Windows, WSL, Jetson, some
/// virtual GPUs) the device attribute `CONCURRENT_MANAGED_ACCESS` is 0, and the host must not access a managed buffer
/// while a device works, unless the buffer is attached to the host. [`UnifiedBuffer::host_view_mut`] works on every
/// system: it attaches the buffer to the host for as long as the view exists. [`UnifiedBuffer::host_view`] requires
/// [`UnifiedBuffer::attach`] there, because kernels may read a shared buffer in the meantime.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{MemoryLocation, UnifiedBuffer};
///
/// # let device = driver.device(0)?;
/// # let stream = device.primary_context()?.stream()?;
/// let mut buffer = UnifiedBuffer::<f32>::zeroed(&stream, 1024)?;
/// buffer.host_view_mut()?[7] = 1.0;
/// buffer.prefetch(&stream, .., MemoryLocation::from(&device))?;
/// buffer.as_slice_mut().slice(..7)?.fill(2.0)?; // on the stream
/// assert_eq!(buffer.host_view()?[6..8], [2.0, 1.0]); // waits
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnifiedBuffer<T> {
    /// Null once the memory was freed.
    pointer: DevicePointer<T>,
    len: usize,
    tracked: Tracked,
    /// `true` if the host may access managed memory while any device of the system works.
    is_concurrent: bool,
    attachment: Attachment,
    _elements: PhantomData<T>,
}

impl<T> UnifiedBuffer<T> {
    /// Allocates `len` elements and sets every byte to zero on `stream`, which is the buffer's stream.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large; `CUDA_ERROR_OUT_OF_MEMORY`; `CUDA_ERROR_NOT_SUPPORTED` if the device has no managed
    /// memory.
    #[doc(alias = "cuMemAllocManaged")]
    #[doc(alias = "cudaMallocManaged")]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        let operation = stream.enqueue_or("UnifiedBuffer::zeroed", ALLOCATE_BEFORE)?;
        let mut buffer = Self::allocate("UnifiedBuffer::zeroed", stream, len)?;
        fill::elements(operation, &buffer.as_slice_mut().end(), &[0])?;
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

    /// Allocates a buffer and copies `source` to it on `stream`, which is the buffer's stream. Waits until the copy has
    /// completed.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::zeroed`].
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "UnifiedBuffer::from_slice";
        drop(stream.enqueue_or(OPERATION, ALLOCATE_BEFORE)?);
        let mut buffer = Self::allocate(OPERATION, stream, source.len())?;
        host::upload(OPERATION, stream, buffer.as_slice_mut(), source)?;
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
        let mut buffer = Self::allocate("UnifiedBuffer::filled", stream, len)?;
        fill::elements(
            operation,
            &buffer.as_slice_mut().end(),
            bytemuck::bytes_of(&value),
        )?;
        Ok(buffer)
    }

    /// Allocates a buffer with the same contents on the same stream. Returns once the copy is enqueued.
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
        let mut clone = Self::allocate("UnifiedBuffer::try_clone", self.stream(), self.len)?;
        device::copy(operation, clone.as_slice_mut().end(), self.as_slice().end())?;
        Ok(clone)
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `false`: there is at least one element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the first element. Accesses through the pointer are not tracked.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// Frees the buffer, as [`Drop`] does, and returns any error. Waits for the work that accesses it.
    ///
    /// CUDA: `cuMemFree_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if the driver fails.
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
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
            pointer,
            len,
            tracked,
            is_concurrent,
            attachment: Attachment::Global,
            _elements: PhantomData,
        };
        size::aligned::<T>(operation, pointer.as_raw()).map(|()| buffer)
    }

    fn free(&mut self) -> Result<()> {
        if self.tracked.exclusive().is_leased() {
            self.tracked
                .leave_sync_allocation(self.pointer.as_raw(), self.byte_len() as u64);
            self.pointer = DevicePointer::from_raw(0);
            return Ok(());
        }
        self.tracked.wait_for_uses()?;
        // SAFETY: the memory is live, all work that accesses it has completed, and it is not used after this call.
        unsafe {
            call!(
                self.tracked.stream().driver(),
                cuMemFree_v2(self.pointer.as_raw())
            )
        }
        .map_err(|error| self.as_slice().end().explain(error))?;
        self.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

/// Returns `true` if the host may access managed memory while any device of the system works. Every device can access a
/// buffer, so all are considered.
fn is_concurrent(driver: &Driver) -> Result<bool> {
    let attribute = DeviceAttribute::CONCURRENT_MANAGED_ACCESS;
    driver
        .devices()?
        .iter()
        .try_fold(true, |all, device| Ok(all && device.attribute(attribute)?))
}

argument_as!([T] UnifiedBuffer<T>: |buffer| buffer.as_slice(), WholeMut::new(buffer.pointer, &mut buffer.tracked));

buffer_views!([T] UnifiedBuffer<T>);

impl<T> fmt::Debug for UnifiedBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "UnifiedBuffer({} × {} at {:?})",
            self.len,
            std::any::type_name::<T>(),
            self.pointer
        )
    }
}

impl<T> Drop for UnifiedBuffer<T> {
    fn drop(&mut self) {
        if self.pointer.as_raw() != 0 {
            let driver = self.stream().driver().clone();
            let bytes = self.byte_len() as u64;
            wait::free_or_leak(&driver, bytes, || self.free());
        }
    }
}
