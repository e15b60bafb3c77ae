//! A vector in the memory of a device that grows in place.

mod access;
mod copy;
mod download;
mod segments;
mod view;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use bytemuck::NoUninit;
use curium_driver::extend::release;
use curium_driver::{DevicePointer, Error, Result, Returned, Stream};

use self::segments::Segments;
use crate::capture_advice::GROW_BEFORE;
use crate::tracked::{Reach, Tracked};
use crate::{DeviceSliceMut, size};

/// Elements in the memory of a device, as many as there is memory for. Growing moves and copies nothing: addresses are reserved once,
/// for all elements that there may ever be, and memory is mapped behind them as it is needed. So a pointer to an element stays
/// right for as long as the element exists.
///
/// The vector belongs to a stream, on which it copies, and may be used on any; on streams of another device once that was
/// [let in](DeviceVec::allow_access). Its views are those of buffers, and are taken wherever those are. Growing maps whole steps of memory
/// (2 MiB and more) without waiting for the device. What gives memory back waits on the host for every use of the vector:
/// [`DeviceVec::shrink_to`], [`DeviceVec::shrink_to_fit`], and its end.
pub struct DeviceVec<T> {
    len: usize,
    tracked: Tracked,
    segments: ManuallyDrop<Box<Segments>>,
    _elements: PhantomData<T>,
}

impl<T> DeviceVec<T> {
    /// A vector without elements that may grow to the size of the device's memory.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` where the device has no virtual memory management; an argument error for elements without bytes.
    #[inline]
    pub fn new(stream: &Stream) -> Result<Self> {
        size::bytes::<T>("DeviceVec::new", 1)?;
        let total = stream.context().device().total_memory()?;
        Self::with_max_len(stream, (total / size_of::<T>()).max(1))
    }

    /// A vector without elements that may grow to `max_len` elements: so many addresses are reserved. That takes no memory.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// An argument error if `max_len` is 0 or too large to be a size; `CUDA_ERROR_NOT_SUPPORTED` where the device has no virtual memory
    /// management; `CUDA_ERROR_OUT_OF_MEMORY` if there are not so many addresses.
    #[doc(alias = "cuMemAddressReserve")]
    #[inline]
    pub fn with_max_len(stream: &Stream, max_len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>("DeviceVec::with_max_len", max_len)?;
        let tracked = Tracked::leasable_outside("DeviceVec::with_max_len", stream, Reach::Granted)?;
        let segments = Segments::reserve(stream.context().device(), bytes)?;
        let tracked = tracked.at(segments.address(), bytes);
        Ok(Self { len: 0, tracked, segments: ManuallyDrop::new(Box::new(segments)), _elements: PhantomData })
    }

    /// A vector with the elements of `source`. Waits until the copy is done.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::new`] and [`DeviceVec::extend_from_slice`].
    #[inline]
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        let mut vector = Self::new(stream)?;
        vector.extend_from_slice(source)?;
        Ok(vector)
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

    /// The size of the elements in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// How many elements there is memory for.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.segments.mapped() / size_of::<T>()
    }

    /// How many elements there are addresses for.
    #[must_use]
    #[inline]
    pub fn max_len(&self) -> usize {
        self.segments.reserved() / size_of::<T>()
    }

    /// The stream that the vector copies on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.tracked.stream()
    }

    /// The address of the first element, which never changes. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.segments.address())
    }

    /// Has memory for `additional` more elements, so that adding them asks the driver for none.
    ///
    /// CUDA: `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, if there is not enough.
    ///
    /// # Errors
    ///
    /// An argument error beyond [`DeviceVec::max_len`]; `CUDA_ERROR_OUT_OF_MEMORY`. The vector is as it was then.
    #[inline]
    pub fn reserve(&mut self, additional: usize) -> Result<()> {
        self.make_room("DeviceVec::reserve", additional).map(|_| ())
    }

    /// Adds an element. Waits until it is there: adding many at once is much faster.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. The vector is as it was then.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on_own("DeviceVec::push", 1)?;
        self.places(self.len, 1).copy_from_slice(&[value])?;
        self.len = len;
        Ok(())
    }

    /// As [`DeviceVec::push`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::push`]; an argument error if the stream is being captured.
    #[inline]
    pub fn push_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on("DeviceVec::push", stream, 1)?;
        self.places(self.len, 1).copy_from_slice_on(stream, &[value])?;
        self.len = len;
        Ok(())
    }

    /// Adds the elements of `source`. Waits until they are there.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. The vector is as it was then.
    #[inline]
    pub fn extend_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on_own("DeviceVec::extend_from_slice", source.len())?;
        self.places(self.len, source.len()).copy_from_slice(source)?;
        self.len = len;
        Ok(())
    }

    /// As [`DeviceVec::extend_from_slice`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::extend_from_slice`]; an argument error if the stream is being captured.
    #[inline]
    pub fn extend_from_slice_on(&mut self, stream: &Stream, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on("DeviceVec::extend_from_slice", stream, source.len())?;
        self.places(self.len, source.len()).copy_from_slice_on(stream, source)?;
        self.len = len;
        Ok(())
    }

    /// Makes the vector `len` elements long. Elements that are new have the value `value`; memory behind the last element is kept.
    ///
    /// Returns when that is on this vector's stream.
    ///
    /// CUDA: as for [`DeviceSliceMut::fill`].
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. The vector is as it was then.
    #[inline]
    pub fn resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        if let Some(added) = len.checked_sub(self.len).filter(|added| *added > 0) {
            self.make_room_on_own("DeviceVec::resize", added)?;
            self.places(self.len, added).fill(value)?;
        }
        self.len = len;
        Ok(())
    }

    /// As [`DeviceVec::resize`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::resize`]; an argument error if the stream is being captured.
    #[inline]
    pub fn resize_on(&mut self, stream: &Stream, len: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        if let Some(added) = len.checked_sub(self.len).filter(|added| *added > 0) {
            self.make_room_on("DeviceVec::resize", stream, added)?;
            self.places(self.len, added).fill_on(stream, value)?;
        }
        self.len = len;
        Ok(())
    }

    /// Makes the vector `len` elements long if it is longer. The memory is kept.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes all elements. The memory is kept.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Gives memory back that is not needed for the elements. Waits on the host for every use of the vector if there is such memory.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::shrink_to`].
    #[inline]
    pub fn shrink_to_fit(&mut self) -> Result<()> {
        self.shrink_to(0)
    }

    /// Gives memory back that is needed neither for the elements nor for `min_capacity` of them. Waits on the host for every use of the
    /// vector if there is such memory. Memory goes back in the steps that it came in.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before; an argument error if a graph uses the vector, and could be launched at any
    /// time. The memory is kept then.
    #[inline]
    pub fn shrink_to(&mut self, min_capacity: usize) -> Result<()> {
        let keep = self.len.max(min_capacity).saturating_mul(size_of::<T>());
        if self.segments.can_shrink_to(keep) {
            if self.tracked.exclusive().is_leased() {
                let reason = "a graph uses the vector, and can be launched at any time";
                return Err(Error::argument("DeviceVec::shrink_to", reason));
            }
            self.tracked.exclusive().synchronize()?;
            self.segments.shrink_to(keep)?;
        }
        Ok(())
    }

    /// Gives all memory and addresses back, which [`Drop`] does as well, and says whether it succeeded. Waits on the host for every use.
    /// If graphs use the vector, the last of them gives it back.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemAddressFree`.
    ///
    /// # Errors
    ///
    /// Gives the vector back if the driver refuses; memory that was given back by then is missing from its end.
    #[doc(alias = "cuMemAddressFree")]
    #[expect(clippy::result_large_err, reason = "the error gives back what it is about, and is rare")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        if self.tracked.exclusive().is_leased() {
            return Ok(());
        }
        let ended = self.end().and_then(|()| self.segments.free_addresses());
        ended.map_err(|error| Returned::new(self, error))
    }

    /// Maps memory for `additional` elements behind the last, and returns the length with them.
    #[inline]
    fn make_room(&mut self, operation: &'static str, additional: usize) -> Result<usize> {
        let len = self.len.checked_add(additional).filter(|len| *len <= self.max_len());
        let Some(len) = len else {
            let (len, most) = (self.len, self.max_len());
            let reason = format!("{len} elements and {additional} more are over the maximum of {most}");
            return Err(Error::argument(operation, reason));
        };
        let device = self.tracked.stream().device();
        self.segments.grow_to(device, len * size_of::<T>())?;
        Ok(len)
    }

    /// As [`DeviceVec::make_room`], for elements that work on the vector's own stream writes.
    #[inline]
    fn make_room_on_own(&mut self, operation: &'static str, additional: usize) -> Result<usize> {
        self.stream().expect_captured(operation, GROW_BEFORE)?;
        self.make_room(operation, additional)
    }

    /// As [`DeviceVec::make_room`], for elements that work on `stream` writes. A graph cannot write them: they are there before it is
    /// launched.
    #[inline]
    fn make_room_on(&mut self, operation: &'static str, stream: &Stream, additional: usize) -> Result<usize> {
        stream.refuse_capture(operation, GROW_BEFORE)?;
        stream.driver().expect_same(self.stream().driver(), operation)?;
        self.make_room(operation, additional)
    }

    /// Places for `count` elements from `first` on, which there is memory for.
    #[inline]
    fn places(&mut self, first: usize, count: usize) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.as_pointer().wrapping_add(first), count, &self.tracked)
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        self.tracked.exclusive().synchronize()?;
        // What is cut off is gone, even if the rest cannot be.
        let result = self.segments.shrink_to(0);
        self.len = self.len.min(self.capacity());
        result
    }
}

impl<T> fmt::Debug for DeviceVec<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(formatter, "DeviceVec({} × {name} at {:?})", self.len, self.as_pointer())
    }
}

impl<T> Drop for DeviceVec<T> {
    #[inline]
    fn drop(&mut self) {
        if self.tracked.exclusive().is_leased() {
            // SAFETY: this value is being dropped, so that nobody uses the field again.
            let segments = unsafe { ManuallyDrop::take(&mut self.segments) };
            return self.tracked.leave_memory(segments);
        }
        if self.segments.mapped() != 0 {
            release(|| {
                self.end().inspect_err(|error| {
                    // Work that could not be waited for may still use the memory, which must not become another's.
                    if !error.is_sticky() {
                        self.segments.leak();
                    }
                })
            });
        }
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.segments) };
    }
}
