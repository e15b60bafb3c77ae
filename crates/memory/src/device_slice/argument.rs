//! Buffers, slices and views as kernel arguments.

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, Result};

use super::{DeviceSlice, DeviceView, DeviceViewMut};

/// Implements kernel arguments for `&B` and `&mut B`, where the buffer has [`Parts`](super::Parts).
macro_rules! buffer_argument {
    ([$($generics:tt)*] $buffer:ty, $($parts:ident).+) => {
        // SAFETY: `bind` makes the stream wait for the last write, and the buffer cannot be written
        // while it is borrowed. Later writers wait for this access, which `launched` records. The
        // address is that of live memory, because freeing waits too.
        unsafe impl<$($generics)*> curium_driver::Argument<&[T]> for &$buffer {
            #[inline]
            unsafe fn bind(
                &mut self,
                operation: &mut curium_driver::hazard::Operation<'_>,
            ) -> curium_driver::Result<curium_driver::sys::CUdeviceptr> {
                self.$($parts).+.bind_read(operation)
            }

            #[inline]
            unsafe fn launched(&mut self, operation: &mut curium_driver::hazard::Operation<'_>) {
                self.$($parts).+.origin.after_read(operation);
            }
        }

        // SAFETY: `bind` makes the stream wait for every access, the buffer is borrowed
        // exclusively, and later accesses wait for this one, which `launched` records. The address
        // is that of live memory, because freeing waits too.
        unsafe impl<$($generics)*> curium_driver::Argument<&mut [T]> for &mut $buffer {
            #[inline]
            unsafe fn bind(
                &mut self,
                operation: &mut curium_driver::hazard::Operation<'_>,
            ) -> curium_driver::Result<curium_driver::sys::CUdeviceptr> {
                self.$($parts).+.bind_write(operation)
            }

            #[inline]
            unsafe fn launched(&mut self, operation: &mut curium_driver::hazard::Operation<'_>) {
                self.$($parts).+.after_whole_write(operation);
            }
        }
    };
}
pub(crate) use buffer_argument;

// SAFETY: `bind` makes the stream wait for the last writes, and the elements cannot be written
// while they are borrowed. Later writers wait for this access, which `launched` records. The
// address is that of live memory, because freeing waits too.
unsafe impl<T> Argument<&[T]> for &DeviceSlice<T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.as_pointer().as_raw();
        self.tracked().before_kernel_read(operation, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.tracked().after_read(operation);
    }
}

// SAFETY: `bind` makes the stream wait for every access, the elements are borrowed exclusively, and
// later accesses wait for this one, which `launched` records in addition to accesses to other
// parts. The address is that of live memory, because freeing waits too.
unsafe impl<T> Argument<&mut [T]> for &mut DeviceSlice<T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.as_pointer().as_raw();
        self.tracked().before_kernel_write(operation, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.tracked().after_partial_write(operation);
    }
}

/// Implements kernel arguments for views, which borrow their slice in the same way.
macro_rules! view_arguments {
    ($($view:ty as $parameter:ty, |$this:ident| $slice:expr;)*) => {
        $(
            // SAFETY: the pointer is that of the slice, which the view borrows in this way.
            unsafe impl<T> Argument<$parameter> for $view {
                #[inline]
                unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
                    let $this = self;
                    // SAFETY: if a kernel is enqueued with the value, the caller calls `launched`
                    // before any other use.
                    unsafe { Argument::<$parameter>::bind(&mut $slice, operation) }
                }

                #[inline]
                unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                    let $this = self;
                    // SAFETY: the caller guarantees that `bind` succeeded with this operation, and
                    // that nothing used the argument since.
                    unsafe { Argument::<$parameter>::launched(&mut $slice, operation) };
                }
            }
        )*
    };
}

view_arguments! {
    DeviceView<'_, T> as &[T], |view| &**view;
    &DeviceView<'_, T> as &[T], |view| &***view;
    &DeviceViewMut<'_, T> as &[T], |view| &***view;
    DeviceViewMut<'_, T> as &mut [T], |view| &mut **view;
    &mut DeviceViewMut<'_, T> as &mut [T], |view| &mut ***view;
}
