//! The functions of each routine: for the types of elements, with 32-bit and with 64-bit sizes.
//!
//! The header of cuBLAS determines their names and parameters, and which of them belong to a
//! routine. The arguments are passed on in the order of the header.

use std::ffi::{c_int, c_longlong};

use curium_sys::cublas::{
    Api, cuComplex, cuDoubleComplex, cublasDiagType_t, cublasFillMode_t, cublasHandle_t,
    cublasOperation_t, cublasSideMode_t, cublasStatus_t,
};
use num_complex::{Complex32, Complex64};

use super::operand::{Input, Output, PointerArgument, ScalarInput, ScalarOutput};
use super::{Call, code};
use crate::generated::routines::functions_of;

/// The simulated routines by their names. Where the BLAS has two names for real and for complex
/// elements, one function simulates both.
mod simulated {
    pub(super) use super::super::level1::*;
    pub(super) use super::super::level1::{dot as dotu, dot_conjugated as dotc};
    pub(super) use super::super::level2::*;
    pub(super) use super::super::level2::{
        ger as geru, ger_conjugated as gerc, hbmv as sbmv, hpmv as spmv, hpr as spr, hpr2 as spr2,
    };
    pub(super) use super::super::level3::*;
}

/// The conversion of an argument of a C function to that of a simulated routine.
trait FromC<C> {
    /// Converts the argument.
    ///
    /// # Safety
    ///
    /// A pointer is null or valid for the accesses that the routine's type of it stands for. The
    /// contract of a C function guarantees this of its arguments.
    unsafe fn from_c(argument: C) -> Self;
}

macro_rules! values {
    ($($from:ty => $to:ty;)*) => {
        $(impl FromC<$from> for $to {
            unsafe fn from_c(argument: $from) -> Self {
                argument.into()
            }
        })*
    };
}

values! {
    c_int => i64;
    c_longlong => i64;
    cublasDiagType_t => cublasDiagType_t;
    cublasFillMode_t => cublasFillMode_t;
    cublasOperation_t => cublasOperation_t;
    cublasSideMode_t => cublasSideMode_t;
}

/// A type of C in memory, with the type of the same layout that the routines compute with.
trait CElement {
    type Number;
}

macro_rules! elements {
    ($($ty:ty => $number:ty;)*) => {
        $(impl CElement for $ty {
            type Number = $number;
        })*
    };
}

elements! {
    f32 => f32;
    f64 => f64;
    cuComplex => Complex32;
    cuDoubleComplex => Complex64;
    c_int => c_int;
    c_longlong => c_longlong;
}

impl<T: CElement> CElement for *const T {
    type Number = *const T::Number;
}

impl<T: CElement> CElement for *mut T {
    type Number = *mut T::Number;
}

macro_rules! pointers {
    ($($argument:ident($($pointer:tt)+);)*) => {
        $(impl<T: CElement> FromC<$($pointer)+ T> for $argument<T::Number> {
            unsafe fn from_c(argument: $($pointer)+ T) -> Self {
                // SAFETY: the caller guarantees the pointer.
                unsafe { Self::from_raw(argument.cast()) }
            }
        })*
    };
}

pointers! {
    Input(*const);
    Output(*mut);
    ScalarInput(*const);
    ScalarOutput(*mut);
}

macro_rules! routines {
    ($($routine:ident)*) => {
        /// Adds the functions of the routines.
        pub(super) fn add_to(api: &mut Api) {
            $(functions_of!($routine, add api $routine);)*
        }
    };
}

/// Adds functions that call a simulated routine.
macro_rules! add {
    (
        $api:ident $routine:ident
        $($number:ident: fn $function:ident(handle: cublasHandle_t, $($parameter:ident: $ty:ty),*) -> cublasStatus_t;)*
    ) => {
        $({
            #[allow(non_snake_case, reason = "these are the header's names of parameters")]
            unsafe extern "C" fn function(
                handle: cublasHandle_t,
                $($parameter: $ty),*
            ) -> cublasStatus_t {
                code(Call::new(stringify!($function), handle).and_then(|call| {
                    // SAFETY: the contract of the C function guarantees its pointers.
                    simulated::$routine::<$number>(call, $(unsafe { FromC::from_c($parameter) }),*)
                }))
            }
            $api.$function = Some(function);
        })*
    };
}

routines! {
    amax amin asum axpy copy dot dotc dotu nrm2 rot rot_real rotg rotm rotmg scal scal_real swap
    gbmv gemv ger gerc geru hbmv hemv her her2 hpmv hpr hpr2 sbmv spmv spr spr2 symv syr syr2
    tbmv tbsv tpmv tpsv trmv trsv
    dgmm geam gemm gemm_batched gemm_strided_batched hemm her2k herk symm syr2k syrk
    trmm trsm trsm_batched
}
