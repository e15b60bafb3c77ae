//! Managed buffers as arguments of kernels.

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, Result, Stream};

use super::UnifiedBuffer;

// SAFETY: as for the view, which borrows the buffer alike.
unsafe impl<T> Argument<&[T]> for &UnifiedBuffer<T> {
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

// SAFETY: as for the view, which borrows the buffer alike.
unsafe impl<T> Argument<&mut [T]> for &mut UnifiedBuffer<T> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        // SAFETY: the caller's promise is the same.
        unsafe { Argument::<&mut [T]>::bind(&mut self.as_slice_mut(), stream) }
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        // SAFETY: the caller's promise is the same.
        unsafe { Argument::<&mut [T]>::launched(&mut self.as_slice_mut(), stream) };
    }
}
