//! Views as kernel arguments.

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, DevicePointer, Result};

use super::{DeviceSlice, DeviceSliceMut};
use crate::tracked::Tracked;

/// A whole allocation that a kernel writes. Later accesses need to wait for this one only.
pub(crate) struct WholeMut<'a, T> {
    pointer: DevicePointer<T>,
    tracked: &'a mut Tracked,
}

impl<'a, T> WholeMut<'a, T> {
    /// Creates the argument for the memory of `tracked`, which starts at `pointer`.
    #[inline]
    pub(crate) fn new(pointer: DevicePointer<T>, tracked: &'a mut Tracked) -> Self {
        Self { pointer, tracked }
    }
}

/// Implements kernel arguments for `&B` and `&mut B` through a value that borrows the buffer.
macro_rules! argument_as {
    ([$($generics:tt)*] $buffer:ty: |$this:ident| $shared:expr, $exclusive:expr) => {
        // SAFETY: the pointer is that of a view, which borrows the buffer in the same way.
        unsafe impl<$($generics)*> curium_driver::Argument<&[T]> for &$buffer {
            #[inline]
            unsafe fn bind(
                &mut self,
                operation: &mut curium_driver::hazard::Operation<'_>,
            ) -> curium_driver::Result<curium_driver::sys::CUdeviceptr> {
                let $this = &**self;
                // SAFETY: if a kernel is enqueued with the value, the caller calls `launched` before any other use.
                unsafe { curium_driver::Argument::<&[T]>::bind(&mut $shared, operation) }
            }

            #[inline]
            unsafe fn launched(&mut self, operation: &mut curium_driver::hazard::Operation<'_>) {
                let $this = &**self;
                // SAFETY: the caller guarantees that `bind` succeeded with this operation, and that nothing used the argument since.
                unsafe { curium_driver::Argument::<&[T]>::launched(&mut $shared, operation) };
            }
        }

        // SAFETY: the pointer is that of a view, which borrows the buffer in the same way.
        unsafe impl<$($generics)*> curium_driver::Argument<&mut [T]> for &mut $buffer {
            #[inline]
            unsafe fn bind(
                &mut self,
                operation: &mut curium_driver::hazard::Operation<'_>,
            ) -> curium_driver::Result<curium_driver::sys::CUdeviceptr> {
                let $this = &mut **self;
                // SAFETY: if a kernel is enqueued with the value, the caller calls `launched` before any other use.
                unsafe { curium_driver::Argument::<&mut [T]>::bind(&mut $exclusive, operation) }
            }

            #[inline]
            unsafe fn launched(&mut self, operation: &mut curium_driver::hazard::Operation<'_>) {
                let $this = &mut **self;
                // SAFETY: the caller guarantees that `bind` succeeded with this operation, and that nothing used the argument since.
                unsafe { curium_driver::Argument::<&mut [T]>::launched(&mut $exclusive, operation) };
            }
        }
    };
}
pub(crate) use argument_as;

// SAFETY: `bind` makes the stream wait for every access, the memory is borrowed exclusively, and later accesses wait
// for this one, which `launched` records. The address is that of live memory, because freeing waits too.
unsafe impl<T> Argument<&mut [T]> for WholeMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.pointer.as_raw();
        self.tracked.before_kernel_write(operation, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.tracked.exclusive().after_write(operation);
    }
}

// SAFETY: `bind` makes the stream wait for the last writes, and the elements cannot be written while they are borrowed.
// Later writers wait for this access, which `launched` records. The address is that of live memory, because freeing
// waits too.
unsafe impl<T> Argument<&[T]> for DeviceSlice<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.as_pointer().as_raw();
        let tracked = self.tracked();
        tracked.before_kernel_read(operation, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.tracked().after_read(operation);
    }
}

// SAFETY: `bind` makes the stream wait for every access, the elements are borrowed exclusively, and later accesses wait
// for this one, which `launched` records in addition to accesses to other parts. The address is that of live memory,
// because freeing waits too.
unsafe impl<T> Argument<&mut [T]> for DeviceSliceMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.as_pointer().as_raw();
        let tracked = self.tracked();
        tracked.before_kernel_write(operation, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.tracked().after_partial_write(operation);
    }
}

// SAFETY: the pointer is that of the view, which is borrowed exclusively.
unsafe impl<T> Argument<&mut [T]> for &mut DeviceSliceMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        // SAFETY: if a kernel is enqueued with the value, the caller calls `launched` before any other use.
        unsafe { Argument::<&mut [T]>::bind(*self, operation) }
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller guarantees that `bind` succeeded with this operation, and that nothing used the argument since.
        unsafe { Argument::<&mut [T]>::launched(*self, operation) };
    }
}

// SAFETY: the pointer is that of a shared view, which this shared borrow is.
unsafe impl<T> Argument<&[T]> for &DeviceSliceMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        // SAFETY: if a kernel is enqueued with the value, the caller calls `launched` before any other use.
        unsafe { Argument::<&[T]>::bind(&mut self.as_slice(), operation) }
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller guarantees that `bind` succeeded with this operation, and that nothing used the argument since.
        unsafe { Argument::<&[T]>::launched(&mut self.as_slice(), operation) };
    }
}
