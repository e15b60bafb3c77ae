//! Growable vectors in device memory.

mod segments;

use std::fmt;
use std::mem::ManuallyDrop;

use crate::{AnyBitPattern, NoUninit};
use curium_driver::extend::{dropping, leak, report, with_relaxed_capture_mode_if_possible};
use curium_driver::{Device, DevicePointer, Error, Result, Returned, Stream};

use self::segments::Segments;
use crate::capture_advice::GROW_BEFORE;
use crate::device_slice::{Parts, slice_owner};
use crate::operand::Operand;
use crate::tracked::{Accessibility, Tracked};
use crate::transfer::{device, host};
use crate::{DeviceSlice, DeviceViewMut, fill, size};

/// A growable vector in device memory that never moves its elements: virtual addresses are reserved
/// once for the maximum length, and physical memory is mapped as needed. A pointer to an element
/// stays valid for as long as the element exists.
///
/// The vector may be used on any stream; streams of other devices require
/// [`DeviceVec::enable_access`]. Copies, fills and parts are methods of [`DeviceSlice`], to which
/// it dereferences. Growing maps memory in units of the granularity (at least 2 MiB) and does not
/// wait for the device. Releasing memory waits on the host until all accesses to the vector have
/// completed: [`DeviceVec::shrink_to`], [`DeviceVec::shrink_to_fit`] and dropping do this.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::DeviceVec;
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut vector = DeviceVec::from_slice(&stream, &[1_u32, 2])?;
/// vector.push(3)?;
/// vector.resize(5, 7)?;
/// assert_eq!(vector.slice(1..)?.to_vec()?, [2, 3, 7, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceVec<T> {
    parts: Parts<T>,
    segments: ManuallyDrop<Box<Segments>>,
}

impl<T> DeviceVec<T> {
    /// Creates an empty vector that can grow to the size of the device's memory. `stream` is the
    /// vector's stream.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no virtual memory management; an argument error
    /// for zero-sized elements.
    pub fn new(stream: &Stream) -> Result<Self> {
        size::bytes::<T>("DeviceVec::new", 1)?;
        let total = stream.context().device().total_memory()?;
        Self::with_max_len(stream, (total / size_of::<T>()).max(1))
    }

    /// Creates an empty vector that can grow to at least `max_len` elements: the reserved range is
    /// a multiple of the granularity of the device. Only virtual addresses are reserved. `stream`
    /// is the vector's stream.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// An argument error if `max_len` is 0 or too large; `CUDA_ERROR_NOT_SUPPORTED` if the device
    /// has no virtual memory management; `CUDA_ERROR_OUT_OF_MEMORY` if the address space is
    /// exhausted.
    #[doc(alias = "cuMemAddressReserve")]
    pub fn with_max_len(stream: &Stream, max_len: usize) -> Result<Self> {
        let bytes = size::bytes::<T>("DeviceVec::with_max_len", max_len)?;
        let tracked =
            Tracked::leasable_outside("DeviceVec::with_max_len", stream, Accessibility::Granted)?;
        let segments = Segments::reserve(stream.context().device(), bytes)?;
        let tracked = tracked.at(segments.address(), bytes);
        Ok(Self {
            parts: Parts::new(DevicePointer::from_raw(segments.address()), 0, tracked),
            segments: ManuallyDrop::new(Box::new(segments)),
        })
    }

    /// Creates a vector with the elements of `source`. Waits until the copy has completed, unless
    /// it is [small](crate::copy#small-copies).
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

    /// Creates a vector with the same contents and maximum length on the same stream. Returns once
    /// the copy is enqueued.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`,
    /// `cuMemcpyDtoDAsync_v2`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::with_max_len`] and [`DeviceVec::extend_from_device`].
    pub fn try_clone(&self) -> Result<Self>
    where
        T: Copy,
    {
        let mut clone = Self::with_max_len(self.stream(), self.max_len())?;
        clone.extend_from_device(self)?;
        Ok(clone)
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

    /// Reserves memory for at least `additional` more elements.
    ///
    /// CUDA: `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, if the capacity is insufficient.
    ///
    /// # Errors
    ///
    /// An argument error if [`DeviceVec::max_len`] would be exceeded; `CUDA_ERROR_OUT_OF_MEMORY`.
    /// On error, the vector is unchanged.
    pub fn reserve(&mut self, additional: usize) -> Result<()> {
        self.make_room("DeviceVec::reserve", additional).map(|_| ())
    }

    /// Appends an element, like [`DeviceVec::extend_from_slice`]. Appending many elements at once
    /// is much faster.
    ///
    /// CUDA: as for [`DeviceVec::extend_from_slice`].
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]; an argument error if the stream is being captured. On error,
    /// the vector is unchanged.
    pub fn push(&mut self, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        self.append("DeviceVec::push", &[value])
    }

    /// Appends the elements of `source`. Waits until the copy has completed, unless it is
    /// [small](crate::copy#small-copies).
    ///
    /// CUDA: `cuMemcpyHtoDAsync_v2`; `cuStreamSynchronize`, unless the copy is small.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::push`].
    pub fn extend_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        self.append("DeviceVec::extend_from_slice", source)
    }

    /// Appends the elements of `source`, which may be on another device. Returns once the copy is
    /// enqueued on this vector's stream.
    ///
    /// CUDA: `cuMemcpyDtoDAsync_v2`, `cuMemcpyPeerAsync`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::push`].
    #[doc(alias = "cuMemcpyDtoD")]
    #[doc(alias = "cudaMemcpy")]
    pub fn extend_from_device(&mut self, source: &DeviceSlice<T>) -> Result<()>
    where
        T: Copy,
    {
        const OPERATION: &str = "DeviceVec::extend_from_device";
        self.stream()
            .driver()
            .check_same(source.owner_stream().driver(), OPERATION)?;
        let len = self.make_room_to_write(OPERATION, source.len())?;
        let operation = self.stream().enqueue(OPERATION)?;
        device::copy(operation, self.spare(source.len()), source.operand())?;
        self.parts.len = len;
        Ok(())
    }

    /// Appends `additional` elements with unspecified values and returns a view of them, to write
    /// them on any stream:
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_memory::DeviceVec;
    ///
    /// # let stream = driver.device(0)?.primary_context()?.stream()?;
    /// # let other = driver.device(0)?.primary_context()?.stream()?;
    /// let mut vector = DeviceVec::from_slice(&stream, &[1_u32, 2])?;
    /// vector.extend_uninit(2)?.on_mut(&other).copy_from_slice(&[3, 4])?;
    /// assert_eq!(vector.to_vec()?, [1, 2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// CUDA: as for [`DeviceVec::reserve`].
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::reserve`]. On error, the vector is unchanged.
    pub fn extend_uninit(&mut self, additional: usize) -> Result<DeviceViewMut<'_, T>>
    where
        T: AnyBitPattern,
    {
        let len = self.make_room("DeviceVec::extend_uninit", additional)?;
        let added = self.as_pointer().wrapping_add(self.len());
        self.parts.len = len;
        Ok(DeviceViewMut::new(added, additional, &self.parts.origin))
    }

    /// Resizes the vector to `len` elements. New elements are set to `value`. When shrinking, the
    /// memory is kept.
    ///
    /// Returns once the work is enqueued on this vector's stream.
    ///
    /// CUDA: as for [`DeviceSlice::fill`].
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::push`].
    pub fn resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: NoUninit,
    {
        const OPERATION: &str = "DeviceVec::resize";
        if let Some(added) = len.checked_sub(self.len()).filter(|added| *added > 0) {
            self.make_room_to_write(OPERATION, added)?;
            let operation = self.stream().enqueue(OPERATION)?;
            fill::elements(operation, &self.spare(added), bytemuck::bytes_of(&value))?;
        }
        self.parts.len = len;
        Ok(())
    }

    /// Shortens the vector to `len` elements if it is longer. The memory is kept.
    pub fn truncate(&mut self, len: usize) {
        self.parts.len = self.parts.len.min(len);
    }

    /// Removes all elements. The memory is kept.
    pub fn clear(&mut self) {
        self.parts.len = 0;
    }

    /// Releases unused memory. If there is any, waits on the host until all accesses to the vector
    /// have completed.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// As for [`DeviceVec::shrink_to`].
    pub fn shrink_to_fit(&mut self) -> Result<()> {
        self.shrink_to(0)
    }

    /// Releases unused memory beyond `min_capacity` elements, in the units in which it was mapped.
    /// If there is any, waits on the host until all accesses to the vector have completed.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// An error of earlier asynchronous work in the context; an argument error if a graph that can
    /// be launched uses the vector. On error, the memory is kept.
    pub fn shrink_to(&mut self, min_capacity: usize) -> Result<()> {
        let keep = self.len().max(min_capacity).saturating_mul(size_of::<T>());
        if self.segments.can_shrink_to(keep) {
            if self.parts.origin.exclusive().is_leased() {
                let reason = "a graph uses the vector, and can be launched at any time";
                return Err(Error::argument("DeviceVec::shrink_to", reason));
            }
            self.parts.origin.exclusive().synchronize()?;
            self.segments.shrink_to(keep)?;
        }
        Ok(())
    }

    /// Releases all memory and addresses, as [`Drop`] does, and returns any error. Waits on the
    /// host until all accesses have completed. If graphs lease the vector, the last of them
    /// releases it instead.
    ///
    /// CUDA: `cuMemUnmap`, `cuMemAddressFree`.
    ///
    /// # Errors
    ///
    /// Returns the vector together with the error if the driver call fails. Memory at its end may
    /// already have been released.
    #[doc(alias = "cuMemAddressFree")]
    #[expect(
        clippy::result_large_err,
        reason = "the error gives back what it is about, and is rare"
    )]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        if self.parts.origin.exclusive().is_leased() {
            return Ok(());
        }
        let ended = self.end().and_then(|()| self.segments.free_addresses());
        ended.map_err(|error| Returned::new(self, error))
    }

    /// Maps memory for `additional` more elements and returns the new length.
    fn make_room(&mut self, operation: &'static str, additional: usize) -> Result<usize> {
        let len = self
            .len()
            .checked_add(additional)
            .filter(|len| *len <= self.max_len());
        let Some(len) = len else {
            let len = self.len();
            let most = self.max_len();
            let reason = format!(
                "maximum length exceeded ({len} elements and {additional} more, at most {most})"
            );
            return Err(Error::argument(operation, reason));
        };
        let device = self.parts.origin.stream().device();
        self.segments.grow_to(device, len * size_of::<T>())?;
        Ok(len)
    }

    /// Makes room like [`DeviceVec::make_room`], for elements that are written on the vector's
    /// stream. A graph cannot write them, because they exist before it is launched.
    fn make_room_to_write(&mut self, operation: &'static str, additional: usize) -> Result<usize> {
        self.stream().check_enqueue(operation, GROW_BEFORE)?;
        self.make_room(operation, additional)
    }

    /// Appends the elements of `source`.
    fn append(&mut self, operation: &'static str, source: &[T]) -> Result<()>
    where
        T: NoUninit,
    {
        let len = self.make_room_to_write(operation, source.len())?;
        host::upload(operation, self.stream(), self.spare(source.len()), source)?;
        self.parts.len = len;
        Ok(())
    }

    /// Returns the `count` elements past the end, for which memory is mapped, as a copy operand.
    fn spare(&self, count: usize) -> Operand<'_> {
        Operand {
            address: self.as_pointer().wrapping_add(self.len()).as_raw(),
            bytes: count * size_of::<T>(),
            tracked: &self.parts.origin,
        }
    }

    fn end(&mut self) -> Result<()> {
        self.parts.origin.exclusive().synchronize()?;
        // The removed elements are gone even if the memory cannot be released.
        let result = self.segments.shrink_to(0);
        self.parts.len = self.parts.len.min(self.capacity());
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
            .check_same(device.driver(), OPERATION)?;
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
        self.parts.origin.grant_access(device);
        Ok(())
    }
}

slice_owner!([T] DeviceVec<T>, "DeviceVec", parts);

impl<T> fmt::Debug for DeviceVec<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "DeviceVec({} × {name} at {:?})",
            self.len(),
            self.as_pointer()
        )
    }
}

impl<T> Drop for DeviceVec<T> {
    fn drop(&mut self) {
        if self.parts.origin.exclusive().is_leased() {
            // SAFETY: this value is being dropped, so the field is not used again.
            let segments = unsafe { ManuallyDrop::take(&mut self.segments) };
            let bytes = segments.mapped() as u64;
            return self.parts.origin.leave_memory(segments, bytes);
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
