//! Rows and layers in memory of the host.

use curium_driver::Result;

use super::{Extent, Pitch};
use crate::copy::pitched::Place;

/// Rows and layers of elements in a slice, to be copied to the device.
#[derive(Clone, Copy, Debug)]
pub struct HostPitchedSlice<'a, T> {
    elements: &'a [T],
    place: Place,
}

/// Rows and layers of elements in a slice, to be copied to from the device.
#[derive(Debug)]
pub struct HostPitchedSliceMut<'a, T> {
    elements: &'a mut [T],
    place: Place,
}

impl<'a, T> HostPitchedSlice<'a, T> {
    /// The elements from the first on as rows and layers.
    ///
    /// # Errors
    ///
    /// An argument error if they reach beyond the slice, or if rows or layers overlap.
    #[inline]
    pub fn new(elements: &'a [T], extent: Extent, pitch: Pitch) -> Result<Self> {
        let place = pitch.place::<T>("HostPitchedSlice::new", extent, size_of_val(elements))?;
        Ok(Self { elements, place })
    }

    #[inline]
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    #[inline]
    pub(crate) fn elements(&self) -> &'a [T] {
        self.elements
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const T {
        self.elements.as_ptr()
    }
}

impl<'a, T> HostPitchedSliceMut<'a, T> {
    /// The elements from the first on as rows and layers. What lies between rows keeps its values.
    ///
    /// # Errors
    ///
    /// An argument error if they reach beyond the slice, or if rows or layers overlap.
    #[inline]
    pub fn new(elements: &'a mut [T], extent: Extent, pitch: Pitch) -> Result<Self> {
        let place = pitch.place::<T>("HostPitchedSliceMut::new", extent, size_of_val(elements))?;
        Ok(Self { elements, place })
    }

    #[inline]
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.elements.as_mut_ptr()
    }
}
