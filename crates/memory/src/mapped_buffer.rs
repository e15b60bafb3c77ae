//! Buffers in mapped host memory.

use std::fmt;
use std::mem::ManuallyDrop;

use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Result, Stream, call};

use crate::device_slice::{Parts, slice_owner};
use crate::tracked::{Accessibility, Tracked};
use crate::{HostView, HostViewMut, PinnedBuffer, PinnedFlags, wait};

/// A buffer in mapped (zero-copy) pinned host memory with a fixed number of elements. Kernels on
/// every device access it in place, over PCIe or NVLink.
///
/// Kernels accept it like a [`DeviceBuffer`](crate::DeviceBuffer). The host accesses it through
/// [`MappedBuffer::host_view`] and [`MappedBuffer::host_view_mut`], which wait for conflicting
/// work. While a view exists, no conflicting work can start.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, MappedBuffer};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 4)?;
/// mapped.fill(7)?; // on the stream
/// assert_eq!(mapped.host_view()?[..], [7; 4]); // waits
/// mapped.host_view_mut()?[0] = 1;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MappedBuffer<T> {
    /// With the device address.
    parts: Parts<T>,
    memory: ManuallyDrop<PinnedBuffer<T>>,
}

impl<T> MappedBuffer<T> {
    /// Allocates `len` elements and sets every byte to zero. `stream` is the buffer's stream.
    ///
    /// CUDA: `cuMemHostAlloc`, `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    #[doc(alias = "cuMemHostGetDevicePointer")]
    #[doc(alias = "cudaHostGetDevicePointer")]
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::map(
            stream,
            PinnedBuffer::zeroed(stream.context(), len, Self::FLAGS)?,
        )
    }

    /// Allocates `len` elements and sets each to `value`. `stream` is the buffer's stream.
    ///
    /// CUDA: `cuMemHostAlloc`, `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn filled(stream: &Stream, len: usize, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::map(
            stream,
            PinnedBuffer::filled(stream.context(), len, value, Self::FLAGS)?,
        )
    }

    /// Allocates a buffer and copies `source` to it.
    ///
    /// CUDA: `cuMemHostAlloc`, `cuMemHostGetDevicePointer_v2`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::map(
            stream,
            PinnedBuffer::from_slice(stream.context(), source, Self::FLAGS)?,
        )
    }

    /// Returns a host view for reading. Waits for the work that writes the elements.
    ///
    /// While the view exists, launching a graph that writes the memory is an error.
    ///
    /// CUDA: `cuStreamSynchronize` or `cuEventSynchronize`, if such work is pending.
    ///
    /// # Errors
    ///
    /// - An argument error within a capture closure, because the captured work has not run.
    /// - The error of earlier asynchronous work in the context.
    pub fn host_view(&self) -> Result<HostView<'_, T>>
    where
        T: AnyBitPattern,
    {
        let access = self.parts.origin.view("MappedBuffer::host_view", false)?;
        self.parts.origin.wait_for_writes()?;
        Ok(HostView::new(&self.memory, access))
    }

    /// Returns a host view for reading and writing. Waits for the work that accesses the elements.
    ///
    /// While the view exists, launching a graph that accesses the memory is an error.
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
        let access = self
            .parts
            .origin
            .view("MappedBuffer::host_view_mut", true)?;
        self.parts.origin.wait_for_uses()?;
        Ok(HostViewMut::new(&mut self.memory, access))
    }

    /// Mapped into device memory, and pinned in every context.
    const FLAGS: PinnedFlags = PinnedFlags::DEVICE_MAP.union(PinnedFlags::PORTABLE);

    fn map(stream: &Stream, mut memory: PinnedBuffer<T>) -> Result<Self> {
        let host = memory.as_mut_ptr();
        let pointer = stream.context().entered(|driver| {
            let mut raw: CUdeviceptr = 0;
            // SAFETY: `raw` is a valid pointer, the memory is live and mapped, and the context is
            // current.
            unsafe { call!(driver, cuMemHostGetDevicePointer_v2(&raw mut raw, host.cast(), 0) creates raw) }?;
            Ok(DevicePointer::from_raw(raw))
        })?;
        let tracked = Tracked::leasable_outside("MappedBuffer", stream, Accessibility::Mapped)?
            .at(pointer.as_raw(), memory.byte_len());
        Ok(Self {
            parts: Parts::new(pointer, memory.len(), tracked),
            memory: ManuallyDrop::new(memory),
        })
    }
}

slice_owner!([T] MappedBuffer<T>, "MappedBuffer", parts);

impl<T> fmt::Debug for MappedBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "MappedBuffer({} × {} at {:?})",
            self.len(),
            std::any::type_name::<T>(),
            self.parts.pointer
        )
    }
}

impl<T> Drop for MappedBuffer<T> {
    fn drop(&mut self) {
        if self.parts.origin.exclusive().is_leased() {
            // SAFETY: this value is being dropped, so the field is not used again.
            let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
            let bytes = memory.byte_len() as u64;
            return self.parts.origin.leave_memory(memory.into_bytes(), bytes);
        }
        let driver = self.parts.origin.stream().driver().clone();
        let bytes = self.memory.byte_len() as u64;
        wait::free_or_leak(&driver, bytes, || {
            self.parts.origin.wait_for_uses()?;
            // SAFETY: this value is being dropped, and after this success the field is not used
            // again.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
            Ok(())
        });
    }
}
