//! Views as arguments of kernels.

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, DevicePointer, Result, Stream};

use super::{DeviceSlice, DeviceSliceMut};
use crate::tracked::Tracked;

/// All of a piece of memory, which a kernel writes: what waits later waits for this use alone.
pub(crate) struct WholeMut<'a, T> {
    pointer: DevicePointer<T>,
    tracked: &'a mut Tracked,
}

impl<'a, T> WholeMut<'a, T> {
    /// The memory of `tracked`, which begins at `pointer`.
    #[inline]
    pub(crate) fn new(pointer: DevicePointer<T>, tracked: &'a mut Tracked) -> Self {
        Self { pointer, tracked }
    }
}

/// Has `&B` and `&mut B` be arguments of kernels as the values are that are made from them.
macro_rules! argument_as {
    ([$($generics:tt)*] $buffer:ty: |$this:ident| $shared:expr, $exclusive:expr) => {
        // SAFETY: as for the value that is made from the buffer, which borrows it alike.
        unsafe impl<$($generics)*> curium_driver::Argument<&[T]> for &$buffer {
            #[inline]
            unsafe fn bind(
                &mut self,
                stream: &curium_driver::Stream,
            ) -> curium_driver::Result<curium_driver::sys::CUdeviceptr> {
                let $this = &**self;
                // SAFETY: the caller's promise is the same.
                unsafe { curium_driver::Argument::<&[T]>::bind(&mut $shared, stream) }
            }

            #[inline]
            unsafe fn launched(&mut self, stream: &curium_driver::Stream) {
                let $this = &**self;
                // SAFETY: the caller's promise is the same.
                unsafe { curium_driver::Argument::<&[T]>::launched(&mut $shared, stream) };
            }
        }

        // SAFETY: as for the value that is made from the buffer, which borrows it alike.
        unsafe impl<$($generics)*> curium_driver::Argument<&mut [T]> for &mut $buffer {
            #[inline]
            unsafe fn bind(
                &mut self,
                stream: &curium_driver::Stream,
            ) -> curium_driver::Result<curium_driver::sys::CUdeviceptr> {
                let $this = &mut **self;
                // SAFETY: the caller's promise is the same.
                unsafe { curium_driver::Argument::<&mut [T]>::bind(&mut $exclusive, stream) }
            }

            #[inline]
            unsafe fn launched(&mut self, stream: &curium_driver::Stream) {
                let $this = &mut **self;
                // SAFETY: the caller's promise is the same.
                unsafe { curium_driver::Argument::<&mut [T]>::launched(&mut $exclusive, stream) };
            }
        }
    };
}
pub(crate) use argument_as;

// SAFETY: `bind` has the stream wait for every use, the memory is borrowed exclusively, and later uses wait for this one, which
// `launched` notes. The address is that of live memory: freeing waits as well.
unsafe impl<T> Argument<&mut [T]> for WholeMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        let address = self.pointer.as_raw();
        self.tracked.before_kernel_write(stream, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        self.tracked.exclusive().after_write(stream);
    }
}

// SAFETY: `bind` has the stream wait for the last writes, and while the elements are borrowed nobody can write them; a later writer waits
// for this use, which `launched` notes. The address is that of live memory: freeing waits as well.
unsafe impl<T> Argument<&[T]> for DeviceSlice<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        let (address, tracked) = (self.as_pointer().as_raw(), self.tracked());
        tracked.before_kernel_read(stream, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        self.tracked().after_read(stream);
    }
}

// SAFETY: `bind` has the stream wait for every use, the elements are borrowed exclusively, and later uses wait for this one, which
// `launched` notes beside the uses of other parts. The address is that of live memory: freeing waits as well.
unsafe impl<T> Argument<&mut [T]> for DeviceSliceMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        let (address, tracked) = (self.as_pointer().as_raw(), self.tracked());
        tracked.before_kernel_write(stream, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        self.tracked().after_partial_write(stream);
    }
}

// SAFETY: as for the view itself, which is borrowed exclusively.
unsafe impl<T> Argument<&mut [T]> for &mut DeviceSliceMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        // SAFETY: the caller's promise is the same.
        unsafe { Argument::<&mut [T]>::bind(*self, stream) }
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        // SAFETY: the caller's promise is the same.
        unsafe { Argument::<&mut [T]>::launched(*self, stream) };
    }
}

// SAFETY: as for a view to be read, which the shared borrow of this one is.
unsafe impl<T> Argument<&[T]> for &DeviceSliceMut<'_, T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        // SAFETY: the caller's promise is the same.
        unsafe { Argument::<&[T]>::bind(&mut self.as_slice(), stream) }
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        // SAFETY: the caller's promise is the same.
        unsafe { Argument::<&[T]>::launched(&mut self.as_slice(), stream) };
    }
}
