//! Buffers in device memory.

mod argument;
mod copy;
mod create;
mod leave;
mod raw;

use std::fmt;
use std::marker::PhantomData;

use curium_driver::extend::{dropping, leak};
use curium_driver::{DevicePointer, LeakedMemory, Result, Returned};

use crate::device_slice::buffer_views;
use crate::resource::{Resource, StreamOrdered};
use crate::tracked::Tracked;

/// A stream-ordered buffer in device memory with a fixed number of elements.
///
/// The buffer is allocated and freed on its own stream, and may be used on any stream: conflicting accesses on
/// different streams are ordered on the device. It has at least one element.
///
/// The memory comes from a [`Resource`]; the default is the device's current memory pool.
pub struct DeviceBuffer<T, R: Resource = StreamOrdered> {
    /// Null once the memory was freed.
    pointer: DevicePointer<T>,
    len: usize,
    tracked: Tracked,
    resource: R,
    _elements: PhantomData<T>,
}

impl<T, R: Resource> DeviceBuffer<T, R> {
    /// Returns the number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `false`: there is at least one element.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the resource of the memory.
    #[must_use]
    #[inline]
    pub fn resource(&self) -> &R {
        &self.resource
    }

    /// Returns the address of the first element. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// Frees the buffer, as [`Drop`] does, and returns any error. The memory becomes available once every access on
    /// every stream has completed. The host does not wait, unless the resource documents it.
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
        let (_, accesses) = self.tracked.stream_and_accesses();
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
        if self.tracked.exclusive().is_leased() || self.stream().is_created_by_capture() {
            return self.leave();
        }
        let (stream, accesses) = self.tracked.stream_and_accesses();
        // If the stream cannot wait for the accesses, the host waits. An error without a driver call means that the
        // wait would invalidate a capture.
        accesses.before_free(stream).or_else(|error| {
            if error.function().is_some() {
                accesses.synchronize()
            } else {
                Err(error)
            }
        })?;
        let pointer = self.pointer.cast();
        let bytes = self.byte_len();
        // SAFETY: the memory is live and came from this resource with this size and alignment, its stream has waited
        // for every access, and it is not used after this call.
        unsafe {
            self.resource
                .deallocate(stream, pointer, bytes, Self::ALIGNMENT)
        }
        .map_err(|error| self.as_slice().end().explain(error))?;
        self.pointer = DevicePointer::from_raw(0);
        Ok(())
    }

    /// Frees the buffer in a second attempt, when it is dropped: no caller can retry.
    #[cold]
    #[inline(never)]
    fn free_again(&mut self) -> Result<()> {
        self.free()
    }
}

buffer_views!([T, R: Resource] DeviceBuffer<T, R>);

impl<T, R: Resource> fmt::Debug for DeviceBuffer<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "DeviceBuffer({} × {name} at {:?})",
            self.len, self.pointer
        )
    }
}

impl<T, R: Resource> Drop for DeviceBuffer<T, R> {
    #[inline]
    fn drop(&mut self) {
        if self.pointer.as_raw() != 0
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
