//! Views: slices that are values.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use curium_driver::{DevicePointer, Driver};

use super::DeviceSlice;
use super::names::SLICE;
use super::parts::{Borrowed, Parts, Resolved};
use crate::operand::Operand;
use crate::tracked::Tracked;

/// A shared view of elements in device-accessible memory, which dereferences to [`DeviceSlice`].
/// Views of a part are returned by [`DeviceSlice::slice`] and similar methods, views with another
/// stream by [`DeviceSlice::on`].
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::DeviceBuffer;
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let other = driver.device(0)?.primary_context()?.stream()?;
/// let buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3, 4])?;
/// let middle = buffer.slice(1..3)?;
/// assert_eq!(middle.to_vec()?, [2, 3]);
/// assert_eq!(middle.on(&other).to_vec()?, [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceView<'a, T> {
    parts: Parts<T, Borrowed>,
    _memory: PhantomData<&'a [T]>,
}

/// A mutable view of elements in device-accessible memory, which dereferences to [`DeviceSlice`].
/// Returned by [`DeviceSlice::slice_mut`], [`DeviceSlice::on_mut`] and similar methods.
pub struct DeviceViewMut<'a, T> {
    parts: Parts<T, Borrowed>,
    _memory: PhantomData<&'a mut [T]>,
}

impl<'a, T> DeviceView<'a, T> {
    /// Creates a view of `len` elements at `pointer`, in memory of `tracked`.
    #[inline]
    pub(crate) fn new(pointer: DevicePointer<T>, len: usize, tracked: &'a Tracked) -> Self {
        Self::with_origin(pointer, len, part_of(tracked))
    }

    /// Creates a view of `len` elements at `pointer`, in memory of `origin`.
    #[inline]
    pub(super) fn with_origin(pointer: DevicePointer<T>, len: usize, origin: Resolved<'a>) -> Self {
        Self {
            parts: Parts::new(pointer, len, Borrowed::new(origin)),
            _memory: PhantomData,
        }
    }

    /// Returns the origin, for the lifetime of the borrow.
    #[inline]
    fn borrowed_origin(self) -> Resolved<'a> {
        // SAFETY: `with_origin` made it from references with this lifetime.
        unsafe { self.parts.origin.get() }
    }

    /// Returns the view as a copy operand, for the lifetime of the borrow.
    #[inline]
    pub(crate) fn into_operand(self) -> Operand<'a> {
        Operand {
            address: self.parts.pointer.as_raw(),
            bytes: self.parts.byte_len(),
            tracked: self.borrowed_origin().tracked,
        }
    }

    /// Splits the view. `middle` must be within its length.
    #[inline]
    pub(super) fn halves(self, middle: usize) -> (Self, Self) {
        let Parts { pointer, len, .. } = self.parts;
        let origin = self.borrowed_origin();
        (
            Self::with_origin(pointer, middle, origin),
            Self::with_origin(pointer.wrapping_add(middle), len - middle, origin),
        )
    }

    /// Returns a view of `len` elements at `pointer`, in the same memory.
    #[inline]
    pub(crate) fn with_pointer(self, pointer: DevicePointer<T>, len: usize) -> Self {
        Self::with_origin(pointer, len, self.borrowed_origin())
    }
}

impl<'a, T> DeviceViewMut<'a, T> {
    /// Creates a view of `len` elements at `pointer`, in memory of `tracked` that is borrowed
    /// exclusively for `'a`.
    #[inline]
    pub(crate) fn new(pointer: DevicePointer<T>, len: usize, tracked: &'a Tracked) -> Self {
        Self::with_origin(pointer, len, part_of(tracked))
    }

    /// Creates a view of `len` elements at `pointer`, in memory of `origin` that is borrowed
    /// exclusively for `'a`.
    #[inline]
    pub(super) fn with_origin(pointer: DevicePointer<T>, len: usize, origin: Resolved<'a>) -> Self {
        Self {
            parts: Parts::new(pointer, len, Borrowed::new(origin)),
            _memory: PhantomData,
        }
    }

    /// Returns a shared view of the same elements.
    #[inline]
    pub(crate) fn into_view(self) -> DeviceView<'a, T> {
        DeviceView {
            parts: self.parts,
            _memory: PhantomData,
        }
    }

    /// Returns the view as a copy operand, for the lifetime of the borrow.
    #[inline]
    pub(crate) fn into_operand(self) -> Operand<'a> {
        self.into_view().into_operand()
    }

    /// Splits the view. `middle` must be within its length.
    #[inline]
    pub(super) fn halves(self, middle: usize) -> (Self, Self) {
        let (first, second) = self.into_view().halves(middle);
        (first.into_exclusive(), second.into_exclusive())
    }

    /// Returns a view of `len` elements at `pointer`, which this view borrows exclusively.
    #[inline]
    pub(crate) fn with_pointer(self, pointer: DevicePointer<T>, len: usize) -> Self {
        self.into_view().with_pointer(pointer, len).into_exclusive()
    }
}

impl<'a, T> DeviceView<'a, T> {
    /// Returns a mutable view of the same elements, which this module has borrowed exclusively.
    #[inline]
    fn into_exclusive(self) -> DeviceViewMut<'a, T> {
        DeviceViewMut {
            parts: self.parts,
            _memory: PhantomData,
        }
    }
}

/// Returns the origin of a part of the memory of `tracked`.
#[inline]
fn part_of(tracked: &Tracked) -> Resolved<'_> {
    Resolved {
        tracked,
        stream: tracked.stream(),
        names: &SLICE,
    }
}

impl<T> Clone for DeviceView<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceView<'_, T> {}

impl<T> Deref for DeviceView<'_, T> {
    type Target = DeviceSlice<T>;

    #[inline]
    fn deref(&self) -> &DeviceSlice<T> {
        DeviceSlice::from_view(&self.parts)
    }
}

impl<T> Deref for DeviceViewMut<'_, T> {
    type Target = DeviceSlice<T>;

    #[inline]
    fn deref(&self) -> &DeviceSlice<T> {
        DeviceSlice::from_view(&self.parts)
    }
}

impl<T> DerefMut for DeviceViewMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut DeviceSlice<T> {
        DeviceSlice::from_view_mut(&mut self.parts)
    }
}

impl<T> AsRef<DeviceSlice<T>> for DeviceView<'_, T> {
    #[inline]
    fn as_ref(&self) -> &DeviceSlice<T> {
        self
    }
}

impl<T> AsRef<DeviceSlice<T>> for DeviceViewMut<'_, T> {
    #[inline]
    fn as_ref(&self) -> &DeviceSlice<T> {
        self
    }
}

impl<T> AsMut<DeviceSlice<T>> for DeviceViewMut<'_, T> {
    #[inline]
    fn as_mut(&mut self) -> &mut DeviceSlice<T> {
        self
    }
}

impl<T> AsRef<Driver> for DeviceView<'_, T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.owner_stream().driver()
    }
}

impl<T> AsRef<Driver> for DeviceViewMut<'_, T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.owner_stream().driver()
    }
}

impl<'a, T> From<&'a DeviceSlice<T>> for DeviceView<'a, T> {
    #[inline]
    fn from(slice: &'a DeviceSlice<T>) -> Self {
        slice.view()
    }
}

impl<'a, T> From<&'a DeviceView<'_, T>> for DeviceView<'a, T> {
    #[inline]
    fn from(view: &'a DeviceView<'_, T>) -> Self {
        view.view()
    }
}

impl<'a, T> From<&'a DeviceViewMut<'_, T>> for DeviceView<'a, T> {
    #[inline]
    fn from(view: &'a DeviceViewMut<'_, T>) -> Self {
        view.view()
    }
}

impl<'a, T> From<DeviceViewMut<'a, T>> for DeviceView<'a, T> {
    #[inline]
    fn from(view: DeviceViewMut<'a, T>) -> Self {
        view.into_view()
    }
}

impl<'a, T> From<&'a mut DeviceSlice<T>> for DeviceViewMut<'a, T> {
    #[inline]
    fn from(slice: &'a mut DeviceSlice<T>) -> Self {
        slice.view_mut()
    }
}

impl<'a, T> From<&'a mut DeviceViewMut<'_, T>> for DeviceViewMut<'a, T> {
    #[inline]
    fn from(view: &'a mut DeviceViewMut<'_, T>) -> Self {
        view.view_mut()
    }
}

impl<T> fmt::Debug for DeviceView<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T> fmt::Debug for DeviceViewMut<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}
