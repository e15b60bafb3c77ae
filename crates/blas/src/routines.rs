//! The routines of cuBLAS that exist for every type of element, each with its functions.

#[macro_use]
mod list;

use std::ffi::c_void;

use curium_sys::library_call as call;
use num_complex::{Complex32, Complex64};

use crate::error::Result;
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
    (dim $value:ident) => {
        $value as _
    };
    (stride $value:ident) => {
        $value as _
    };
    (operation $value:ident) => {
        $value
    };
    (fill $value:ident) => {
        $value
    };
    (diagonal $value:ident) => {
        $value
    };
    (side $value:ident) => {
        $value
    };
    ($pointer:ident $value:ident) => {
        $value.cast()
    };
}

/// Declares the routines, and implements them for each type of element. For sizes that need it, the function with 64-bit sizes is called.
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
                        // SAFETY: the contract of this method is that of the C function, and every size fits.
                        return unsafe { call!(api, $narrow(handle, $(pass!($kind $parameter)),*)) };
                    }
                    // SAFETY: the contract of this method is that of the C function.
                    unsafe { call!(api, $wide(handle, $(pass!($kind $parameter)),*)) }
                }
            )*
        }
    };
}

for_each_routine!(routines);
