//! Kernel signatures and arguments.

use std::ffi::c_void;

use curium_sys::CUdeviceptr;

use crate::hazard::Operation;
use crate::{DevicePointer, Kernel, Result};

/// A value that is passed to a kernel by value: a scalar, an array of scalars, or a `repr(C)`
/// struct of them.
///
/// ```
/// use curium_driver::ByValue;
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Viewport {
///     width: u32,
///     height: u32,
/// }
///
/// // SAFETY: `Viewport` is `repr(C)`, and the kernels declare the same struct.
/// unsafe impl ByValue for Viewport {}
/// ```
///
/// # Safety
///
/// - The type has the size, alignment and layout of the kernel's parameter type: `repr(C)` or
///   `repr(transparent)`.
/// - Every value may be passed to any kernel that declares the type: it contains no reference to
///   host memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel by value",
    label = "not a `ByValue` type",
    note = "numbers, `bool`, `DevicePointer<T>` and arrays of them are `ByValue`; `half::f16` and `half::bf16` are with the feature `half`",
    note = "for a struct of such fields, add `#[derive(Clone, Copy, ByValue)]` and `#[repr(C)]`",
    note = "memory is passed as a buffer or a view: `&buffer` for a parameter `&[T]`, `&mut buffer` for `&mut [T]`"
)]
pub unsafe trait ByValue: Copy {
    /// The size of all fields in bytes, for derived implementations.
    #[doc(hidden)]
    const SIZE_OF_FIELDS: usize = size_of::<Self>();

    /// The size of the type in bytes. Evaluating this constant fails to compile if the type has
    /// padding.
    // The check is here and not in derived code, where the caller's crate can give names such as
    // `::core` another meaning.
    #[doc(hidden)]
    const SIZE: usize = {
        assert!(
            size_of::<Self>() == Self::SIZE_OF_FIELDS,
            "the type has padding, whose bytes are uninitialized: declare fields for it"
        );
        size_of::<Self>()
    };
}

/// A parameter in a kernel's [`Signature`]: a [`ByValue`] type, `&[T]` for a pointer that the
/// kernel reads through, or `&mut [T]` for a pointer that it writes through. In an `Option`, the
/// pointer may be null.
///
/// # Safety
///
/// [`Parameter::Raw`] has the size, alignment and layout of the kernel's parameter type, as for
/// [`ByValue`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel parameter",
    label = "not a parameter type",
    note = "parameters are `ByValue` types, `&[T]`, `&mut [T]`, `Option<&[T]>` and `Option<&mut [T]>`"
)]
pub unsafe trait Parameter {
    /// The type of the value that the kernel receives.
    type Raw: Copy;
}

/// The parameters of a kernel, in order: a tuple of up to 24 [`Parameter`]s. It cannot be
/// implemented for other types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel signature",
    label = "not a tuple of parameters",
    note = "a signature is a tuple of up to 24 parameters, such as `(f32, &[f32], &mut [f32])`; that of one parameter is `(u32,)`",
    note = "for a signature that is known at run time only, look up a `Kernel<Untyped>` and launch it with an `ArgumentList`"
)]
pub trait Signature: sealed::Signature {
    /// The size of each parameter in bytes.
    const SIZES: &'static [usize];

    /// Returns the Rust type of each parameter, for errors.
    fn type_names() -> Vec<&'static str>;
}

/// A value that can be passed for a parameter.
///
/// # Safety
///
/// [`Argument::bind`] returns a value that the kernel may use as the parameter declares while it
/// runs on the operation's stream. The memory of a pointer for `&[T]` is not written in the
/// meantime, and the memory of a pointer for `&mut [T]` is not accessed by other work.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for the kernel parameter `{P}`",
    label = "does not match the parameter `{P}`",
    note = "for `&[T]`, pass `&buffer` or a view; for `&mut [T]`, pass `&mut buffer` or a mutable view; the element type must be `T`",
    note = "for `Option<&[T]>` and `Option<&mut [T]>`, pass `Some` of that, or `None::<&DeviceBuffer<T>>`",
    note = "for a number, pass exactly that type: `3_u32` for `u32`, `1.0_f32` for `f32`"
)]
pub unsafe trait Argument<P: Parameter> {
    /// Makes the stream of the operation wait for conflicting accesses, and returns the value to
    /// pass.
    ///
    /// # Safety
    ///
    /// If a kernel is enqueued with the value, [`Argument::launched`] is called before the argument
    /// is used in any other way.
    ///
    /// # Errors
    ///
    /// An error of the wait. The kernel must then not be launched.
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<P::Raw>;

    /// Records that the kernel was enqueued on the stream of the operation.
    ///
    /// # Safety
    ///
    /// [`Argument::bind`] succeeded with the same operation, and the argument was not used since.
    unsafe fn launched(&mut self, operation: &mut Operation<'_>);
}

/// The arguments for all parameters of a signature: a tuple of [`Argument`]s, or an
/// [`ArgumentList`](crate::ArgumentList) for [`Untyped`](crate::Untyped).
///
/// # Safety
///
/// The addresses that `launch_with` passes to `launch` point to one value of type
/// [`Parameter::Raw`] for each parameter of `S`, in order, each bound to the stream.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel with the parameters `{S}`",
    label = "does not match the parameters `{S}`",
    note = "pass a tuple with one argument for each parameter; that of one argument is `(x,)`",
    note = "a `Kernel<Untyped>` takes an `ArgumentList`"
)]
pub unsafe trait Arguments<S>: Sized {
    /// Compares the arguments with the parameters of the loaded kernel, unless `S` was compared at
    /// look-up.
    #[doc(hidden)]
    fn check(&self, _kernel: &Kernel<S>) -> Result<()> {
        Ok(())
    }

    /// Binds the arguments, runs `launch` with the address of each value, and records the launch.
    #[doc(hidden)]
    fn launch_with(
        self,
        operation: &mut Operation<'_>,
        launch: impl FnOnce(&Operation<'_>, *mut *mut c_void) -> Result<()>,
    ) -> Result<()>;
}

/// A value that a graph node can pass for a parameter: a [`ByValue`] value, or a [`DevicePointer`]
/// for a pointer.
///
/// # Safety
///
/// [`NodeArgument::value`] returns the value that it is made from, and only that.
pub unsafe trait NodeArgument<P: Parameter> {
    /// Returns the value that the kernel receives.
    fn value(&self) -> P::Raw;
}

/// The values that a graph node can pass for all parameters of a signature: a tuple of
/// [`NodeArgument`]s.
///
/// # Safety
///
/// The addresses that `values_with` passes to `use_values` point to one value of type
/// [`Parameter::Raw`] for each parameter of `S`, in order.
pub unsafe trait NodeArguments<S: Signature> {
    /// Calls `use_values` with the address of each value.
    #[doc(hidden)]
    fn values_with<T>(self, use_values: impl FnOnce(*mut *mut c_void) -> T) -> T;
}

mod sealed {
    /// A tuple of parameters. Other crates cannot name it, so they cannot implement it.
    pub trait Signature {}
}

// SAFETY: the type has the layout of the kernel's parameter type.
unsafe impl<T: ByValue> Parameter for T {
    type Raw = T;
}

// SAFETY: a pointer parameter of a kernel is an address in device memory.
unsafe impl<T> Parameter for &[T] {
    type Raw = CUdeviceptr;
}

// SAFETY: a pointer parameter of a kernel is an address in device memory.
unsafe impl<T> Parameter for &mut [T] {
    type Raw = CUdeviceptr;
}

// SAFETY: the value is passed unchanged, which `ByValue` allows.
unsafe impl<T: ByValue> Argument<T> for T {
    unsafe fn bind(&mut self, _operation: &mut Operation<'_>) -> Result<T> {
        Ok(*self)
    }

    unsafe fn launched(&mut self, _operation: &mut Operation<'_>) {}
}

// SAFETY: the value is that of the argument.
unsafe impl<T: ByValue> NodeArgument<T> for T {
    fn value(&self) -> T {
        *self
    }
}

// SAFETY: the value is the address of the argument.
unsafe impl<T> NodeArgument<&[T]> for DevicePointer<T> {
    fn value(&self) -> CUdeviceptr {
        self.as_raw()
    }
}

// SAFETY: the value is the address of the argument.
unsafe impl<T> NodeArgument<&mut [T]> for DevicePointer<T> {
    fn value(&self) -> CUdeviceptr {
        self.as_raw()
    }
}

macro_rules! by_value {
    ($($ty:ty)*) => {
        // SAFETY: these types are the same in C, and every value of them may be passed.
        $(unsafe impl ByValue for $ty {})*
    };
}

// A `bool` is one byte in C++ too, with the value 0 or 1.
by_value!(bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

// SAFETY: an address is a plain number; the contract of the launch covers what the kernel does with
// it.
unsafe impl<T> ByValue for DevicePointer<T> {}

// SAFETY: an array has the layout of a C array, and its elements may be passed.
unsafe impl<T: ByValue, const N: usize> ByValue for [T; N] {}

macro_rules! tuples {
    ($($index:tt $parameter:ident $argument:ident),* $(,)?) => {
        impl<$($parameter: Parameter),*> sealed::Signature for ($($parameter,)*) {}

        impl<$($parameter: Parameter),*> Signature for ($($parameter,)*) {
            const SIZES: &'static [usize] = &[$(size_of::<$parameter::Raw>()),*];

            #[cold]
            fn type_names() -> Vec<&'static str> {
                vec![$(std::any::type_name::<$parameter>()),*]
            }
        }

        // SAFETY: the addresses point to the values that the arguments were bound to, in order.
        unsafe impl<$($parameter: Parameter, $argument: Argument<$parameter>),*> Arguments<($($parameter,)*)> for ($($argument,)*) {
            #[allow(unused_mut, unused_variables, clippy::unused_unit, reason = "the empty tuple has nothing to bind")]
            fn launch_with(
                mut self,
                operation: &mut Operation<'_>,
                launch: impl FnOnce(&Operation<'_>, *mut *mut c_void) -> Result<()>,
            ) -> Result<()> {
                // SAFETY: `launched` is called for each argument below, and none is used in
                // between.
                let mut values = ($(unsafe { self.$index.bind(operation) }?,)*);
                let addresses: &mut [*mut c_void] = &mut [$((&raw mut values.$index).cast()),*];
                launch(operation, addresses.as_mut_ptr())?;
                // SAFETY: each argument was bound under this operation above, and not used since.
                $(unsafe { self.$index.launched(operation) };)*
                Ok(())
            }
        }

        // SAFETY: the addresses point to the arguments' values, in order.
        unsafe impl<$($parameter: Parameter, $argument: NodeArgument<$parameter>),*> NodeArguments<($($parameter,)*)> for ($($argument,)*) {
            #[allow(unused_mut, unused_variables, clippy::unused_unit, reason = "the empty tuple has no values")]
            fn values_with<T>(self, use_values: impl FnOnce(*mut *mut c_void) -> T) -> T {
                let mut values = ($(self.$index.value(),)*);
                let addresses: &mut [*mut c_void] = &mut [$((&raw mut values.$index).cast()),*];
                use_values(addresses.as_mut_ptr())
            }
        }
    };
}

/// Implements the traits for every prefix of a list of parameters.
macro_rules! prefixes {
    ([$($before:tt)*]) => {
        tuples!($($before)*);
    };
    ([$($before:tt)*] $index:tt $parameter:ident $argument:ident, $($after:tt)*) => {
        tuples!($($before)*);
        prefixes!([$($before)* $index $parameter $argument,] $($after)*);
    };
}

prefixes!([] 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6, 7 P7 A7, 8 P8 A8, 9 P9 A9, 10 P10 A10, 11 P11 A11,
    12 P12 A12, 13 P13 A13, 14 P14 A14, 15 P15 A15, 16 P16 A16, 17 P17 A17, 18 P18 A18, 19 P19 A19, 20 P20 A20, 21 P21 A21,
    22 P22 A22, 23 P23 A23,);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_lists_parameter_sizes_in_order() {
        type Long = (
            u8,
            u16,
            f64,
            &'static [u8],
            &'static mut [u8],
            [u32; 3],
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
        );
        assert_eq!(<() as Signature>::SIZES, [0_usize; 0]);
        assert_eq!(
            <Long as Signature>::SIZES,
            [1, 2, 8, 8, 8, 12, 1, 1, 1, 1, 1, 1]
        );
        type Longest = (
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u8,
            u64,
        );
        assert_eq!(<Longest as Signature>::SIZES.len(), 24);
        assert_eq!(<Longest as Signature>::SIZES[23], 8);
    }
}
