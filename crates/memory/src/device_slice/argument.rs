//! Views as arguments of kernels.

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, Result, Stream};

use super::{DeviceSlice, DeviceSliceMut};

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
