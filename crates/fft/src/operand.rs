//! The memory of a transform.

use curium_driver::Argument;
use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_memory::DeviceSlice;

/// Device memory that a transform accesses.
pub(crate) trait Operand {
    /// Makes the operation's stream wait for the accesses that conflict with the transform, and
    /// returns the address.
    ///
    /// # Safety
    ///
    /// If the transform is enqueued, `launched` is called before the memory is used for anything
    /// else.
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<CUdeviceptr>;

    /// Records that the transform was enqueued on the operation's stream.
    ///
    /// # Safety
    ///
    /// `bind` succeeded with the same operation.
    unsafe fn launched(&mut self, operation: &mut Operation<'_>);
}

macro_rules! operand {
    ($view:ty, $argument:ty) => {
        impl<T> Operand for $view {
            unsafe fn bind(
                &mut self,
                operation: &mut Operation<'_>,
            ) -> curium_driver::Result<CUdeviceptr> {
                // SAFETY: the caller calls `launched` if the transform is enqueued.
                unsafe { Argument::<$argument>::bind(self, operation) }
            }

            unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                // SAFETY: the caller's `bind` succeeded with this operation.
                unsafe { Argument::<$argument>::launched(self, operation) };
            }
        }
    };
}

operand!(&DeviceSlice<T>, &[T]);
operand!(&mut DeviceSlice<T>, &mut [T]);
