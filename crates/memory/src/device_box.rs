//! A single value in device memory.

use std::fmt;

use crate::capture_advice::without_stream;
use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::{DevicePointer, Driver, Result, Returned, Stream};

use crate::copy::host;
use crate::device_slice::argument_as;
use crate::resource::{Resource, StreamOrdered};
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceBuffer, DeviceSlice, DeviceSliceMut};

/// A single value in device memory: a [`DeviceBuffer`] with one element. Kernels accept it for `&[T]` and `&mut [T]`.
pub struct DeviceBox<T, R: Resource = StreamOrdered> {
    buffer: DeviceBuffer<T, R>,
}

impl<T> DeviceBox<T> {
    /// Allocates a value on `stream` and copies `value` to it. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `T` is zero-sized; `CUDA_ERROR_OUT_OF_MEMORY` with the free and the total memory.
    #[track_caller]
    pub fn new(stream: &Stream, value: T) -> Result<Self>
    where
        T: NoUninit,
    {
        Self::new_in(stream, value, StreamOrdered)
    }

    /// Allocates a value on `stream` and sets its bytes to zero.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBox::new`].
    #[track_caller]
    pub fn zeroed(stream: &Stream) -> Result<Self>
    where
        T: Zeroable,
    {
        Ok(Self {
            buffer: DeviceBuffer::zeroed(stream, 1)?,
        })
    }
}

impl<T, R: Resource> DeviceBox<T, R> {
    /// Allocates like [`DeviceBox::new`], with memory from `resource`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBox::new`].
    #[track_caller]
    pub fn new_in(stream: &Stream, value: T, resource: R) -> Result<Self>
    where
        T: NoUninit,
    {
        Ok(Self {
            buffer: DeviceBuffer::from_slice_in(stream, &[value], resource)?,
        })
    }

    /// Copies the value to the host. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    pub fn get(&self) -> Result<T>
    where
        T: AnyBitPattern,
    {
        self.get_on(self.stream())
            .map_err(without_stream("DeviceBox::get"))
    }

    /// Copies like [`DeviceBox::get`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceBox::get`]; an argument error if the stream is being captured.
    pub fn get_on(&self, stream: &Stream) -> Result<T>
    where
        T: AnyBitPattern,
    {
        let mut value = T::zeroed();
        host::download(
            "DeviceBox::get_on",
            stream,
            self.buffer.as_slice(),
            std::slice::from_mut(&mut value),
        )?;
        Ok(value)
    }

    /// Replaces the value. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let target = self.buffer.as_slice_mut();
        host::upload("DeviceBox::set", target.stream(), target, &[value])
            .map_err(without_stream("DeviceBox::set"))
    }

    /// Replaces the value like [`DeviceBox::set`], on `stream`. In a capture, each launch of the graph sets the value.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        host::upload(
            "DeviceBox::set_on",
            stream,
            self.buffer.as_slice_mut(),
            &[value],
        )
    }

    /// Returns the stream on which the value was allocated and will be freed. Copies use it by default.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.buffer.stream()
    }

    /// Returns the address of the value. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.buffer.as_pointer()
    }

    /// Converts the value into a buffer of one element.
    #[must_use]
    pub fn into_buffer(self) -> DeviceBuffer<T, R> {
        self.buffer
    }

    /// Frees the value, as [`Drop`] does, and returns any error. See [`DeviceBuffer::close`].
    ///
    /// # Errors
    ///
    /// Returns the value together with the error if the resource fails.
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    pub fn close(self) -> Result<(), Returned<Self>> {
        self.buffer
            .close()
            .map_err(|returned| returned.map(|buffer| Self { buffer }))
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
    fn as_ref(&self) -> &Driver {
        self.buffer.as_ref()
    }
}

impl<T, R: Resource> fmt::Debug for DeviceBox<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "DeviceBox({} at {:?})",
            std::any::type_name::<T>(),
            self.as_pointer()
        )
    }
}
