//! The slices of buffers.

/// Implements the dereferencing of a buffer to its slice. The buffer has a field `parts`; its name
/// is that in errors.
macro_rules! slice_owner {
    ([$($generics:tt)*] $buffer:ty, $name:literal, $($parts:ident).+) => {
        const _: () = {
            enum Buffer {}

            impl $crate::device_slice::Owner for Buffer {
                const NAMES: &'static $crate::device_slice::Names = &$crate::device_slice::names!($name);
            }

            impl<$($generics)*> std::ops::Deref for $buffer {
                type Target = $crate::DeviceSlice<T>;

                #[inline]
                fn deref(&self) -> &$crate::DeviceSlice<T> {
                    $crate::DeviceSlice::from_parts::<Buffer>(&self.$($parts).+)
                }
            }

            impl<$($generics)*> std::ops::DerefMut for $buffer {
                #[inline]
                fn deref_mut(&mut self) -> &mut $crate::DeviceSlice<T> {
                    $crate::DeviceSlice::from_parts_mut::<Buffer>(&mut self.$($parts).+)
                }
            }
        };

        impl<$($generics)*> $buffer {
            /// Returns all elements as a slice, to which a reference to the buffer also coerces.
            #[must_use]
            #[inline]
            pub fn as_slice(&self) -> &$crate::DeviceSlice<T> {
                self
            }

            /// Returns all elements as a mutable slice, to which a mutable reference to the buffer
            /// also coerces.
            #[must_use]
            #[inline]
            pub fn as_slice_mut(&mut self) -> &mut $crate::DeviceSlice<T> {
                self
            }
        }

        impl<$($generics)*> AsRef<$crate::DeviceSlice<T>> for $buffer {
            #[inline]
            fn as_ref(&self) -> &$crate::DeviceSlice<T> {
                self
            }
        }

        impl<$($generics)*> AsMut<$crate::DeviceSlice<T>> for $buffer {
            #[inline]
            fn as_mut(&mut self) -> &mut $crate::DeviceSlice<T> {
                self
            }
        }

        impl<'a, $($generics)*> From<&'a $buffer> for $crate::DeviceView<'a, T> {
            #[inline]
            fn from(buffer: &'a $buffer) -> Self {
                buffer.view()
            }
        }

        impl<'a, $($generics)*> From<&'a mut $buffer> for $crate::DeviceViewMut<'a, T> {
            #[inline]
            fn from(buffer: &'a mut $buffer) -> Self {
                buffer.view_mut()
            }
        }

        impl<$($generics)*> AsRef<curium_driver::Driver> for $buffer {
            #[inline]
            fn as_ref(&self) -> &curium_driver::Driver {
                self.owner_stream().driver()
            }
        }

        $crate::device_slice::buffer_argument!([$($generics)*] $buffer, $($parts).+);
    };
}
pub(crate) use slice_owner;
