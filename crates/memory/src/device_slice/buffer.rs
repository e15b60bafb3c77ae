//! Views shared by all buffers.

/// Implements the views of a buffer that has a field `tracked` and methods `as_pointer` and `len`.
macro_rules! buffer_views {
    ([$($generics:tt)*] $buffer:ty) => {
        impl<$($generics)*> $buffer {
            /// Returns the size of the elements in bytes.
            #[must_use]
            #[inline]
            pub fn byte_len(&self) -> usize {
                self.len() * size_of::<T>()
            }

            /// Returns the buffer's stream, which operations without a stream argument use.
            #[must_use]
            #[inline]
            pub fn stream(&self) -> &curium_driver::Stream {
                self.tracked.stream()
            }

            /// Returns a view of all elements.
            #[must_use]
            #[inline]
            pub fn as_slice(&self) -> $crate::DeviceSlice<'_, T> {
                $crate::DeviceSlice::new(self.as_pointer(), self.len(), &self.tracked)
            }

            /// Returns a mutable view of all elements.
            #[must_use]
            #[inline]
            pub fn as_slice_mut(&mut self) -> $crate::DeviceSliceMut<'_, T> {
                $crate::DeviceSliceMut::new(self.as_pointer(), self.len(), &self.tracked)
            }

            /// Returns a view of the elements in `range`.
            ///
            /// # Errors
            ///
            /// An argument error if the range is reversed or out of bounds.
            #[inline]
            pub fn slice(
                &self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> curium_driver::Result<$crate::DeviceSlice<'_, T>> {
                self.as_slice().slice(range)
            }

            /// Returns a mutable view of the elements in `range`.
            ///
            /// # Errors
            ///
            /// An argument error if the range is reversed or out of bounds.
            #[inline]
            pub fn slice_mut(
                &mut self,
                range: impl std::ops::RangeBounds<usize>,
            ) -> curium_driver::Result<$crate::DeviceSliceMut<'_, T>> {
                self.as_slice_mut().slice(range)
            }
        }

        impl<$($generics)*> $crate::AsDeviceSlice for $buffer {
            type Element = T;

            #[inline]
            fn as_device_slice(&self) -> $crate::DeviceSlice<'_, T> {
                self.as_slice()
            }
        }

        impl<$($generics)*> $crate::AsDeviceSliceMut for $buffer {
            #[inline]
            fn as_device_slice_mut(&mut self) -> $crate::DeviceSliceMut<'_, T> {
                self.as_slice_mut()
            }
        }

        impl<$($generics)*> AsRef<curium_driver::Driver> for $buffer {
            #[inline]
            fn as_ref(&self) -> &curium_driver::Driver {
                self.stream().driver()
            }
        }
    };
}

pub(crate) use buffer_views;
