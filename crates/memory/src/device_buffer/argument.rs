//! Buffers as arguments of kernels.

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, Result, Stream};

use super::DeviceBuffer;
use crate::resource::Resource;

// SAFETY: `bind` has the stream wait for the last write, and while the buffer is borrowed nobody can write it; a later writer
// waits for this use, which `launched` notes. The address is that of live memory: freeing waits as well.
unsafe impl<T, R: Resource> Argument<&[T]> for &DeviceBuffer<T, R> {
    #[inline]
    unsafe fn bind(&mut self, stream: &Stream) -> Result<CUdeviceptr> {
        let address = self.pointer.as_raw();
        self.tracked.before_kernel_read(stream, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, stream: &Stream) {
        self.tracked.after_read(stream);
    }
}

// SAFETY: `bind` has the stream wait for every use, the buffer is borrowed exclusively, and later uses wait for this one, which
// `launched` notes. The address is that of live memory: freeing waits as well.
unsafe impl<T, R: Resource> Argument<&mut [T]> for &mut DeviceBuffer<T, R> {
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
