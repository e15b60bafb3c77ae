//! Buffers as kernel arguments.

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Argument, Result};

use super::DeviceBuffer;
use crate::resource::Resource;

// SAFETY: `bind` makes the stream wait for the last write, and the buffer cannot be written while it is borrowed. Later
// writers wait for this access, which `launched` records. The address is that of live memory, because freeing waits
// too.
unsafe impl<T, R: Resource> Argument<&[T]> for &DeviceBuffer<T, R> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.pointer.as_raw();
        self.tracked.before_kernel_read(operation, address)?;
        Ok(address)
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.tracked.after_read(operation);
    }
}

// SAFETY: `bind` makes the stream wait for every access, the buffer is borrowed exclusively, and later accesses wait
// for this one, which `launched` records. The address is that of live memory, because freeing waits too.
unsafe impl<T, R: Resource> Argument<&mut [T]> for &mut DeviceBuffer<T, R> {
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
