//! Optional pointers as kernel parameters.

use curium_sys::CUdeviceptr;

use super::signature::NodeArgument;
use super::signature::{Argument, Parameter};
use crate::hazard::Operation;
use crate::{DevicePointer, Result};

/// Passes a pointer, which is null for `None`.
// SAFETY: a pointer parameter of a kernel is an address in device memory.
unsafe impl<T> Parameter for Option<&[T]> {
    type Raw = CUdeviceptr;
}

/// Passes a pointer, which is null for `None`.
// SAFETY: a pointer parameter of a kernel is an address in device memory.
unsafe impl<T> Parameter for Option<&mut [T]> {
    type Raw = CUdeviceptr;
}

macro_rules! optional {
    ($($slice:ty),*) => {$(
        // SAFETY: the inner argument, if any, is bound and recorded; otherwise the kernel declares
        // that the pointer may be null.
        unsafe impl<'a, T, A: Argument<$slice>> Argument<Option<$slice>> for Option<A> {
            unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
                match self {
                    // SAFETY: this function has the contract of the inner argument, which its
                    // caller upholds.
                    Some(argument) => unsafe { argument.bind(operation) },
                    None => Ok(DevicePointer::<T>::null().as_raw()),
                }
            }

            unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                if let Some(argument) = self {
                    // SAFETY: this function has the contract of the inner argument, which its
                    // caller upholds.
                    unsafe { argument.launched(operation) };
                }
            }
        }

        // SAFETY: the value is the address of the argument.
        unsafe impl<'a, T> NodeArgument<Option<$slice>> for DevicePointer<T> {
            fn value(&self) -> CUdeviceptr {
                self.as_raw()
            }
        }
    )*};
}

optional!(&'a [T], &'a mut [T]);
