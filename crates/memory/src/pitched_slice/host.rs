//! Pitched views of host memory.

use curium_driver::Result;

use super::{Extent, Pitch};
use crate::copy::pitched::Place;

/// A shared two- or three-dimensional view of a slice: the source of a copy to the device.
#[derive(Clone, Copy, Debug)]
pub struct HostPitchedSlice<'a, T> {
    elements: &'a [T],
    place: Place,
}

/// A mutable two- or three-dimensional view of a slice: the target of a copy from the device.
#[derive(Debug)]
pub struct HostPitchedSliceMut<'a, T> {
    elements: &'a mut [T],
    place: Place,
}

impl<'a, T> HostPitchedSlice<'a, T> {
    /// Creates a view of `elements`.
    ///
    /// # Errors
    ///
    /// An argument error if the extent is out of bounds, or if rows or layers overlap.
    pub fn new(elements: &'a [T], extent: Extent, pitch: Pitch) -> Result<Self> {
        let place = pitch.place::<T>("HostPitchedSlice::new", extent, size_of_val(elements))?;
        Ok(Self { elements, place })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn elements(&self) -> &'a [T] {
        self.elements
    }

    pub(crate) fn as_ptr(&self) -> *const T {
        self.elements.as_ptr()
    }
}

impl<'a, T> HostPitchedSliceMut<'a, T> {
    /// Creates a view of `elements`. Copies leave the padding unchanged.
    ///
    /// # Errors
    ///
    /// An argument error if the extent is out of bounds, or if rows or layers overlap.
    pub fn new(elements: &'a mut [T], extent: Extent, pitch: Pitch) -> Result<Self> {
        let place = pitch.place::<T>("HostPitchedSliceMut::new", extent, size_of_val(elements))?;
        Ok(Self { elements, place })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.elements.as_mut_ptr()
    }
}
