//! Views of memory that the device uses.

mod argument;
mod chunks;
mod mutable;
mod reinterpret;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use bytemuck::AnyBitPattern;
use curium_driver::{DevicePointer, Driver, Result, Stream};

pub(crate) use self::argument::{WholeMut, argument_as};
pub use self::chunks::{DeviceChunks, DeviceChunksMut};
pub use self::mutable::DeviceSliceMut;
use crate::capture_advice::READ_LATER;
use crate::copy::{self, host};
use crate::size;
use crate::tracked::Tracked;

/// Elements in a row in memory that the device uses, borrowed to be read: all of a [`DeviceBuffer`](crate::DeviceBuffer) or of
/// another kind of memory, or a part.
///
/// It may be empty. Whatever is done with a view counts as done with the memory that it is a view of: uses of views on several streams
/// wait for each other as uses of the whole would, also where the views do not overlap. Their results are never mixed up; work that is
/// to run at the same time needs buffers of its own.
pub struct DeviceSlice<'a, T> {
    pointer: DevicePointer<T>,
    len: usize,
    tracked: &'a Tracked,
    _elements: PhantomData<&'a [T]>,
}

/// Memory that the device uses and that can be viewed: buffers of all kinds, and views themselves.
pub trait AsDeviceSlice {
    /// The type of the elements.
    type Element;

    /// All of it.
    fn as_device_slice(&self) -> DeviceSlice<'_, Self::Element>;
}

/// Memory that the device uses and that can be viewed to be written.
pub trait AsDeviceSliceMut: AsDeviceSlice {
    /// All of it.
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, Self::Element>;
}

impl<'a, T> DeviceSlice<'a, T> {
    /// The view of `len` elements from `pointer` on, which are memory of `tracked`.
    #[inline]
    pub(crate) fn new(pointer: DevicePointer<T>, len: usize, tracked: &'a Tracked) -> Self {
        Self { pointer, len, tracked, _elements: PhantomData }
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
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

    /// The stream of the memory that this is a view of, on which it copies.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.tracked.stream()
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// The elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range ends before it begins, or beyond the view.
    #[inline]
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = size::range("DeviceSlice::slice", self.len, range)?;
        Ok(Self { pointer: self.pointer.wrapping_add(range.start), len: range.len(), ..self })
    }

    /// The first `middle` elements, and the rest.
    ///
    /// # Errors
    ///
    /// An argument error if there are fewer.
    #[inline]
    pub fn split_at(self, middle: usize) -> Result<(Self, Self)> {
        size::split("DeviceSlice::split_at", self.len, middle)?;
        let rest = Self { pointer: self.pointer.wrapping_add(middle), len: self.len - middle, ..self };
        Ok((Self { len: middle, ..self }, rest))
    }

    /// The view in parts of `len` elements, of which the last may have fewer.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0.
    #[inline]
    pub fn chunks(self, len: usize) -> Result<DeviceChunks<'a, T>> {
        DeviceChunks::new(self, len)
    }

    /// Copies the elements to `target`, which has as many. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; the error of any work of the context that failed before.
    #[doc(alias = "cuMemcpyDtoH")]
    #[inline]
    pub fn copy_to_slice(self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        let stream = self.stream();
        stream.expect_captured("DeviceSlice::copy_to_slice", READ_LATER)?;
        self.copy_to_slice_on(stream, target)
    }

    /// As [`DeviceSlice::copy_to_slice`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSlice::copy_to_slice`]; an argument error if the stream is being captured.
    #[inline]
    pub fn copy_to_slice_on(self, stream: &Stream, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        size::same_len("DeviceSlice::copy_to_slice", self.len, target.len())?;
        host::download("DeviceSlice::copy_to_slice", stream, self, target)
    }

    /// A copy of the elements on the host. Waits until it is there.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[inline]
    pub fn to_vec(self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let stream = self.stream();
        stream.expect_captured("DeviceSlice::to_vec", READ_LATER)?;
        self.to_vec_on(stream)
    }

    /// As [`DeviceSlice::to_vec`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSlice::to_vec`]; an argument error if the stream is being captured.
    #[inline]
    pub fn to_vec_on(self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let mut target = bytemuck::zeroed_vec(self.len);
        host::download("DeviceSlice::to_vec", stream, self, &mut target)?;
        Ok(target)
    }

    #[inline]
    pub(crate) fn tracked(&self) -> &'a Tracked {
        self.tracked
    }

    /// The view as one end of a copy.
    #[inline]
    pub(crate) fn end(&self) -> copy::End<'a> {
        copy::End { address: self.pointer.as_raw(), bytes: self.byte_len(), tracked: self.tracked }
    }
}

impl<T> AsDeviceSlice for DeviceSlice<'_, T> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        *self
    }
}

impl<T> Clone for DeviceSlice<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<T> AsRef<Driver> for DeviceSlice<'_, T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DeviceSlice({} × {} at {:?})", self.len, std::any::type_name::<T>(), self.pointer)
    }
}
