//! Pitched views of host memory.

use curium_driver::Result;

use super::{Extent, Pitch};
use crate::transfer::pitched::PitchedLayout;

/// A shared two- or three-dimensional view of a slice: the source of a copy to the device.
#[derive(Clone, Copy, Debug)]
pub struct HostPitchedSlice<'a, T> {
    elements: &'a [T],
    layout: PitchedLayout,
}

/// A mutable two- or three-dimensional view of a slice: the target of a copy from the device.
#[derive(Debug)]
pub struct HostPitchedSliceMut<'a, T> {
    elements: &'a mut [T],
    layout: PitchedLayout,
}

impl<'a, T> HostPitchedSlice<'a, T> {
    /// Creates a view of `elements`.
    ///
    /// # Errors
    ///
    /// An argument error if the extent is out of bounds, or if rows or layers overlap.
    pub fn new(elements: &'a [T], extent: Extent, pitch: Pitch) -> Result<Self> {
        let layout = pitch.layout::<T>("HostPitchedSlice::new", extent, size_of_val(elements))?;
        Ok(Self { elements, layout })
    }

    pub(crate) fn layout(&self) -> &PitchedLayout {
        &self.layout
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
        let layout =
            pitch.layout::<T>("HostPitchedSliceMut::new", extent, size_of_val(elements))?;
        Ok(Self { elements, layout })
    }

    pub(crate) fn layout(&self) -> &PitchedLayout {
        &self.layout
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.elements.as_mut_ptr()
    }
}
