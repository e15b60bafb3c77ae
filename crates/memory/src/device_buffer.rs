//! Buffers in device memory.

mod create;
mod leave;
mod raw;

use std::fmt;

use curium_driver::extend::{dropping, leak};
use curium_driver::{DevicePointer, LeakedMemory, Result, Returned};

use crate::device_slice::{Parts, slice_owner};
use crate::resource::{Resource, StreamOrdered};

/// A stream-ordered buffer in device memory with a fixed number of elements.
///
/// The buffer is allocated and freed on its own stream, and may be used on any stream: conflicting
/// accesses on different streams are ordered on the device. It has at least one element.
///
/// The memory comes from a [`Resource`]; the default is the device's current memory pool.
///
/// Copies, fills and parts are methods of [`DeviceSlice`](crate::DeviceSlice), to which it
/// dereferences.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::DeviceBuffer;
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let other = driver.device(0)?.primary_context()?.stream()?;
/// let source = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?; // enqueued; the slice may change now
/// let mut target = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
/// target.slice_mut(1..)?.copy_from_device(&source)?; // enqueued on `stream`
/// target.on_mut(&other).set(0, 7.0)?; // on another stream, after the copy
/// assert_eq!(target.to_vec()?, [7.0, 1.0, 2.0, 3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceBuffer<T, R: Resource = StreamOrdered> {
    /// The pointer is null once the memory was freed.
    pub(crate) parts: Parts<T>,
    resource: R,
}

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Returns the resource of the memory.
    #[must_use]
    #[inline]
    pub fn resource(&self) -> &R {
        &self.resource
    }

    /// Frees the buffer, as [`Drop`] does, and returns any error. The memory becomes available once
    /// every access on every stream has completed. The host does not wait, unless the resource
    /// documents it.
    ///
    /// CUDA: `cuMemFreeAsync`.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if the resource fails.
    #[doc(alias = "cuMemFree")]
    #[doc(alias = "cudaFree")]
    #[doc(alias = "cuMemFreeAsync")]
    #[doc(alias = "cudaFreeAsync")]
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    /// Waits on the host until every access to the buffer has completed.
    pub(crate) fn wait_for_uses(&self) -> Result<()> {
        let (_, accesses) = self.parts.origin.stream_and_accesses();
        accesses.synchronize()
    }

    /// The alignment requested from the resource.
    const ALIGNMENT: usize = if align_of::<T>() > 256 {
        align_of::<T>()
    } else {
        256
    };

    // As a function of its own, it takes a tenth more instructions for each drop.
    #[inline(always)]
    fn free(&mut self) -> Result<()> {
        let is_leased = self.parts.origin.exclusive().is_leased();
        if is_leased || self.parts.origin.stream().is_created_by_capture() {
            return self.leave();
        }
        let (stream, accesses) = self.parts.origin.stream_and_accesses();
        // If the stream cannot wait for the accesses, the host waits. An error without a driver
        // call means that the wait would invalidate a capture.
        accesses.before_free(stream).or_else(|error| {
            if error.function().is_some() {
                accesses.synchronize()
            } else {
                Err(error)
            }
        })?;
        let pointer = self.parts.pointer.cast();
        let bytes = self.parts.byte_len();
        // SAFETY: the memory is live and came from this resource with this size and alignment, its
        // stream has waited for every access, and it is not used after this call.
        unsafe {
            self.resource
                .deallocate(stream, pointer, bytes, Self::ALIGNMENT)
        }
        .map_err(|error| self.operand().explain(error))?;
        self.parts.pointer = DevicePointer::from_raw(0);
        Ok(())
    }

    /// Frees the buffer in a second attempt, when it is dropped: no caller can retry.
    #[cold]
    #[inline(never)]
    fn free_again(&mut self) -> Result<()> {
        self.free()
    }
}

slice_owner!([T, R: Resource] DeviceBuffer<T, R>, "DeviceBuffer", parts);

impl<T, R: Resource> fmt::Debug for DeviceBuffer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "DeviceBuffer({} × {name} at {:?})",
            self.len(),
            self.as_pointer()
        )
    }
}

impl<T, R: Resource> Drop for DeviceBuffer<T, R> {
    #[inline]
    fn drop(&mut self) {
        if self.parts.pointer.as_raw() != 0
            && let Some(Err(error)) = dropping(|| self.free().or_else(|_| self.free_again()))
        {
            leak(
                self.stream().driver(),
                LeakedMemory::new(1, self.byte_len() as u64),
                &error,
            );
        }
    }
}
