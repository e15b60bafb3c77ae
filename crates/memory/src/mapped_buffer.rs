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
/// Kernels take it as they take a [`DeviceBuffer`](crate::DeviceBuffer). The host accesses it through [`MappedBuffer::host_view`] and
/// [`MappedBuffer::host_view_mut`], which wait for the work that uses it. While a view exists, no conflicting work can start.
///
/// ```
/// # let simulator = curium_sim::Simulator::new(curium_sim::Config::new())?;
/// # // SAFETY: the simulator implements the driver's functions, and outlives everything made from this table.
/// # let driver = unsafe { curium_driver::Driver::from_api(simulator.api()) }?;
/// use curium_memory::{DeviceBuffer, MappedBuffer};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 4)?;
/// mapped.as_slice_mut().fill(7)?; // on the stream
/// assert_eq!(mapped.host_view()?[..], [7; 4]); // waits
/// mapped.host_view_mut()?[0] = 1;
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

    /// Returns a view of the elements for the host to read. Waits for the work that writes them.
    ///
    /// While the view exists, launching a graph that writes the memory is an error.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if such work is pending.
    ///
    /// # Errors
    ///
    /// - An argument error inside the closure of a capture, whose work has not run.
    /// - The error of earlier work of the context.
    pub fn host_view(&self) -> Result<HostView<'_, T>>
    where
        T: AnyBitPattern,
    {
        let access = self.tracked.view("MappedBuffer::host_view", false)?;
        self.tracked.wait_for_writes()?;
        Ok(HostView::new(&self.memory, access))
    }

    /// Returns a view of the elements for the host to write. Waits for the work that uses them.
    ///
    /// While the view exists, launching a graph that uses the memory is an error.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if such work is pending.
    ///
    /// # Errors
    ///
    /// As for [`MappedBuffer::host_view`].
    pub fn host_view_mut(&mut self) -> Result<HostViewMut<'_, T>>
    where
        T: AnyBitPattern,
    {
        let access = self.tracked.view("MappedBuffer::host_view_mut", true)?;
        self.tracked.wait_for_uses()?;
        Ok(HostViewMut::new(&mut self.memory, access))
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
