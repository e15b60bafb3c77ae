//! One value in managed memory.

use std::fmt;

use bytemuck::{AnyBitPattern, NoUninit};
use curium_driver::{DevicePointer, Driver, Result, Returned, Stream};

use crate::device_slice::argument_as;
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut, UnifiedBuffer};

/// One value in managed memory: a [`UnifiedBuffer`] of one element. A kernel takes it for a `&[T]` or a `&mut [T]`.
pub struct UnifiedBox<T> {
    buffer: UnifiedBuffer<T>,
}

impl<T> UnifiedBox<T> {
    /// Allocates a value and copies `value` there. Waits until the copy is done. Work on it that names no stream goes on `stream`.
    ///
    /// CUDA: `cuMemAllocManaged`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::from_slice`].
    #[inline]
    pub fn new(stream: &Stream, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        Ok(Self { buffer: UnifiedBuffer::from_slice(stream, &[value])? })
    }

    /// The value as the host sees it. Waits until no work that was started writes it.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::host`].
    #[inline]
    pub fn host(&self) -> Result<&T>
    where
        T: AnyBitPattern,
    {
        Ok(&self.buffer.host()?[0])
    }

    /// The value as the host sees it, to be written. Waits until no work that was started uses it.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`UnifiedBuffer::host`].
    #[inline]
    pub fn host_mut(&mut self) -> Result<&mut T>
    where
        T: AnyBitPattern,
    {
        Ok(&mut self.buffer.host_mut()?[0])
    }

    /// The stream for work that names none.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.buffer.stream()
    }

    /// The address of the value. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.buffer.as_pointer()
    }

    /// The buffer of one element.
    #[must_use]
    #[inline]
    pub fn into_buffer(self) -> UnifiedBuffer<T> {
        self.buffer
    }

    /// Frees the value, which [`Drop`] does as well, and says whether it succeeded. Waits for the work that uses it.
    ///
    /// # Errors
    ///
    /// Gives the value back if the driver refuses.
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        self.buffer.close().map_err(|returned| returned.map(|buffer| Self { buffer }))
    }
}

impl<T> AsDeviceSlice for UnifiedBox<T> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.buffer.as_slice()
    }
}

impl<T> AsDeviceSliceMut for UnifiedBox<T> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.buffer.as_slice_mut()
    }
}

argument_as!([T] UnifiedBox<T>: |value| &value.buffer, &mut value.buffer);

impl<T> AsRef<Driver> for UnifiedBox<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.buffer.as_ref()
    }
}

impl<T> fmt::Debug for UnifiedBox<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UnifiedBox({} at {:?})", std::any::type_name::<T>(), self.as_pointer())
    }
}
