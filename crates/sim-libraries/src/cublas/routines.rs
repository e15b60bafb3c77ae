//! The functions of each routine: for four types of elements, with 32-bit and with 64-bit sizes.

use std::ffi::{c_int, c_longlong};

use curium_blas::sys::{
    Api, cuComplex, cuDoubleComplex, cublasDiagType_t, cublasFillMode_t, cublasHandle_t,
    cublasOperation_t, cublasSideMode_t, cublasStatus_t,
};
use num_complex::{Complex32, Complex64};

use super::operand::PointerArgument;
use super::{Call, code};

/// The simulated routines by their names.
mod simulated {
    pub(super) use super::super::level1::*;
    pub(super) use super::super::level2::*;
    pub(super) use super::super::level3::*;
}

/// The type of a parameter: with sizes of `$size`, indices of `$index`, elements of `$element`, and real numbers of `$real`.
macro_rules! kind {
    (dim, $size:ty, $element:ty, $real:ty) => { $size };
    (stride, $size:ty, $element:ty, $real:ty) => { c_longlong };
    (input, $size:ty, $element:ty, $real:ty) => { *const $element };
    (output, $size:ty, $element:ty, $real:ty) => { *mut $element };
    (inputs, $size:ty, $element:ty, $real:ty) => { *const *const $element };
    (outputs, $size:ty, $element:ty, $real:ty) => { *const *mut $element };
    (real, $size:ty, $element:ty, $real:ty) => { *const $real };
    (real_output, $size:ty, $element:ty, $real:ty) => { *mut $real };
    (index, $size:ty, $element:ty, $real:ty) => { *mut $size };
    (operation, $size:ty, $element:ty, $real:ty) => { cublasOperation_t };
    (fill, $size:ty, $element:ty, $real:ty) => { cublasFillMode_t };
    (diagonal, $size:ty, $element:ty, $real:ty) => { cublasDiagType_t };
    (side, $size:ty, $element:ty, $real:ty) => { cublasSideMode_t };
}

/// The argument as the routine takes it.
macro_rules! take {
    (dim $value:ident) => {
        i64::from($value)
    };
    (stride $value:ident) => {
        $value
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
    (index $value:ident) => {
        // SAFETY: the contract of the C function guarantees its pointers.
        unsafe { PointerArgument::from_raw($value) }
    };
    ($pointer:ident $value:ident) => {
        // SAFETY: the contract of the C function guarantees its pointers.
        unsafe { PointerArgument::from_raw($value.cast()) }
    };
}

macro_rules! routines {
    (
        every { $($name:ident($($parameter:ident: $kind:ident),*)
            { $s:ident $s64:ident, $d:ident $d64:ident, $c:ident $c64:ident, $z:ident $z64:ident })* }
        real { $($real:ident($($real_parameter:ident: $real_kind:ident),*)
            { $real_s:ident $real_s64:ident, $real_d:ident $real_d64:ident })* }
    ) => {
        /// Adds the routines.
        pub(super) fn add_to(api: &mut Api) {
            $(
                function!(api.$s: $name($($parameter: $kind),*) of c_int, f32, f32, f32);
                function!(api.$s64: $name($($parameter: $kind),*) of i64, f32, f32, f32);
                function!(api.$d: $name($($parameter: $kind),*) of c_int, f64, f64, f64);
                function!(api.$d64: $name($($parameter: $kind),*) of i64, f64, f64, f64);
                function!(api.$c: $name($($parameter: $kind),*) of c_int, Complex32, cuComplex, f32);
                function!(api.$c64: $name($($parameter: $kind),*) of i64, Complex32, cuComplex, f32);
                function!(api.$z: $name($($parameter: $kind),*) of c_int, Complex64, cuDoubleComplex, f64);
                function!(api.$z64: $name($($parameter: $kind),*) of i64, Complex64, cuDoubleComplex, f64);
            )*
            $(
                function!(api.$real_s: $real($($real_parameter: $real_kind),*) of c_int, f32, f32, f32);
                function!(api.$real_s64: $real($($real_parameter: $real_kind),*) of i64, f32, f32, f32);
                function!(api.$real_d: $real($($real_parameter: $real_kind),*) of c_int, f64, f64, f64);
                function!(api.$real_d64: $real($($real_parameter: $real_kind),*) of i64, f64, f64, f64);
            )*
        }
    };
}

/// Adds a function: one that calls the simulated routine with the type of elements.
macro_rules! function {
    ($api:ident.$function:ident: $name:ident($($parameter:ident: $kind:ident),*)
        of $size:ty, $number:ty, $element:ty, $real:ty) => {{
        unsafe extern "C" fn function(
            handle: cublasHandle_t,
            $($parameter: kind!($kind, $size, $element, $real)),*
        ) -> cublasStatus_t {
            code(Call::new(stringify!($function), handle).and_then(|call| {
                simulated::$name::<$number>(call, $(take!($kind $parameter)),*)
            }))
        }
        $api.$function = Some(function);
    }};
}

curium_blas::for_each_routine!(routines);
