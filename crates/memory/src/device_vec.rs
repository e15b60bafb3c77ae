//! Growable vectors in device memory.

mod copy;
mod segments;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use crate::NoUninit;
use curium_driver::extend::{dropping, leak, report, with_relaxed_capture_mode_if_possible};
use curium_driver::{Device, DevicePointer, Error, Result, Returned, Stream};

use self::segments::Segments;
use crate::capture_advice::GROW_BEFORE;
use crate::device_slice::{WholeMut, argument_as, buffer_views};
use crate::tracked::{Accessibility, Tracked};
use crate::{DeviceSliceMut, size};

/// A growable vector in device memory that never moves its elements: virtual addresses are reserved once for the
/// maximum length, and physical memory is mapped as needed. A pointer to an element stays valid for as long as the
/// element exists.
///
/// The vector may be used on any stream; streams of other devices require [`DeviceVec::enable_access`]. Its views are
/// those of buffers. Growing maps memory in units of the granularity (at least 2 MiB) and does not wait for the device.
/// Releasing memory waits on the host until all accesses to the vector have completed: [`DeviceVec::shrink_to`],
/// [`DeviceVec::shrink_to_fit`] and dropping do this.
pub struct DeviceVec<T> {
    len: usize,
    tracked: Tracked,
    segments: ManuallyDrop<Box<Segments>>,
    _elements: PhantomData<T>,
}

impl<T> DeviceVec<T> {
    /// Creates an empty vector that can grow to the size of the device's memory. `stream` is the vector's stream.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no virtual memory management; an argument error for zero-sized elements.
    pub fn new(stream: &Stream) -> Result<Self> {
        size::bytes::<T>("DeviceVec::new", 1)?;
        let total = stream.context().device().total_memory()?;
        Self::with_max_len(stream, (total / size_of::<T>()).max(1))
    }

    /// Creates an empty vector that can grow to `max_len` elements. Only virtual addresses are reserved. `stream` is
    /// the vector's stream.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// An argument error if `max_len` is 0 or too large; `CUDA_ERROR_NOT_SUPPORTED` if the device has no virtual memory management;
    /// `CUDA_ERROR_OUT_OF_MEMORY` if the address space is exhausted.
    #[doc(alias = "cuMemAddressReserve")]
    pub fn with_max_len(stream: &Stream, max_len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>("DeviceVec::with_max_len", max_len)?;
        let tracked =
            Tracked::leasable_outside("DeviceVec::with_max_len", stream, Accessibility::Granted)?;
        let segments = Segments::reserve(stream.context().device(), bytes)?;
        let tracked = tracked.at(segments.address(), bytes);
        Ok(Self {
            len: 0,
            tracked,
            segments: ManuallyDrop::new(Box::new(segments)),
            _elements: PhantomData,
        })
    }

    /// Creates a vector with the elements of `source`. Waits until the copy has completed.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::new`] and [`DeviceVec::extend_from_slice`].
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self>
    where
        T: NoUninit,
    {
        let mut vector = Self::new(stream)?;
        vector.extend_from_slice(source)?;
        Ok(vector)
    }

    /// Creates a vector with the same contents and maximum length on the same stream. Returns once the copy is
    /// enqueued.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, `cuMemcpyDtoDAsync_v2`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::with_max_len`] and [`DeviceVec::extend_from_device`].
    pub fn try_clone(&self) -> Result<Self>
    where
        T: Copy,
    {
        let mut clone = Self::with_max_len(self.stream(), self.max_len())?;
        clone.extend_from_device(&self.as_slice())?;
        Ok(clone)
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the vector is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of elements that fit into the mapped memory.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.segments.mapped() / size_of::<T>()
    }

    /// Returns the number of elements that fit into the reserved address range.
    #[must_use]
    pub fn max_len(&self) -> usize {
        self.segments.reserved() / size_of::<T>()
    }

    /// Returns the address of the first element, which never changes. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.segments.address())
    }

    /// Reserves memory for at least `additional` more elements.
    ///
    /// CUDA: `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, if the capacity is insufficient.
    ///
    /// # Errors
    ///
    /// An argument error if [`DeviceVec::max_len`] would be exceeded; `CUDA_ERROR_OUT_OF_MEMORY`. On error, the vector
    /// is unchanged.
    pub fn reserve(&mut self, additional: usize) -> Result<()> {
        self.make_room("DeviceVec::reserve", additional).map(|_| ())
    }

    /// Appends an element. Waits until the copy has completed. Appending many elements at once is much faster.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. On error, the vector is unchanged.
    pub fn push(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on_own("DeviceVec::push", 1)?;
        self.uninit(self.len, 1).copy_from_slice(&[value])?;
        self.len = len;
        Ok(())
    }

    /// Appends like [`DeviceVec::push`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::push`]; an argument error if the stream is being captured.
    pub fn push_on(&mut self, stream: &Stream, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on("DeviceVec::push_on", stream, 1)?;
        self.uninit(self.len, 1)
            .copy_from_slice_on(stream, &[value])?;
        self.len = len;
        Ok(())
    }

    /// Appends the elements of `source`. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. On error, the vector is unchanged.
    pub fn extend_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on_own("DeviceVec::extend_from_slice", source.len())?;
        self.uninit(self.len, source.len())
            .copy_from_slice(source)?;
        self.len = len;
        Ok(())
    }

    /// Appends like [`DeviceVec::extend_from_slice`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::extend_from_slice`]; an argument error if the stream is being captured.
    pub fn extend_from_slice_on(&mut self, stream: &Stream, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_on("DeviceVec::extend_from_slice_on", stream, source.len())?;
        self.uninit(self.len, source.len())
            .copy_from_slice_on(stream, source)?;
        self.len = len;
        Ok(())
    }

    /// Resizes the vector to `len` elements. New elements are set to `value`. When shrinking, the memory is kept.
    ///
    /// Returns once the work is enqueued on this vector's stream.
    ///
    /// CUDA: as for [`DeviceSliceMut::fill`].
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. On error, the vector is unchanged.
    pub fn resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        if let Some(added) = len.checked_sub(self.len).filter(|added| *added > 0) {
            self.make_room_on_own("DeviceVec::resize", added)?;
            self.uninit(self.len, added).fill(value)?;
        }
        self.len = len;
        Ok(())
    }

    /// Resizes like [`DeviceVec::resize`], on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::resize`]; an argument error if the stream is being captured.
    pub fn resize_on(&mut self, stream: &Stream, len: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        if let Some(added) = len.checked_sub(self.len).filter(|added| *added > 0) {
            self.make_room_on("DeviceVec::resize_on", stream, added)?;
            self.uninit(self.len, added).fill_on(stream, value)?;
        }
        self.len = len;
        Ok(())
    }

    /// Shortens the vector to `len` elements if it is longer. The memory is kept.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes all elements. The memory is kept.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Releases unused memory. If there is any, waits on the host until all accesses to the vector have completed.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::shrink_to`].
    pub fn shrink_to_fit(&mut self) -> Result<()> {
        self.shrink_to(0)
    }

    /// Releases unused memory beyond `min_capacity` elements, in the units in which it was mapped. If there is any,
    /// waits on the host until all accesses to the vector have completed.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context; an argument error if a graph that can be launched uses the
    /// vector. On error, the memory is kept.
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

    /// Releases all memory and addresses, as [`Drop`] does, and returns any error. Waits on the host until all accesses
    /// have completed. If graphs lease the vector, the last of them releases it instead.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemAddressFree`.
    ///
    /// # Errors
    ///
    /// Returns the vector together with the error if the driver call fails. Memory at its end may already have been
    /// released.
    #[doc(alias = "cuMemAddressFree")]
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        if self.tracked.exclusive().is_leased() {
            return Ok(());
        }
        let ended = self.end().and_then(|()| self.segments.free_addresses());
        ended.map_err(|error| Returned::new(self, error))
    }

    /// Maps memory for `additional` more elements and returns the new length.
    fn make_room(&mut self, operation: &'static str, additional: usize) -> Result<usize> {
        let len = self
            .len
            .checked_add(additional)
            .filter(|len| *len <= self.max_len());
        let Some(len) = len else {
            let len = self.len;
            let most = self.max_len();
            let reason = format!(
                "maximum length exceeded ({len} elements and {additional} more, at most {most})"
            );
            return Err(Error::argument(operation, reason));
        };
        let device = self.tracked.stream().device();
        self.segments.grow_to(device, len * size_of::<T>())?;
        Ok(len)
    }

    /// Makes room like [`DeviceVec::make_room`], for elements that are written on the vector's own stream.
    fn make_room_on_own(&mut self, operation: &'static str, additional: usize) -> Result<usize> {
        drop(self.stream().enqueue_or(operation, GROW_BEFORE)?);
        self.make_room(operation, additional)
    }

    /// Makes room like [`DeviceVec::make_room`], for elements that are written on `stream`. A graph cannot write them,
    /// because they exist before it is launched.
    fn make_room_on(
        &mut self,
        operation: &'static str,
        stream: &Stream,
        additional: usize,
    ) -> Result<usize> {
        drop(stream.enqueue_now(operation, GROW_BEFORE)?);
        stream
            .driver()
            .expect_same(self.stream().driver(), operation)?;
        self.make_room(operation, additional)
    }

    /// Returns a view of `count` uninitialized elements from `first`, for which memory is mapped.
    fn uninit(&mut self, first: usize, count: usize) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.as_pointer().wrapping_add(first), count, &self.tracked)
    }

    fn end(&mut self) -> Result<()> {
        self.tracked.exclusive().synchronize()?;
        // The removed elements are gone even if the memory cannot be released.
        let result = self.segments.shrink_to(0);
        self.len = self.len.min(self.capacity());
        result
    }

    /// Enables access by `device` to the current and future elements, if the devices are peers.
    ///
    /// CUDA: `cuDeviceCanAccessPeer`, `cuMemSetAccess`.
    ///
    /// # Errors
    ///
    /// An argument error if the device cannot access the memory, or belongs to another driver.
    #[doc(alias = "cuMemSetAccess")]
    pub fn enable_access(&mut self, device: &Device) -> Result<()> {
        const OPERATION: &str = "DeviceVec::enable_access";
        self.stream()
            .driver()
            .expect_same(device.driver(), OPERATION)?;
        let owner = self.stream().device();
        if owner.as_raw() == device.as_raw() || self.segments.is_reached_by(device) {
            return Ok(());
        }
        if !device.can_access_peer(owner)? {
            let owner = owner.as_raw();
            let other = device.as_raw();
            let reason =
                format!("device {other} cannot use memory on device {owner}: copy the elements");
            return Err(Error::argument(OPERATION, reason));
        }
        self.segments.allow(device)?;
        self.tracked.grant_access(device);
        Ok(())
    }
}

buffer_views!([T] DeviceVec<T>);

argument_as!([T] DeviceVec<T>: |vector| vector.as_slice(), WholeMut::new(vector.as_pointer(), &mut vector.tracked));

impl<T> fmt::Debug for DeviceVec<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "DeviceVec({} × {name} at {:?})",
            self.len,
            self.as_pointer()
        )
    }
}

impl<T> Drop for DeviceVec<T> {
    fn drop(&mut self) {
        if self.tracked.exclusive().is_leased() {
            // SAFETY: this value is being dropped, so the field is not used again.
            let segments = unsafe { ManuallyDrop::take(&mut self.segments) };
            let bytes = segments.mapped() as u64;
            return self.tracked.leave_memory(segments, bytes);
        }
        if self.segments.mapped() != 0 {
            let driver = self.stream().driver().clone();
            let released = dropping(|| {
                with_relaxed_capture_mode_if_possible(&driver, || {
                    self.end().or_else(|_| self.end())
                })
            });
            match released {
                // A lost context accesses no memory, which the mappings release.
                Some(Err(error)) if error.is_sticky() => report(&error),
                // The memory may still be in use, so it must not be reused.
                Some(Err(error)) => leak(&driver, self.segments.leak(), &error),
                Some(Ok(())) | None => {}
            }
        }
        // SAFETY: this value is being dropped, so the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.segments) };
    }
}
