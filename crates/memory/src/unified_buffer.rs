//! A buffer in managed memory.

mod advice;
mod argument;
mod batch;
mod residency;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::hazard::AccessGuard;
use curium_driver::sys::{CUdeviceptr, CUmemAttach_flags};
use curium_driver::{
    AttachMode, DeviceAttribute, DevicePointer, Driver, Error, LeakedMemory, Result, Returned, Stream, call, dropping,
    leak,
};

pub use self::advice::{MemoryAdvice, RangeAttributes};
pub use self::batch::{discard, discard_and_prefetch, prefetch};
use crate::capture_advice::ALLOCATE_BEFORE;
use crate::copy::host;
use crate::tracked::{Reach, Tracked};
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut, HostView, HostViewMut, size};

/// A fixed number of elements in managed memory: one address for the host and every device, and pages that migrate to whoever uses them.
///
/// Kernels take it as they take a [`DeviceBuffer`](crate::DeviceBuffer). The host sees it through [`UnifiedBuffer::host`] and
/// [`UnifiedBuffer::host_mut`], which wait for the work that uses it; while such a slice is in use, no work that would disturb it can be
/// started.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{MemoryLocation, UnifiedBuffer};
///
/// # let device = driver.device(0)?;
/// # let stream = device.primary_context()?.stream()?;
/// let mut buffer = UnifiedBuffer::<f32>::zeroed(&stream, 1024)?;
/// buffer.host_mut()?[7] = 1.0;
/// buffer.prefetch(&stream, .., MemoryLocation::from(&device))?;
/// buffer.as_slice_mut().slice(..7)?.fill(2.0)?; // on the stream
/// assert_eq!(buffer.host()?[6..8], [2.0, 1.0]); // waits
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnifiedBuffer<T> {
    /// 0 once the memory was freed.
    pointer: DevicePointer<T>,
    len: usize,
    tracked: Tracked,
    /// Whether the host may use managed memory while any device works.
    is_concurrent: bool,
    _elements: PhantomData<T>,
}

impl<T> UnifiedBuffer<T> {
    /// Allocates `len` elements and sets every byte to zero on `stream`, on which work on the buffer goes that names no other.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large to be a size; `CUDA_ERROR_OUT_OF_MEMORY`; `CUDA_ERROR_NOT_SUPPORTED` if the device has
    /// no managed memory.
    #[doc(alias = "cuMemAllocManaged")]
    #[inline]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        stream.expect_captured("UnifiedBuffer::zeroed", ALLOCATE_BEFORE)?;
        let mut buffer = Self::allocate("UnifiedBuffer::zeroed", stream, len)?;
        buffer.as_slice_mut().zero()?;
        Ok(buffer)
    }

    /// Allocates `len` elements and leaves their bytes as they are: any values.
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

    /// Allocates as many elements as `source` has and copies it there. Waits until the copy is done.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::zeroed`].
    #[inline]
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "UnifiedBuffer::from_slice";
        stream.expect_captured(OPERATION, ALLOCATE_BEFORE)?;
        let mut buffer = Self::allocate(OPERATION, stream, source.len())?;
        host::upload(OPERATION, stream, buffer.as_slice_mut(), source)?;
        Ok(buffer)
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element, which is never so.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The stream for work that names none.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// A view of all elements as the device sees them.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.pointer, self.len, &self.tracked)
    }

    /// A view of all elements as the device sees them, to be written.
    #[must_use]
    #[inline]
    pub fn as_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.pointer, self.len, &self.tracked)
    }

    /// A view of the elements in `range` as the device sees them.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the buffer.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// A view of the elements in `range` as the device sees them, to be written.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the buffer.
    #[inline]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        self.as_slice_mut().slice(range)
    }

    /// The elements as the host sees them. Waits until no work that was started writes them.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the host must not use managed memory while the device works, as the device's attribute
    /// `CONCURRENT_MANAGED_ACCESS` says, or if a graph can be launched that writes the memory: [`UnifiedBuffer::view`] keeps it from that;
    /// the error of any work of the context that failed before.
    #[inline]
    pub fn host(&self) -> Result<&[T]>
    where
        T: AnyBitPattern,
    {
        self.expect_concurrent("UnifiedBuffer::host")?;
        self.tracked.refuse_leases("UnifiedBuffer::host", false)?;
        self.tracked.wait_for_writes()?;
        // SAFETY: the memory is live and holds `len` elements, of which any bytes are valid; work that writes it has been waited for, and
        // none can be started while the buffer is borrowed.
        Ok(unsafe { std::slice::from_raw_parts(self.host_pointer(), self.len) })
    }

    /// The elements as the host sees them, to be written. Waits until no work that was started uses them.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::host`].
    #[inline]
    pub fn host_mut(&mut self) -> Result<&mut [T]>
    where
        T: AnyBitPattern,
    {
        self.expect_concurrent("UnifiedBuffer::host_mut")?;
        self.tracked.refuse_leases("UnifiedBuffer::host_mut", true)?;
        self.tracked.wait_for_uses()?;
        // SAFETY: the memory is live and holds `len` elements, of which any bytes are valid; work that uses it has been waited for, and
        // none can be started while the buffer is borrowed exclusively.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.host_pointer(), self.len) })
    }

    /// As [`UnifiedBuffer::host`], for memory that a graph uses: while the view exists, launching a graph that writes the memory is an
    /// error.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::host`].
    #[inline]
    pub fn view(&self) -> Result<HostView<'_, T>>
    where
        T: AnyBitPattern,
    {
        self.expect_concurrent("UnifiedBuffer::view")?;
        let view = self.tracked.view("UnifiedBuffer::view", false)?;
        self.tracked.wait_for_writes()?;
        // SAFETY: the memory is live and holds `len` elements, of which any bytes are valid; work that writes it has been waited for, and
        // none can be started while the buffer is borrowed and the view exists.
        let elements = unsafe { std::slice::from_raw_parts(self.host_pointer(), self.len) };
        Ok(HostView::new(elements, view))
    }

    /// As [`UnifiedBuffer::host_mut`], for memory that a graph uses: while the view exists, launching the graph is an error.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::host_mut`].
    #[inline]
    pub fn view_mut(&mut self) -> Result<HostViewMut<'_, T>>
    where
        T: AnyBitPattern,
    {
        self.expect_concurrent("UnifiedBuffer::view_mut")?;
        let view = self.tracked.view("UnifiedBuffer::view_mut", true)?;
        self.tracked.wait_for_uses()?;
        // SAFETY: as above, for all work, and the buffer is borrowed exclusively.
        let elements = unsafe { std::slice::from_raw_parts_mut(self.host_pointer(), self.len) };
        Ok(HostViewMut::new(elements, view))
    }

    /// Says who uses the memory, in the order of `stream`: on devices where the host must not use managed memory while the device works,
    /// memory that is attached to the host or to one stream is left out of that.
    ///
    /// CUDA: `cuStreamAttachMemAsync`.
    ///
    /// # Safety
    ///
    /// From then on only those use the memory that `mode` names; with [`AttachMode::Stream`], that is work on `stream`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuStreamAttachMemAsync")]
    #[inline]
    pub unsafe fn attach(&mut self, stream: &Stream, mode: AttachMode) -> Result<()> {
        stream.expect_running("UnifiedBuffer::attach")?;
        let mut guard = AccessGuard::new(stream)?;
        self.tracked.before_write("UnifiedBuffer::attach", &mut guard)?;
        // SAFETY: the address is that of the whole allocation, and the caller vouches for its users.
        unsafe { stream.attach_managed(self.pointer.cast(), 0, mode) }?;
        self.tracked.exclusive().after_write(&mut guard);
        Ok(())
    }

    /// Frees the buffer, which [`Drop`] does as well, and says whether it succeeded. Waits for the work that uses it.
    ///
    /// CUDA: `cuMemFree_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if the driver refuses.
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn allocate(operation: &'static str, stream: &Stream, len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let tracked = Tracked::leasable_outside(operation, stream, Reach::Managed)?;
        let is_concurrent = is_concurrent(stream.driver())?;
        let pointer = stream.context().entered(|driver| {
            let (mut raw, flags): (CUdeviceptr, u32) = (0, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0);
            // SAFETY: `raw` is a valid place for the answer, and the context is current.
            let result = unsafe { call!(driver, cuMemAllocManaged(&raw mut raw, bytes, flags)) };
            result.map_err(|error| error.about(format!("{bytes} bytes of managed memory")))?;
            Ok(DevicePointer::from_raw(raw))
        })?;
        let tracked = tracked.at(pointer.as_raw(), bytes);
        let buffer = Self { pointer, len, tracked, is_concurrent, _elements: PhantomData };
        size::aligned::<T>(operation, pointer.as_raw()).map(|()| buffer)
    }

    /// Where the host finds the memory: at its one address.
    #[inline]
    fn host_pointer(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.pointer.as_raw() as usize)
    }

    #[inline]
    fn expect_concurrent(&self, operation: &'static str) -> Result<()> {
        if self.is_concurrent {
            return Ok(());
        }
        let reason = "a device of this system does not let the host use managed memory while it works: copy it";
        Err(Error::argument(operation, reason))
    }

    #[inline]
    fn free(&mut self) -> Result<()> {
        if self.tracked.exclusive().is_leased() {
            self.tracked.leave_plain_memory(self.pointer.as_raw());
            self.pointer = DevicePointer::from_raw(0);
            return Ok(());
        }
        self.tracked.wait_for_uses()?;
        // SAFETY: the memory is live, all work that uses it has been waited for, and it is forgotten once it is freed.
        unsafe { call!(self.tracked.stream().driver(), cuMemFree_v2(self.pointer.as_raw())) }
            .map_err(|error| self.as_slice().end().explain(error))?;
        self.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

/// Returns `true` if the host may use managed memory while any device of the system works. Every device may use a buffer.
#[inline]
fn is_concurrent(driver: &Driver) -> Result<bool> {
    let attribute = DeviceAttribute::CONCURRENT_MANAGED_ACCESS;
    driver.devices()?.iter().try_fold(true, |all, device| Ok(all && device.attribute(attribute)?))
}

impl<T> AsDeviceSlice for UnifiedBuffer<T> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.as_slice()
    }
}

impl<T> AsDeviceSliceMut for UnifiedBuffer<T> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.as_slice_mut()
    }
}

impl<T> AsRef<Driver> for UnifiedBuffer<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T> fmt::Debug for UnifiedBuffer<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UnifiedBuffer({} × {} at {:?})", self.len, std::any::type_name::<T>(), self.pointer)
    }
}

impl<T> Drop for UnifiedBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        // Nobody is there to try again.
        if self.pointer.as_raw() != 0
            && let Some(Err(error)) = dropping(|| self.free().or_else(|_| self.free()))
        {
            leak(self.stream().driver(), LeakedMemory::new(1, self.byte_len() as u64), &error);
        }
    }
}
