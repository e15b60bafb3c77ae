//! Buffers in managed (unified) memory.

// In a group of its own, so that the page of the type begins with the constructors.
mod create;

mod advice;
mod batch;
mod host_access;
mod residency;

use std::fmt;

use curium_driver::{DevicePointer, Result, Returned, call};

pub use self::advice::{MemoryAdvice, RangeAttributes};
pub use self::batch::{discard, discard_and_prefetch, prefetch};
use self::host_access::Attachment;
use crate::device_slice::{Parts, slice_owner};
use crate::wait;

/// A buffer in managed (unified) memory.
///
/// Kernels accept it like a [`DeviceBuffer`](crate::DeviceBuffer). The host accesses it through
/// [`UnifiedBuffer::host_view`] and [`UnifiedBuffer::host_view_mut`], which wait for conflicting
/// work. While a view exists, no conflicting work can start.
///
/// # Concurrent managed access
///
/// On Linux with most GPUs, the host may access managed memory at any time. Elsewhere (Windows,
/// WSL, Jetson, some virtual GPUs) the device attribute `CONCURRENT_MANAGED_ACCESS` is 0, and the
/// host must not access a managed buffer while a device works, unless the buffer is attached to the
/// host. [`UnifiedBuffer::host_view_mut`] works on every system: it attaches the buffer to the host
/// for as long as the view exists. [`UnifiedBuffer::host_view`] requires [`UnifiedBuffer::attach`]
/// there, because kernels may read a shared buffer in the meantime.
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
/// buffer.slice_mut(..7)?.fill(2.0)?; // on the stream
/// assert_eq!(buffer.host_view()?[6..8], [2.0, 1.0]); // waits
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnifiedBuffer<T> {
    /// The pointer is null once the memory was freed.
    parts: Parts<T>,
    /// `true` if the host may access managed memory while any device of the system works.
    is_concurrent: bool,
    attachment: Attachment,
}

impl<T> UnifiedBuffer<T> {
    /// Frees the buffer, as [`Drop`] does, and returns any error. Waits for the work that accesses
    /// it.
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

    fn free(&mut self) -> Result<()> {
        if self.parts.origin.exclusive().is_leased() {
            self.parts
                .origin
                .leave_sync_allocation(self.parts.pointer.as_raw(), self.byte_len() as u64);
            self.parts.pointer = DevicePointer::from_raw(0);
            return Ok(());
        }
        self.parts.origin.wait_for_uses()?;
        // SAFETY: the memory is live, all work that accesses it has completed, and it is not used
        // after this call.
        unsafe {
            call!(
                self.parts.origin.stream().driver(),
                cuMemFree_v2(self.parts.pointer.as_raw())
            )
        }
        .map_err(|error| self.operand().explain(error))?;
        self.parts.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

slice_owner!([T] UnifiedBuffer<T>, "UnifiedBuffer", parts);

impl<T> fmt::Debug for UnifiedBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "UnifiedBuffer({} × {} at {:?})",
            self.len(),
            std::any::type_name::<T>(),
            self.parts.pointer
        )
    }
}

impl<T> Drop for UnifiedBuffer<T> {
    fn drop(&mut self) {
        if self.parts.pointer.as_raw() != 0 {
            let driver = self.stream().driver().clone();
            let bytes = self.byte_len() as u64;
            wait::free_or_leak(&driver, bytes, || self.free());
        }
    }
}
