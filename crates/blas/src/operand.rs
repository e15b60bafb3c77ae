//! The operands of an operation: device memory whose accesses are tracked, and scalars.

use std::ffi::c_void;

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_memory::{DeviceSlice, DeviceView};

use crate::element::Element;
use crate::error::{Error, Result, ShapeError};
use crate::sys::cublasPointerMode_t;

use self::sealed::Operand;

/// The traits that `unsafe` code trusts. Other crates cannot name them, so they cannot implement
/// them.
pub(crate) mod sealed {
    use std::ffi::c_void;

    use curium_driver::hazard::Operation;

    use crate::error::Result;
    use crate::sys::cublasPointerMode_t;

    /// Device memory that an operation accesses.
    pub trait Operand {
        /// Makes the operation's stream wait for the accesses that conflict with the operation.
        ///
        /// # Safety
        ///
        /// If the operation is enqueued, `launched` is called before the memory is used for
        /// anything else.
        ///
        /// # Errors
        ///
        /// The error of a wait. The operation must not be enqueued then.
        unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<()>;

        /// Records that the operation was enqueued on the operation's stream.
        ///
        /// # Safety
        ///
        /// `bind` succeeded with the same operation.
        unsafe fn launched(&mut self, operation: &mut Operation<'_>);

        /// Checks that the memory has the alignment of C's type of elements.
        fn check_alignment(&self, _operation: &'static str) -> Result<()> {
            Ok(())
        }
    }

    /// A scalar operand, in host or device memory according to its type.
    pub trait Factor: Operand {
        /// The pointer mode in which cuBLAS reads the scalar.
        const MODE: cublasPointerMode_t;

        /// Returns the address of the scalar, in the memory that [`Self::MODE`] requires.
        fn pointer(&self) -> *const c_void;
    }
}

/// The operands of one operation: a tuple of exclusive borrows.
pub(crate) trait OperandList {
    /// Checks the alignment of every operand.
    fn check_alignments(&self, operation: &'static str) -> Result<()>;

    /// Binds every operand.
    ///
    /// # Safety
    ///
    /// As for [`Operand::bind`].
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<()>;

    /// Records the accesses of every operand.
    ///
    /// # Safety
    ///
    /// As for [`Operand::launched`].
    unsafe fn launched(&mut self, operation: &mut Operation<'_>);
}

macro_rules! operand_list {
    ($($operand:ident $index:tt)*) => {
        impl<$($operand: Operand),*> OperandList for ($(&mut $operand,)*) {
            #[inline]
            fn check_alignments(&self, operation: &'static str) -> Result<()> {
                $(self.$index.check_alignment(operation)?;)*
                Ok(())
            }

            #[inline]
            unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<()> {
                $(
                    // SAFETY: the caller calls `launched` if the operation is enqueued.
                    unsafe { self.$index.bind(operation) }?;
                )*
                Ok(())
            }

            #[inline]
            unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                $(
                    // SAFETY: the caller's `bind` succeeded with this operation.
                    unsafe { self.$index.launched(operation) };
                )*
            }
        }
    };
}

operand_list!(A 0);
operand_list!(A 0 B 1);
operand_list!(A 0 B 1 C 2);
operand_list!(A 0 B 1 C 2 D 3);
operand_list!(A 0 B 1 C 2 D 3 E 4);
operand_list!(A 0 B 1 C 2 D 3 E 4 F 5);

/// Implements [`Operand`] for a view with a field `slice`.
macro_rules! operand {
    ($view:ident, $memory:ty) => {
        impl<T> $view<'_, T> {
            /// Returns the device address of the first element.
            #[inline]
            pub(crate) fn address(&self) -> curium_driver::sys::CUdeviceptr {
                self.slice.as_pointer().as_raw()
            }

            /// Returns the device address of the first element as C's pointer.
            #[inline]
            pub(crate) fn as_ptr(&self) -> *mut std::ffi::c_void {
                $crate::device_pointer(self.address())
            }
        }

        impl<T> $crate::operand::sealed::Operand for $view<'_, T> {
            #[inline]
            unsafe fn bind(
                &mut self,
                operation: &mut curium_driver::hazard::Operation<'_>,
            ) -> curium_driver::Result<()> {
                // SAFETY: the caller calls `launched` after the operation was enqueued.
                unsafe { curium_driver::Argument::<$memory>::bind(&mut self.slice, operation) }
                    .map(|_| ())
            }

            #[inline]
            unsafe fn launched(&mut self, operation: &mut curium_driver::hazard::Operation<'_>) {
                // SAFETY: `bind` succeeded with this operation.
                unsafe { curium_driver::Argument::<$memory>::launched(&mut self.slice, operation) };
            }

            #[inline]
            fn check_alignment(&self, operation: &'static str) -> $crate::error::Result<()> {
                $crate::operand::check_address::<T>(operation, self.address())
            }
        }
    };
}
pub(crate) use operand;

/// Checks that memory has the alignment of C's type of an element, which is the element's size. The
/// alignment of Rust's complex numbers is half of it, so memory of another type that is cast to
/// them may be misaligned.
#[inline]
pub(crate) fn check_address<T>(operation: &'static str, address: CUdeviceptr) -> Result<()> {
    if (address as usize).is_multiple_of(size_of::<T>().max(1)) {
        Ok(())
    } else {
        Err(misaligned::<T>(operation, address))
    }
}

#[cold]
fn misaligned<T>(operation: &'static str, address: CUdeviceptr) -> Error {
    let alignment = size_of::<T>();
    let problem = format!(
        "misaligned operand ({address:#x} is not a multiple of {alignment}, the alignment of {} in C)",
        std::any::type_name::<T>()
    );
    ShapeError::refused(operation, problem)
}

/// The operands of a batch.
pub(crate) struct OperandSlice<'a, O>(pub(crate) &'a mut [O]);

impl<O: Operand> Operand for OperandSlice<'_, O> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<()> {
        // SAFETY: the caller calls `launched` if the operation is enqueued.
        self.0
            .iter_mut()
            .try_for_each(|operand| unsafe { operand.bind(operation) })
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller's `bind` succeeded with this operation.
        self.0
            .iter_mut()
            .for_each(|operand| unsafe { operand.launched(operation) });
    }

    fn check_alignment(&self, operation: &'static str) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|operand| operand.check_alignment(operation))
    }
}

/// A scalar operand of type `T`: a host value, or a [`DeviceScalar`]. It cannot be implemented for
/// other types.
pub trait ScalarArgument<T>: sealed::Factor {}

/// A scalar in device memory, which an operation reads when it runs.
pub struct DeviceScalar<'a, T> {
    slice: DeviceView<'a, T>,
}

impl<'a, T> DeviceScalar<'a, T> {
    /// Creates a view of the first element of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if there is no element.
    pub fn new(memory: &'a DeviceSlice<T>) -> Result<Self> {
        let slice = memory.view();
        if slice.is_empty() {
            return Err(ShapeError::refused(
                "DeviceScalar::new",
                "the memory is empty",
            ));
        }
        Ok(Self { slice })
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
        write!(formatter, "DeviceScalar({:#x})", self.address())
    }
}

impl<T: Element> Operand for T {
    #[inline]
    unsafe fn bind(&mut self, _operation: &mut Operation<'_>) -> curium_driver::Result<()> {
        Ok(())
    }

    #[inline]
    unsafe fn launched(&mut self, _operation: &mut Operation<'_>) {}
}

impl<T: Element> ScalarArgument<T> for T {}

impl<T: Element> sealed::Factor for T {
    const MODE: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;

    fn pointer(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
}

/// A factor or a result at the alignment that C's types of complex numbers have, which exceeds that
/// of Rust's.
#[repr(align(16))]
pub(crate) struct Aligned<T>(pub(crate) T);

impl<T: Operand> Operand for Aligned<T> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<()> {
        // SAFETY: the caller calls `launched` if the operation is enqueued.
        unsafe { self.0.bind(operation) }
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller's `bind` succeeded with this operation.
        unsafe { self.0.launched(operation) };
    }

    fn check_alignment(&self, operation: &'static str) -> Result<()> {
        self.0.check_alignment(operation)
    }
}

impl<T: sealed::Factor> sealed::Factor for Aligned<T> {
    const MODE: cublasPointerMode_t = T::MODE;

    fn pointer(&self) -> *const c_void {
        self.0.pointer()
    }
}

/// The factors of products of `i8`.
impl Operand for i32 {
    #[inline]
    unsafe fn bind(&mut self, _operation: &mut Operation<'_>) -> curium_driver::Result<()> {
        Ok(())
    }

    #[inline]
    unsafe fn launched(&mut self, _operation: &mut Operation<'_>) {}
}

impl ScalarArgument<Self> for i32 {}

impl sealed::Factor for i32 {
    const MODE: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;

    fn pointer(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
}

operand!(DeviceScalar, &[T]);

impl<T> ScalarArgument<T> for DeviceScalar<'_, T> {}

impl<T> sealed::Factor for DeviceScalar<'_, T> {
    const MODE: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE;

    fn pointer(&self) -> *const c_void {
        self.as_ptr()
    }
}
