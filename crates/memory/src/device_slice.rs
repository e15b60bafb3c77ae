//! Views of device-accessible memory.

mod argument;
mod buffer;
mod chunks;
mod mutable;
mod reinterpret;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::AnyBitPattern;
use crate::capture_advice::without_stream;
use curium_driver::{DevicePointer, Driver, Result, Stream};

pub(crate) use self::argument::{WholeMut, argument_as};
pub(crate) use self::buffer::buffer_views;
pub use self::chunks::{DeviceChunks, DeviceChunksMut};
pub use self::mutable::DeviceSliceMut;
use crate::copy::{self, host};
use crate::size;
use crate::tracked::Tracked;

/// A shared view of consecutive elements in device-accessible memory: of a whole [`DeviceBuffer`](crate::DeviceBuffer)
/// or other buffer, or of a part of it.
///
/// A view may be empty. An access through a view counts as an access to the whole buffer: work on several streams is
/// ordered even if the views do not overlap. Use separate buffers for work that must run concurrently.
pub struct DeviceSlice<'a, T> {
    pointer: DevicePointer<T>,
    len: usize,
    tracked: &'a Tracked,
    _elements: PhantomData<&'a [T]>,
}

/// Device-accessible memory that can be borrowed as a view: all kinds of buffers, and views themselves.
///
/// A function with an argument of such a type calls [`AsDeviceSlice::as_device_slice`] once, or
/// [`AsDeviceSliceMut::as_device_slice_mut`], and uses the returned view only.
pub trait AsDeviceSlice {
    /// The type of the elements.
    type Element;

    /// Returns a view of all elements.
    fn as_device_slice(&self) -> DeviceSlice<'_, Self::Element>;
}

/// Device-accessible memory that can be borrowed as a mutable view.
pub trait AsDeviceSliceMut: AsDeviceSlice {
    /// Returns a view of all elements.
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, Self::Element>;
}

impl<'a, T> DeviceSlice<'a, T> {
    /// Creates a view of `len` elements at `pointer`, in memory of `tracked`.
    #[inline]
    pub(crate) fn new(pointer: DevicePointer<T>, len: usize, tracked: &'a Tracked) -> Self {
        Self {
            pointer,
            len,
            tracked,
            _elements: PhantomData,
        }
    }

    /// Returns the number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the view is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns the stream of the viewed memory, which operations without a stream argument use.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.tracked.stream()
    }

    /// Returns the address of the first element. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.pointer
    }

    /// Returns the subslice in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = size::range("DeviceSlice::slice", self.len, range)?;
        Ok(Self {
            pointer: self.pointer.wrapping_add(range.start),
            len: range.len(),
            ..self
        })
    }

    /// Splits the view into the first `middle` elements and the rest.
    ///
    /// # Errors
    ///
    /// An argument error if `middle` is greater than the length.
    pub fn split_at(self, middle: usize) -> Result<(Self, Self)> {
        size::split("DeviceSlice::split_at", self.len, middle)?;
        let tail = Self {
            pointer: self.pointer.wrapping_add(middle),
            len: self.len - middle,
            ..self
        };
        Ok((
            Self {
                len: middle,
                ..self
            },
            tail,
        ))
    }

    /// Returns an iterator over chunks of `len` elements. The last chunk may be shorter.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0.
    #[inline]
    pub fn chunks(self, len: usize) -> Result<DeviceChunks<'a, T>> {
        DeviceChunks::new(self, len)
    }

    /// Copies the elements to `target`, which must have the same length. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; an error of earlier asynchronous work in the context.
    #[doc(alias = "cuMemcpyDtoH")]
    #[doc(alias = "cudaMemcpy")]
    pub fn copy_to_slice(self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        let stream = self.stream();
        self.copy_to_slice_on(stream, target)
            .map_err(without_stream("DeviceSlice::copy_to_slice"))
    }

    /// Copies like [`DeviceSlice::copy_to_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSlice::copy_to_slice`]; an argument error if the stream is being captured.
    pub fn copy_to_slice_on(self, stream: &Stream, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        size::same_len("DeviceSlice::copy_to_slice_on", self.len, target.len())?;
        host::download("DeviceSlice::copy_to_slice_on", stream, self, target)
    }

    /// Copies the elements to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    pub fn to_vec(self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let stream = self.stream();
        self.to_vec_on(stream)
            .map_err(without_stream("DeviceSlice::to_vec"))
    }

    /// Copies like [`DeviceSlice::to_vec`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSlice::to_vec`]; an argument error if the stream is being captured.
    pub fn to_vec_on(self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let mut target = bytemuck::zeroed_vec(self.len);
        host::download("DeviceSlice::to_vec_on", stream, self, &mut target)?;
        Ok(target)
    }

    #[inline]
    pub(crate) fn tracked(&self) -> &'a Tracked {
        self.tracked
    }

    /// Returns the view as an operand of a copy.
    #[inline]
    pub(crate) fn end(&self) -> copy::Operand<'a> {
        copy::Operand {
            address: self.pointer.as_raw(),
            bytes: self.byte_len(),
            tracked: self.tracked,
        }
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
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "DeviceSlice({} × {} at {:?})",
            self.len,
            std::any::type_name::<T>(),
            self.pointer
        )
    }
}
