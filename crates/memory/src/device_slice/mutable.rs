//! Mutable views.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::capture_advice::without_stream;
use crate::{AnyBitPattern, NoUninit, Zeroable};
use curium_driver::{DevicePointer, Driver, Result, Stream};

use super::{AsDeviceSlice, AsDeviceSliceMut, DeviceChunksMut, DeviceSlice};
use crate::copy::{self, CopyOptions, device, host};
use crate::tracked::Tracked;
use crate::{fill, size};

/// A mutable view of consecutive elements in device-accessible memory.
///
/// A view may be empty. As for [`DeviceSlice`], an access counts as an access to the whole buffer: several streams and
/// threads may write parts of one buffer, and the writes are ordered on the device.
pub struct DeviceSliceMut<'a, T> {
    pointer: DevicePointer<T>,
    len: usize,
    tracked: &'a Tracked,
    _elements: PhantomData<&'a mut [T]>,
}

impl<'a, T> DeviceSliceMut<'a, T> {
    /// Creates a view of `len` elements at `pointer`, in memory of `tracked` that is borrowed exclusively for `'a`.
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

    /// Returns a shared view of the same elements.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.pointer, self.len, self.tracked)
    }

    /// Reborrows the view for a shorter lifetime.
    #[must_use]
    #[inline]
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.pointer, self.len, self.tracked)
    }

    /// Returns the mutable subslice in `range`. To keep this view, call [`DeviceSliceMut::reborrow`] first.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = size::range("DeviceSliceMut::slice", self.len, range)?;
        Ok(Self::new(
            self.pointer.wrapping_add(range.start),
            range.len(),
            self.tracked,
        ))
    }

    /// Splits the view into the first `middle` elements and the rest. To keep this view, call
    /// [`DeviceSliceMut::reborrow`] first.
    ///
    /// # Errors
    ///
    /// An argument error if `middle` is greater than the length.
    pub fn split_at(self, middle: usize) -> Result<(Self, Self)> {
        size::split("DeviceSliceMut::split_at", self.len, middle)?;
        let tail = Self::new(
            self.pointer.wrapping_add(middle),
            self.len - middle,
            self.tracked,
        );
        Ok((Self::new(self.pointer, middle, self.tracked), tail))
    }

    /// Returns an iterator over mutable chunks of `len` elements. The last chunk may be shorter. To keep this view,
    /// call [`DeviceSliceMut::reborrow`] first.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0.
    #[inline]
    pub fn chunks(self, len: usize) -> Result<DeviceChunksMut<'a, T>> {
        DeviceChunksMut::new(self, len)
    }

    /// Copies `source`, which must have the same length, to the device. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyHtoD")]
    #[doc(alias = "cudaMemcpy")]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let stream = self.stream();
        self.copy_from_slice_on(stream, source)
            .map_err(without_stream("DeviceSliceMut::copy_from_slice"))
    }

    /// Copies like [`DeviceSliceMut::copy_from_slice`], on `stream`. In a capture, the graph keeps a copy of `source` and uploads it at
    /// each launch.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSliceMut::copy_from_slice`].
    pub fn copy_from_slice_on(&mut self, stream: &Stream, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "DeviceSliceMut::copy_from_slice_on";
        size::same_len(OPERATION, self.len, source.len())?;
        host::upload(OPERATION, stream, self.reborrow(), source)
    }

    /// Copies the elements to `target`, which must have the same length. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ; an error of earlier asynchronous work in the context.
    #[inline]
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.as_slice().copy_to_slice(target)
    }

    /// Copies like [`DeviceSliceMut::copy_to_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSliceMut::copy_to_slice`]; an argument error if the stream is being captured.
    #[inline]
    pub fn copy_to_slice_on(&self, stream: &Stream, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.as_slice().copy_to_slice_on(stream, target)
    }

    /// Copies the elements to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context.
    #[inline]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec()
    }

    /// Copies like [`DeviceSliceMut::to_vec`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSliceMut::to_vec`]; an argument error if the stream is being captured.
    #[inline]
    pub fn to_vec_on(&self, stream: &Stream) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.as_slice().to_vec_on(stream)
    }

    /// Copies `source`, which must have the same length and may be on another device. Returns once the copy is enqueued
    /// on the stream of the viewed memory.
    ///
    /// A copy between devices is direct if they have peer access, and staged through the host otherwise.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    #[doc(alias = "cuMemcpyDtoD")]
    #[doc(alias = "cudaMemcpy")]
    #[doc(alias = "cuMemcpyPeer")]
    #[doc(alias = "cudaMemcpyPeer")]
    pub fn copy_from_device(&mut self, source: &impl AsDeviceSlice<Element = T>) -> Result<()>
    where
        T: Copy,
    {
        self.copy_from_device_on(self.stream(), source)
            .map_err(without_stream("DeviceSliceMut::copy_from_device"))
    }

    /// Copies like [`DeviceSliceMut::copy_from_device`], on `stream`.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSliceMut::copy_from_device`].
    pub fn copy_from_device_on(
        &mut self,
        stream: &Stream,
        source: &impl AsDeviceSlice<Element = T>,
    ) -> Result<()>
    where
        T: Copy,
    {
        let source = source.as_device_slice();
        size::same_len(
            "DeviceSliceMut::copy_from_device_on",
            self.len,
            source.len(),
        )?;
        device::copy(
            stream.enqueue("DeviceSliceMut::copy_from_device_on")?,
            self.end(),
            source.end(),
        )
    }

    /// Copies like [`DeviceSliceMut::copy_from_device_on`], with hints for drivers that support them.
    ///
    /// CUDA: `cuMemcpyWithAttributesAsync` (since 13.2) or `cuMemcpyBatchAsync_v2` (since 13.0); an older driver ignores the options.
    ///
    /// # Errors
    ///
    /// As for [`DeviceSliceMut::copy_from_device`].
    #[doc(alias = "cuMemcpyWithAttributesAsync")]
    pub fn copy_from_device_with(
        &mut self,
        stream: &Stream,
        source: &impl AsDeviceSlice<Element = T>,
        options: CopyOptions,
    ) -> Result<()>
    where
        T: Copy,
    {
        let source = source.as_device_slice();
        size::same_len(
            "DeviceSliceMut::copy_from_device_with",
            self.len,
            source.len(),
        )?;
        device::copy_with(
            stream.enqueue("DeviceSliceMut::copy_from_device_with")?,
            self.end(),
            source.end(),
            options,
        )
    }

    /// Sets every element to `value`. Returns once the fill is enqueued on the stream of the viewed memory.
    ///
    /// A value whose bytes repeat with a period of 1, 2 or 4 takes one driver call. Any other value takes one call per
    /// word of up to 4 bytes, and is slower than a kernel.
    ///
    /// CUDA: `cuMemsetD8Async`, `cuMemsetD16Async`, `cuMemsetD32Async`, `cuMemsetD2D8Async`, `cuMemsetD2D16Async`, `cuMemsetD2D32Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "cuMemsetD16Async")]
    pub fn fill(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.fill_on(self.stream(), value)
            .map_err(without_stream("DeviceSliceMut::fill"))
    }

    /// Fills like [`DeviceSliceMut::fill`], on `stream`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[inline]
    pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        fill::elements(
            stream.enqueue("DeviceSliceMut::fill_on")?,
            &self.end(),
            bytemuck::bytes_of(&value),
        )
    }

    /// Sets every byte to zero. Returns once the fill is enqueued on the stream of the viewed memory.
    ///
    /// CUDA: `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cudaMemsetAsync")]
    pub fn zero(&mut self) -> Result<()>
    where
        T: Zeroable,
    {
        self.zero_on(self.stream())
            .map_err(without_stream("DeviceSliceMut::zero"))
    }

    /// Fills like [`DeviceSliceMut::zero`], on `stream`.
    ///
    /// CUDA: `cuMemsetD8Async`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[inline]
    pub fn zero_on(&mut self, stream: &Stream) -> Result<()>
    where
        T: Zeroable,
    {
        fill::elements(
            stream.enqueue("DeviceSliceMut::zero_on")?,
            &self.end(),
            &[0],
        )
    }

    #[inline]
    pub(crate) fn tracked(&self) -> &'a Tracked {
        self.tracked
    }

    /// Consumes the view as a copy operand.
    #[inline]
    pub(crate) fn into_end(self) -> copy::Operand<'a> {
        self.end()
    }

    /// Returns the view as a copy operand; the view stays borrowed.
    #[inline]
    pub(crate) fn end(&self) -> copy::Operand<'a> {
        copy::Operand {
            address: self.pointer.as_raw(),
            bytes: self.byte_len(),
            tracked: self.tracked,
        }
    }
}

impl<'a, T> From<DeviceSliceMut<'a, T>> for DeviceSlice<'a, T> {
    #[inline]
    fn from(view: DeviceSliceMut<'a, T>) -> Self {
        Self::new(view.pointer, view.len, view.tracked)
    }
}

impl<T> AsDeviceSlice for DeviceSliceMut<'_, T> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.as_slice()
    }
}

impl<T> AsDeviceSliceMut for DeviceSliceMut<'_, T> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.reborrow()
    }
}

impl<T> AsRef<Driver> for DeviceSliceMut<'_, T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}

impl<T> fmt::Debug for DeviceSliceMut<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "DeviceSliceMut({} × {} at {:?})",
            self.len,
            std::any::type_name::<T>(),
            self.pointer
        )
    }
}
