//! Views of vectors.

use std::ops::RangeBounds;

use curium_driver::{Driver, Result};

use super::DeviceVec;
use crate::device_slice::{WholeMut, argument_as};
use crate::{AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut};

impl<T> DeviceVec<T> {
    /// Returns a view of all elements.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.as_pointer(), self.len, &self.tracked)
    }

    /// Returns a mutable view of all elements.
    #[must_use]
    #[inline]
    pub fn as_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(self.as_pointer(), self.len, &self.tracked)
    }

    /// Returns a view of the elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// Returns a mutable view of the elements in `range`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        self.as_slice_mut().slice(range)
    }
}

argument_as!([T] DeviceVec<T>: |vector| vector.as_slice(), WholeMut::new(vector.as_pointer(), &mut vector.tracked));

impl<T> AsDeviceSlice for DeviceVec<T> {
    type Element = T;

    #[inline]
    fn as_device_slice(&self) -> DeviceSlice<'_, T> {
        self.as_slice()
    }
}

impl<T> AsDeviceSliceMut for DeviceVec<T> {
    #[inline]
    fn as_device_slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.as_slice_mut()
    }
}

impl<T> AsRef<Driver> for DeviceVec<T> {
    fn as_ref(&self) -> &Driver {
        self.stream().driver()
    }
}
