//! A buffer in the memory of a device.

mod argument;
mod copy;
mod create;
mod leave;
mod raw;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use curium_driver::extend::{dropping, leak};
use curium_driver::{DevicePointer, Driver, LeakedMemory, Result, Returned, Stream};

use crate::resource::{Resource, StreamOrdered};
use crate::tracked::Tracked;
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut};

/// A fixed number of elements in the memory of a device.
///
/// The buffer is allocated and freed in the order of one stream, its own, and may be used on any: whatever must be waited for on
/// other streams is waited for by streams, never by the host. It has at least one element.
///
/// Its memory comes from a [`Resource`]: the device's current pool, unless another is given.
pub struct DeviceBuffer<T, R: Resource = StreamOrdered> {
    /// 0 once the memory was freed.
    pointer: DevicePointer<T>,
    len: usize,
    tracked: Tracked,
    resource: R,
    _elements: PhantomData<T>,
}

impl<T, R: Resource> DeviceBuffer<T, R> {
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

    /// The stream that the buffer was allocated on, on which it copies and is freed.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// Where the memory came from.
    #[must_use]
    #[inline]
    pub fn resource(&self) -> &R {
        &self.resource
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// A view of all elements.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.pointer, self.len, &self.tracked)
    }

    /// A view of all elements to be written.
    #[must_use]
    #[inline]
    pub fn as_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.pointer, self.len, &self.tracked)
    }

    /// A view of the elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the buffer.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// A view of the elements in `range` to be written.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the buffer.
    #[inline]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        self.as_slice_mut().slice(range)
    }

    /// Frees the buffer, which [`Drop`] does as well, and says whether it succeeded. Its memory is free once every use of it, on
    /// whatever stream, is done; the host waits for that only if the resource does.
    ///
    /// CUDA: `cuMemFreeAsync`.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if the resource refuses.
    #[doc(alias = "cuMemFree")]
    #[doc(alias = "cuMemFreeAsync")]
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    /// Waits on the host until every use of the buffer is done.
    #[cfg(feature = "textures")]
    #[inline]
    pub(crate) fn wait_for_uses(&self) -> Result<()> {
        let (_, accesses) = self.tracked.stream_and_accesses();
        accesses.synchronize()
    }

    /// The alignment that is asked of the resource.
    const ALIGNMENT: usize = if align_of::<T>() > 256 { align_of::<T>() } else { 256 };

    #[inline]
    fn free(&mut self) -> Result<()> {
        if self.tracked.exclusive().is_leased() || self.stream().is_created_by_capture() {
            return self.leave();
        }
        let (stream, accesses) = self.tracked.stream_and_accesses();
        // Where the driver does not let the stream wait for the uses, the host can. A wait that was refused before it was called is one
        // that a capture would not survive.
        accesses
            .before_free(stream)
            .or_else(|error| if error.function().is_some() { accesses.synchronize() } else { Err(error) })?;
        let (pointer, bytes) = (self.pointer.cast(), self.byte_len());
        // SAFETY: the memory is live and came from this resource with this size and alignment, its stream has waited for every use, and
        // it is forgotten once it is freed.
        unsafe { self.resource.deallocate(stream, pointer, bytes, Self::ALIGNMENT) }
            .map_err(|error| self.as_slice().end().explain(error))?;
        self.pointer = DevicePointer::from_raw(0);
        Ok(())
    }
}

impl<T, R: Resource> AsDeviceSlice for DeviceBuffer<T, R> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.as_slice()
    }
}

impl<T, R: Resource> AsDeviceSliceMut for DeviceBuffer<T, R> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.as_slice_mut()
    }
}

impl<T, R: Resource> AsRef<Driver> for DeviceBuffer<T, R> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T, R: Resource> fmt::Debug for DeviceBuffer<T, R> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(formatter, "DeviceBuffer({} × {name} at {:?})", self.len, self.pointer)
    }
}

impl<T, R: Resource> Drop for DeviceBuffer<T, R> {
    #[inline]
    fn drop(&mut self) {
        if self.pointer.as_raw() != 0
            && let Some(Err(error)) = dropping(|| self.free())
        {
            leak(self.stream().driver(), LeakedMemory::new(1, self.byte_len() as u64), &error);
        }
    }
}
