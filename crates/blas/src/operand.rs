//! The operands of an operation: device memory whose accesses are tracked, and scalars.

use std::ffi::c_void;

use curium_driver::Argument;
use curium_driver::hazard::AccessGuard;
use curium_memory::{AsDeviceSlice, DeviceSlice};

use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::sys::cublasPointerMode_t;

/// Device memory that an operation accesses.
pub trait Operand {
    /// Orders the guard's stream after the accesses that the operation must wait for.
    ///
    /// # Safety
    ///
    /// If the operation is enqueued, `launched` is called before the memory is used for anything else.
    ///
    /// # Errors
    ///
    /// The error of a wait. The operation must not be enqueued then.
    unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> curium_driver::Result<()>;

    /// Records that the operation was enqueued on the guard's stream.
    ///
    /// # Safety
    ///
    /// `bind` succeeded with the same guard.
    unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>);
}

/// A factor of an operation, in host or device memory according to its type.
pub trait Factor: Operand {
    #[doc(hidden)]
    const MODE: cublasPointerMode_t;

    #[doc(hidden)]
    fn pointer(&self) -> *const c_void;
}

/// A factor of type `T`: a number of the host, or a [`DeviceScalar`].
pub trait ScalarArgument<T>: Factor {}

/// A number in device memory, which an operation reads when it runs.
pub struct DeviceScalar<'a, T>(DeviceSlice<'a, T>);

impl<'a, T> DeviceScalar<'a, T> {
    /// Creates a view of the first element of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if there is no element.
    pub fn new(memory: &'a impl AsDeviceSlice<Element = T>) -> Result<Self> {
        let slice = memory.as_device_slice();
        if slice.is_empty() {
            return Err(ShapeError::refused("DeviceScalar::new", "the memory is empty"));
        }
        Ok(Self(slice))
    }
}

impl<T> Clone for DeviceScalar<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceScalar<'_, T> {}

impl<T> std::fmt::Debug for DeviceScalar<'_, T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DeviceScalar({:#x})", self.0.as_pointer().as_raw())
    }
}

impl<T: Element> Operand for T {
    unsafe fn bind(&mut self, _guard: &mut AccessGuard<'_>) -> curium_driver::Result<()> {
        Ok(())
    }

    unsafe fn launched(&mut self, _guard: &mut AccessGuard<'_>) {}
}

impl<T: Element> ScalarArgument<T> for T {}

impl<T: Element> Factor for T {
    const MODE: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;

    fn pointer(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
}

/// A factor or a result at the alignment that C's types of complex numbers have, which exceeds that of Rust's.
#[repr(align(16))]
pub(crate) struct Aligned<T>(pub(crate) T);

impl<T: Operand> Operand for Aligned<T> {
    unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> curium_driver::Result<()> {
        // SAFETY: the caller upholds the same conditions.
        unsafe { self.0.bind(guard) }
    }

    unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>) {
        // SAFETY: the caller upholds the same conditions.
        unsafe { self.0.launched(guard) };
    }
}

impl<T: Factor> Factor for Aligned<T> {
    const MODE: cublasPointerMode_t = T::MODE;

    fn pointer(&self) -> *const c_void {
        self.0.pointer()
    }
}

/// The factors of products of `i8`.
impl Operand for i32 {
    unsafe fn bind(&mut self, _guard: &mut AccessGuard<'_>) -> curium_driver::Result<()> {
        Ok(())
    }

    unsafe fn launched(&mut self, _guard: &mut AccessGuard<'_>) {}
}

impl ScalarArgument<Self> for i32 {}

impl Factor for i32 {
    const MODE: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;

    fn pointer(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
}

impl<T> Operand for DeviceScalar<'_, T> {
    unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> curium_driver::Result<()> {
        // SAFETY: the caller calls `launched` after the operation was enqueued.
        unsafe { Argument::<&[T]>::bind(&mut self.0, guard) }.map(|_| ())
    }

    unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>) {
        // SAFETY: `bind` succeeded with this guard.
        unsafe { Argument::<&[T]>::launched(&mut self.0, guard) };
    }
}

impl<T> ScalarArgument<T> for DeviceScalar<'_, T> {}

impl<T> Factor for DeviceScalar<'_, T> {
    const MODE: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE;

    fn pointer(&self) -> *const c_void {
        std::ptr::without_provenance(self.0.as_pointer().as_raw() as usize)
    }
}
