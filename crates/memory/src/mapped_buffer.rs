//! A buffer in memory of the host that the device uses in place.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::RangeBounds;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Driver, Result, Stream, call, release};

use crate::device_slice::{WholeMut, argument_as};
use crate::tracked::{Reach, Tracked};
use crate::{
    AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut, HostView, HostViewMut, PinnedBuffer, PinnedFlags,
};

/// A fixed number of elements in pinned memory of the host that kernels of every device read and write in place, over the bus: what is
/// used once is copied nowhere.
///
/// Kernels take it as they take a [`DeviceBuffer`](crate::DeviceBuffer). The host sees it through [`MappedBuffer::host`] and
/// [`MappedBuffer::host_mut`], which wait for the work that uses it; while such a slice is in use, no work that would disturb it can be
/// started.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, MappedBuffer};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 4)?;
/// mapped.as_slice_mut().fill(7)?; // on the stream
/// assert_eq!(mapped.host()?, [7; 4]); // waits
/// mapped.host_mut()?[0] = 1;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MappedBuffer<T> {
    tracked: Tracked,
    /// Where the device finds the memory.
    pointer: DevicePointer<T>,
    memory: ManuallyDrop<PinnedBuffer<T>>,
}

impl<T> MappedBuffer<T> {
    /// Allocates `len` elements, every byte of them zero. Work on the buffer that names no stream goes on `stream`.
    ///
    /// CUDA: `cuMemHostAlloc`, `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    #[doc(alias = "cuMemHostGetDevicePointer")]
    #[inline]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::map(stream, PinnedBuffer::zeroed(stream.context(), len, Self::FLAGS)?)
    }

    /// Allocates as many elements as `source` has and copies it there.
    ///
    /// CUDA: `cuMemHostAlloc`, `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    #[inline]
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::map(stream, PinnedBuffer::from_slice(stream.context(), source, Self::FLAGS)?)
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether there is no element, which is never so.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.memory.byte_len()
    }

    /// The stream for work that names none.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// Where the device finds the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// A view of all elements as the device sees them.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.pointer, self.len(), &self.tracked)
    }

    /// A view of all elements as the device sees them, to be written.
    #[must_use]
    #[inline]
    pub fn as_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.pointer, self.memory.len(), &self.tracked)
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
    /// An argument error if a graph can be launched that writes them: [`MappedBuffer::view`] keeps it from that; the error of any work of
    /// the context that failed before.
    #[inline]
    pub fn host(&self) -> Result<&[T]>
    where
        T: AnyBitPattern,
    {
        self.tracked.refuse_leases("MappedBuffer::host", false)?;
        self.tracked.wait_for_writes()?;
        Ok(&self.memory)
    }

    /// The elements as the host sees them, to be written. Waits until no work that was started uses them.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if a graph can be launched that uses them: [`MappedBuffer::view_mut`] keeps it from that; the error of any work of
    /// the context that failed before.
    #[inline]
    pub fn host_mut(&mut self) -> Result<&mut [T]>
    where
        T: AnyBitPattern,
    {
        self.tracked.refuse_leases("MappedBuffer::host_mut", true)?;
        self.tracked.wait_for_uses()?;
        Ok(&mut self.memory)
    }

    /// As [`MappedBuffer::host`], for memory that a graph uses: while the view exists, launching a graph that writes the memory is an
    /// error.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`MappedBuffer::host`].
    #[inline]
    pub fn view(&self) -> Result<HostView<'_, T>>
    where
        T: AnyBitPattern,
    {
        let view = self.tracked.view("MappedBuffer::view", false)?;
        self.tracked.wait_for_writes()?;
        Ok(HostView::new(&self.memory, view))
    }

    /// As [`MappedBuffer::host_mut`], for memory that a graph uses: while the view exists, launching the graph is an error.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`MappedBuffer::host_mut`].
    #[inline]
    pub fn view_mut(&mut self) -> Result<HostViewMut<'_, T>>
    where
        T: AnyBitPattern,
    {
        let view = self.tracked.view("MappedBuffer::view_mut", true)?;
        self.tracked.wait_for_uses()?;
        Ok(HostViewMut::new(&mut self.memory, view))
    }

    /// Memory that is mapped everywhere, and pinned in every context.
    const FLAGS: PinnedFlags = PinnedFlags::DEVICE_MAP.union(PinnedFlags::PORTABLE);

    #[inline]
    fn map(stream: &Stream, mut memory: PinnedBuffer<T>) -> Result<Self> {
        let host = memory.as_mut_ptr();
        let pointer = stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid place for the answer, the memory is live and mapped, and the context is current.
            unsafe { call!(driver, cuMemHostGetDevicePointer_v2(&raw mut raw, host.cast(), 0)) }?;
            Ok(DevicePointer::from_raw(raw))
        })?;
        let tracked =
            Tracked::leasable_outside("MappedBuffer", stream, Reach::Mapped)?.at(pointer.as_raw(), memory.byte_len());
        Ok(Self { tracked, pointer, memory: ManuallyDrop::new(memory) })
    }
}

impl<T> AsDeviceSlice for MappedBuffer<T> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.as_slice()
    }
}

impl<T> AsDeviceSliceMut for MappedBuffer<T> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.as_slice_mut()
    }
}

argument_as!([T] MappedBuffer<T>: |buffer| buffer.as_slice(), WholeMut::new(buffer.pointer, &mut buffer.tracked));

impl<T> AsRef<Driver> for MappedBuffer<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T> fmt::Debug for MappedBuffer<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MappedBuffer({} × {} at {:?})", self.len(), std::any::type_name::<T>(), self.pointer)
    }
}

impl<T> Drop for MappedBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        if self.tracked.exclusive().is_leased() {
            // SAFETY: this value is being dropped, so that nobody uses the field again.
            let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
            return self.tracked.leave_memory(memory.into_bytes());
        }
        release(|| {
            // Memory that may still be in use is left alone.
            self.tracked.wait_for_uses().or_else(|_| self.tracked.wait_for_uses())?;
            // SAFETY: this value is being dropped, so that nobody uses the field again.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
            Ok(())
        });
    }
}
