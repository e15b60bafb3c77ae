//! Slices of device-accessible memory.

mod argument;
mod chunks;
mod copy;
mod names;
mod owner;
mod parts;
mod reinterpret;
mod view;

use std::fmt;
use std::ops::RangeBounds;
use std::ptr;

use curium_driver::{DevicePointer, Driver, Result, Stream};

pub(crate) use self::argument::buffer_argument;
pub use self::chunks::{DeviceChunks, DeviceChunksMut};
use self::names::SLICE;
pub(crate) use self::names::{Names, names};
pub(crate) use self::owner::slice_owner;
use self::parts::{Borrowed, Origin, Owned, Resolved};
pub(crate) use self::parts::{Owner, Parts};
pub use self::view::{DeviceView, DeviceViewMut};
use crate::operand::Operand;
use crate::size;
use crate::tracked::Tracked;

/// Elements in device-accessible memory, as `[T]` is in host memory: all kinds of buffers
/// dereference to it, as `Vec<T>` does to `[T]`.
///
/// It is used behind references. `&DeviceSlice<T>` reads and `&mut DeviceSlice<T>` writes, and a
/// reference to a [`DeviceBuffer`](crate::DeviceBuffer) or another buffer coerces to them.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, DeviceSlice};
///
/// fn swap_halves(target: &mut DeviceSlice<u32>, source: &DeviceSlice<u32>) -> curium_driver::Result<()> {
///     let (left, right) = source.split_at(source.len() / 2)?;
///     let (mut first, mut second) = target.split_at_mut(right.len())?;
///     first.copy_from_device(&right)?;
///     second.copy_from_device(&left)
/// }
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let source = DeviceBuffer::from_slice(&stream, &[1, 2, 3, 4, 5])?;
/// let mut target = DeviceBuffer::zeroed(&stream, 5)?;
/// swap_halves(&mut target, &source)?;
/// assert_eq!(target.to_vec()?, [3, 4, 5, 1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Streams
///
/// Operations use the stream of the slice, which is that of the buffer. [`DeviceSlice::on`] and
/// [`DeviceSlice::on_mut`] return a view of the same memory with another stream, such as a capture
/// scope:
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # use curium_memory::DeviceBuffer;
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let other = driver.device(0)?.primary_context()?.stream()?;
/// let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
/// buffer.on_mut(&other).fill(7)?;
/// assert_eq!(buffer.to_vec()?, [7; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Parts
///
/// A slice of a part is a [`DeviceView`] or a [`DeviceViewMut`], which dereference to
/// `DeviceSlice`. It may be empty. An access through it counts as an access to the whole buffer:
/// work on several streams is ordered even if the parts do not overlap. Use separate buffers for
/// work that must run concurrently. Several threads may write parts of one buffer.
#[repr(transparent)]
pub struct DeviceSlice<T> {
    parts: Parts<T, dyn Origin>,
}

impl<T> DeviceSlice<T> {
    /// Returns the number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.parts.len
    }

    /// Returns `true` if there are no elements. A buffer has at least one, except for a
    /// [`DeviceVec`](crate::DeviceVec).
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len() * size_of::<T>()
    }

    /// Returns the address of the first element. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.parts.pointer
    }

    /// Returns the stream of the operations on this slice: that of [`DeviceSlice::on`], or else
    /// [`DeviceSlice::owner_stream`].
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.origin().stream
    }

    /// Returns the stream of the buffer that owns the memory.
    #[must_use]
    #[inline]
    pub fn owner_stream(&self) -> &Stream {
        self.tracked().stream()
    }

    /// Returns a view of the same memory whose operations use `stream`. A conflicting access on
    /// another stream is waited for on the device.
    ///
    /// Inside a [capture closure](curium_driver::Graph::capture), `stream` is the capture scope.
    #[inline]
    pub fn on<'a>(&'a self, stream: &'a Stream) -> DeviceView<'a, T> {
        DeviceView::with_origin(self.as_pointer(), self.len(), self.origin().on(stream))
    }

    /// Returns a mutable view of the same memory whose operations use `stream`, like
    /// [`DeviceSlice::on`].
    #[inline]
    pub fn on_mut<'a>(&'a mut self, stream: &'a Stream) -> DeviceViewMut<'a, T> {
        DeviceViewMut::with_origin(self.as_pointer(), self.len(), self.origin().on(stream))
    }

    /// Returns a view of all elements.
    #[must_use]
    #[inline]
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView::with_origin(self.as_pointer(), self.len(), self.origin())
    }

    /// Returns a mutable view of all elements.
    #[must_use]
    #[inline]
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut::with_origin(self.as_pointer(), self.len(), self.origin())
    }

    /// Returns a view of the elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceView<'_, T>> {
        let origin = self.origin();
        let range = size::range(origin.names.slice, self.len(), range)?;
        let pointer = self.as_pointer().wrapping_add(range.start);
        Ok(DeviceView::with_origin(pointer, range.len(), origin.part()))
    }

    /// Returns a mutable view of the elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceViewMut<'_, T>> {
        let origin = self.origin();
        let range = size::range(origin.names.slice_mut, self.len(), range)?;
        let pointer = self.as_pointer().wrapping_add(range.start);
        Ok(DeviceViewMut::with_origin(
            pointer,
            range.len(),
            origin.part(),
        ))
    }

    /// Returns the first `middle` elements and the rest.
    ///
    /// # Errors
    ///
    /// An argument error if `middle` is greater than the length.
    pub fn split_at(&self, middle: usize) -> Result<(DeviceView<'_, T>, DeviceView<'_, T>)> {
        size::split(self.names().split_at, self.len(), middle)?;
        Ok(self.whole_part().halves(middle))
    }

    /// Returns the first `middle` elements and the rest, as two views that different operations may
    /// write.
    ///
    /// ```
    /// # let device = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Device>()?;
    /// use curium_memory::DeviceBuffer;
    ///
    /// # let stream = device.primary_context()?.stream()?;
    /// let mut buffer = DeviceBuffer::zeroed(&stream, 4)?;
    /// let (mut left, mut right) = buffer.split_at_mut(1)?;
    /// left.fill(1)?;
    /// right.fill(2)?;
    /// assert_eq!(buffer.to_vec()?, [1, 2, 2, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An argument error if `middle` is greater than the length.
    pub fn split_at_mut(
        &mut self,
        middle: usize,
    ) -> Result<(DeviceViewMut<'_, T>, DeviceViewMut<'_, T>)> {
        size::split(self.names().split_at_mut, self.len(), middle)?;
        Ok(self.whole_part_mut().halves(middle))
    }

    /// Returns an iterator over chunks of `len` elements. The last chunk may be shorter.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0.
    pub fn chunks(&self, len: usize) -> Result<DeviceChunks<'_, T>> {
        size::chunk(self.names().chunks, len)?;
        Ok(DeviceChunks::new(self.whole_part(), len))
    }

    /// Returns an iterator over mutable chunks of `len` elements. The last chunk may be shorter.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0.
    pub fn chunks_mut(&mut self, len: usize) -> Result<DeviceChunksMut<'_, T>> {
        size::chunk(self.names().chunks_mut, len)?;
        Ok(DeviceChunksMut::new(self.whole_part_mut(), len))
    }

    /// Returns a view of all elements, whose operations are named after views.
    #[inline]
    fn whole_part(&self) -> DeviceView<'_, T> {
        DeviceView::with_origin(self.as_pointer(), self.len(), self.origin().part())
    }

    /// Returns a mutable view of all elements, whose operations are named after views.
    #[inline]
    fn whole_part_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut::with_origin(self.as_pointer(), self.len(), self.origin().part())
    }

    /// Returns the accesses to the memory. Costs less than [`DeviceSlice::origin`].
    #[inline]
    fn tracked(&self) -> &Tracked {
        self.parts.origin.tracked()
    }

    /// Returns the origin of the memory.
    #[inline]
    fn origin(&self) -> Resolved<'_> {
        self.parts.origin.resolve()
    }

    /// Returns the names of the operations in errors.
    #[inline]
    pub(crate) fn names(&self) -> &'static Names {
        self.origin().names
    }

    /// Returns the slice as a copy operand.
    #[inline]
    pub(crate) fn operand(&self) -> Operand<'_> {
        Operand {
            address: self.as_pointer().as_raw(),
            bytes: self.byte_len(),
            tracked: self.tracked(),
        }
    }

    /// Returns the slice of a buffer of the kind `O`.
    #[inline]
    pub(crate) fn from_parts<O: Owner>(parts: &Parts<T>) -> &Self {
        let parts: *const Parts<T, Owned<O>> = ptr::from_ref(parts).cast();
        let parts: *const Parts<T, dyn Origin> = parts;
        // SAFETY: `Owned<O>` is a transparent `Tracked`, `Parts` is `repr(C)`, and `Self` is
        // transparent, so that the memory is a `Self` with this vtable. The lifetime is that of the
        // argument.
        unsafe { &*(parts as *const Self) }
    }

    /// Returns the mutable slice of a buffer of the kind `O`.
    #[inline]
    pub(crate) fn from_parts_mut<O: Owner>(parts: &mut Parts<T>) -> &mut Self {
        let parts: *mut Parts<T, Owned<O>> = ptr::from_mut(parts).cast();
        let parts: *mut Parts<T, dyn Origin> = parts;
        // SAFETY: the memory is a `Self` with this vtable: `Owned<O>` is a transparent `Tracked`,
        // `Parts` is `repr(C)`, and `Self` is transparent. The borrow is that of the argument.
        // Being unsized, a slice can be neither moved nor swapped, and no safe method of it changes
        // the address, the length or the `Tracked`, which belong to the buffer.
        unsafe { &mut *(parts as *mut Self) }
    }

    /// Returns the slice of a view.
    #[inline]
    fn from_view(parts: &Parts<T, Borrowed>) -> &Self {
        let parts: *const Parts<T, dyn Origin> = parts;
        // SAFETY: `Self` is a transparent `Parts<T, dyn Origin>`. The lifetime is that of the
        // argument.
        unsafe { &*(parts as *const Self) }
    }

    /// Returns the mutable slice of a mutable view.
    #[inline]
    fn from_view_mut(parts: &mut Parts<T, Borrowed>) -> &mut Self {
        let parts: *mut Parts<T, dyn Origin> = parts;
        // SAFETY: `Self` is a transparent `Parts<T, dyn Origin>`. The lifetime is that of the
        // argument.
        unsafe { &mut *(parts as *mut Self) }
    }
}

impl<'a> Resolved<'a> {
    /// Returns the origin of the same memory with another stream.
    #[inline]
    fn on(self, stream: &'a Stream) -> Self {
        Self { stream, ..self }
    }

    /// Returns the origin of a part, whose operations are named after views.
    #[inline]
    fn part(self) -> Self {
        Self {
            names: &SLICE,
            ..self
        }
    }
}

impl<T> AsRef<DeviceSlice<T>> for DeviceSlice<T> {
    #[inline]
    fn as_ref(&self) -> &DeviceSlice<T> {
        self
    }
}

impl<T> AsMut<DeviceSlice<T>> for DeviceSlice<T> {
    #[inline]
    fn as_mut(&mut self) -> &mut DeviceSlice<T> {
        self
    }
}

impl<T> AsRef<Driver> for DeviceSlice<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.owner_stream().driver()
    }
}

impl<T> fmt::Debug for DeviceSlice<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "DeviceSlice({} × {} at {:?})",
            self.len(),
            std::any::type_name::<T>(),
            self.as_pointer()
        )
    }
}
