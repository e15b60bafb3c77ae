//! The routines of cuBLAS that exist for every type of element, each with its functions.

#[macro_use]
mod list;

use std::ffi::c_void;

use curium_sys::library_call as call;
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result, ShapeError};
use crate::sys::{
    Api, cublasDiagType_t, cublasFillMode_t, cublasHandle_t, cublasOperation_t, cublasSideMode_t,
};

/// The type of a parameter of its kind.
macro_rules! kind {
    (dim) => { usize };
    (stride) => { usize };
    (input) => { *const c_void };
    (output) => { *mut c_void };
    (inputs) => { *const *const c_void };
    (outputs) => { *const *mut c_void };
    (real) => { *const c_void };
    (real_output) => { *mut c_void };
    (index) => { *mut c_void };
    (operation) => { cublasOperation_t };
    (fill) => { cublasFillMode_t };
    (diagonal) => { cublasDiagType_t };
    (side) => { cublasSideMode_t };
}

/// `true` if the functions with 32-bit sizes can take the argument.
macro_rules! is_narrow {
    (dim $value:ident) => {
        i32::try_from($value).is_ok()
    };
    ($kind:ident $value:ident) => {
        true
    };
}

/// The argument as the function takes it.
macro_rules! pass {
    ($name:ident dim $value:ident) => {
        convert_size(stringify!($name), $value)?
    };
    ($name:ident stride $value:ident) => {
        convert_size(stringify!($name), $value)?
    };
    ($name:ident operation $value:ident) => {
        $value
    };
    ($name:ident fill $value:ident) => {
        $value
    };
    ($name:ident diagonal $value:ident) => {
        $value
    };
    ($name:ident side $value:ident) => {
        $value
    };
    ($name:ident $pointer:ident $value:ident) => {
        $value.cast()
    };
}

/// Declares the routines, and implements them for each type of element. For sizes that need it, the
/// function with 64-bit sizes is called.
macro_rules! routines {
    (
        every { $($name:ident($($parameter:ident: $kind:ident),*)
            { $s:ident $s64:ident, $d:ident $d64:ident, $c:ident $c64:ident, $z:ident $z64:ident })* }
        real { $($real:ident($($real_parameter:ident: $real_kind:ident),*)
            { $real_s:ident $real_s64:ident, $real_d:ident $real_d64:ident })* }
    ) => {
        declare!(Routines: $($name($($parameter: $kind),*);)*);
        declare!(RealRoutines: $($real($($real_parameter: $real_kind),*);)*);
        implement!(Routines for f32: $($name($($parameter: $kind),*) $s $s64;)*);
        implement!(Routines for f64: $($name($($parameter: $kind),*) $d $d64;)*);
        implement!(Routines for Complex32: $($name($($parameter: $kind),*) $c $c64;)*);
        implement!(Routines for Complex64: $($name($($parameter: $kind),*) $z $z64;)*);
        implement!(RealRoutines for f32: $($real($($real_parameter: $real_kind),*) $real_s $real_s64;)*);
        implement!(RealRoutines for f64: $($real($($real_parameter: $real_kind),*) $real_d $real_d64;)*);
    };
}

macro_rules! declare {
    ($routines:ident: $($name:ident($($parameter:ident: $kind:ident),*);)*) => {
        /// The routines for one type of element, with the parameters of cuBLAS.
        #[expect(clippy::too_many_arguments, reason = "these are C's signatures")]
        pub trait $routines: crate::element::sealed::Sealed {
            $(
                /// Calls the function for the element type.
                ///
                /// # Safety
                ///
                /// The contract of the C function, whose handle's pointer mode applies to scalars.
                unsafe fn $name(api: &Api, handle: cublasHandle_t, $($parameter: kind!($kind)),*) -> Result<()>;
            )*
        }
    };
}

macro_rules! implement {
    ($routines:ident for $ty:ty: $($name:ident($($parameter:ident: $kind:ident),*) $narrow:ident $wide:ident;)*) => {
        impl $routines for $ty {
            $(
                #[inline]
                unsafe fn $name(api: &Api, handle: cublasHandle_t, $($parameter: kind!($kind)),*) -> Result<()> {
                    if true $(&& is_narrow!($kind $parameter))* {
                        // SAFETY: the contract of this method is that of the C function, and every
                        // size fits.
                        return unsafe { call!(api, $narrow(handle, $(pass!($name $kind $parameter)),*)) };
                    }
                    // SAFETY: the contract of this method is that of the C function.
                    unsafe { call!(api, $wide(handle, $(pass!($name $kind $parameter)),*)) }
                }
            )*
        }
    };
}

for_each_routine!(routines);

/// Converts a size to the type of the parameter. A routine may have functions with 32-bit sizes
/// only.
#[inline]
fn convert_size<T: TryFrom<usize>>(routine: &'static str, size: usize) -> Result<T> {
    T::try_from(size).map_err(|_| size_is_too_large(routine, size))
}

#[cold]
fn size_is_too_large(routine: &'static str, size: usize) -> Error {
    ShapeError::refused(routine, format!("a size is too large for cuBLAS ({size})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_beyond_the_parameter_is_refused() -> Result<()> {
        let size = 1 << 32;
        assert_eq!(convert_size::<i64>("gemv", size)?, 1 << 32);
        let error = convert_size::<i32>("tpttr", size).expect_err("2^32 fitted into 32 bits");
        assert_eq!(
            error.to_string(),
            "tpttr: a size is too large for cuBLAS (4294967296)"
        );
        Ok(())
    }
}
