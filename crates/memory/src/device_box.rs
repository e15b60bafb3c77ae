//! A single value in device memory.

use std::fmt;

use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::{Result, Returned, Stream};

use crate::DeviceBuffer;
use crate::device_slice::slice_owner;
use crate::resource::{Resource, StreamOrdered};

/// A single value in device memory: a [`DeviceBuffer`] with one element, which dereferences to
/// [`DeviceSlice`](crate::DeviceSlice). Kernels accept it for `&[T]` and `&mut [T]`.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::DeviceBox;
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let other = driver.device(0)?.primary_context()?.stream()?;
/// let mut count = DeviceBox::new(&stream, 1_u32)?;
/// count.set(2)?;
/// assert_eq!(count.get()?, 2);
/// count.on_mut(&other).set(0, 3)?; // the only element of the slice, on another stream
/// assert_eq!(count.get()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceBox<T, R: Resource = StreamOrdered> {
    buffer: DeviceBuffer<T, R>,
}

impl<T> DeviceBox<T> {
    /// Allocates a value on `stream` and copies `value` to it, like [`DeviceBuffer::from_slice`]: a
    /// value that is not [small](crate::copy#small-copies) is waited for.
    ///
    /// CUDA: `cuMemAllocAsync`, `cuMemcpyHtoDAsync_v2`; `cuStreamSynchronize`, unless the value is
    /// small.
    ///
    /// # Errors
    ///
    /// An argument error if `T` is zero-sized; `CUDA_ERROR_OUT_OF_MEMORY` with the free and the
    /// total memory.
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
        self.as_slice().get(0)
    }

    /// Replaces the value. Waits until the copy has completed, unless it is
    /// [small](crate::copy#small-copies).
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`; `cuStreamSynchronize`, unless the copy is small.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.as_slice_mut().set(0, value)
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

slice_owner!([T, R: Resource] DeviceBox<T, R>, "DeviceBox", buffer.parts);

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
