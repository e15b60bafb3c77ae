//! One value in the memory of a device.

use std::fmt;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::{DevicePointer, Driver, Result, Returned, Stream};

use crate::capture_advice::READ_LATER;
use crate::copy::host;
use crate::device_slice::argument_as;
use crate::resource::{Resource, StreamOrdered};
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceBuffer, DeviceSlice, DeviceSliceMut};

/// One value in the memory of a device: a [`DeviceBuffer`] of one element. A kernel takes it for a `&[T]` or a `&mut [T]`.
pub struct DeviceBox<T, R: Resource = StreamOrdered> {
    buffer: DeviceBuffer<T, R>,
}

impl<T> DeviceBox<T> {
    /// Allocates a value on `stream` and copies `value` there. Waits until the copy is done.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `T` has no bytes; `CUDA_ERROR_OUT_OF_MEMORY` with the figures.
    #[track_caller]
    #[inline]
    pub fn new(stream: &Stream, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::new_in(stream, value, StreamOrdered)
    }

    /// Allocates a value on `stream` and sets its bytes to zero there.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBox::new`].
    #[track_caller]
    #[inline]
    pub fn zeroed(stream: &Stream) -> Result<Self>
    where
        T: Zeroable,
    {
        Ok(Self { buffer: DeviceBuffer::zeroed(stream, 1)? })
    }
}

impl<T, R: Resource> DeviceBox<T, R> {
    /// As [`DeviceBox::new`], with memory of `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBox::new`].
    #[track_caller]
    #[inline]
    pub fn new_in(stream: &Stream, value: T, resource: R) -> Result<Self>
    where
        T: NoUninit,
    {
        Ok(Self { buffer: DeviceBuffer::from_slice_in(stream, &[value], resource)? })
    }

    /// The value. Waits until it is on the host.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[inline]
    pub fn get(&self) -> Result<T>
    where
        T: AnyBitPattern,
    {
        self.stream().expect_captured("DeviceBox::get", READ_LATER)?;
        self.get_on(self.stream())
    }

    /// As [`DeviceBox::get`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBox::get`]; an argument error if the stream is being captured.
    #[inline]
    pub fn get_on(&self, stream: &Stream) -> Result<T>
    where
        T: AnyBitPattern,
    {
        let mut value = T::zeroed();
        host::download("DeviceBox::get", stream, self.buffer.as_slice(), std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Replaces the value. Waits until it is on the device.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn set(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let target = self.buffer.as_slice_mut();
        target.stream().expect_captured("DeviceBox::set", "use `set_on(scope, …)`")?;
        host::upload("DeviceBox::set", target.stream(), target, &[value])
    }

    /// As [`DeviceBox::set`], on any stream. In a capture each launch of the graph sets the value.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn set_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        host::upload("DeviceBox::set", stream, self.buffer.as_slice_mut(), &[value])
    }

    /// The stream that the value was allocated on, on which it is copied and freed.
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
    pub fn into_buffer(self) -> DeviceBuffer<T, R> {
        self.buffer
    }

    /// Frees the value, which [`Drop`] does as well, and says whether it succeeded. As [`DeviceBuffer::close`].
    ///
    /// # Errors
    ///
    /// Gives the value back if the resource refuses.
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        self.buffer.close().map_err(|returned| returned.map(|buffer| Self { buffer }))
    }
}

impl<T, R: Resource> AsDeviceSlice for DeviceBox<T, R> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.buffer.as_slice()
    }
}

impl<T, R: Resource> AsDeviceSliceMut for DeviceBox<T, R> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.buffer.as_slice_mut()
    }
}

argument_as!([T, R: Resource] DeviceBox<T, R>: |value| &value.buffer, &mut value.buffer);

impl<T, R: Resource> AsRef<Driver> for DeviceBox<T, R> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.buffer.as_ref()
    }
}

impl<T, R: Resource> fmt::Debug for DeviceBox<T, R> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DeviceBox({} at {:?})", std::any::type_name::<T>(), self.as_pointer())
    }
}
