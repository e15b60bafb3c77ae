//! Operations on a packed matrix and vectors.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.

use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::super::call::Access::Read;
use super::super::operand::{Other, Storage};
use super::super::{Call, Number, Result, size};
use super::{Half, hermitian_update, multiply, product_with_half, solve, update_by_two};

pub(in super::super) unsafe fn hpmv<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    a: *const T,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let half = packed(fill, n, a);
    // SAFETY: the caller upholds the contract.
    unsafe { product_with_half(call, half, (alpha, beta), (x, incx), (y, incy)) }
}

pub(in super::super) unsafe fn hpr<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: *const T::Absolute,
    x: *const T,
    incx: i64,
    a: *mut T,
) -> Result {
    // SAFETY: the caller upholds the contract.
    unsafe { hermitian_update(call, packed(fill, n, a), alpha, (x, incx)) }
}

pub(in super::super) unsafe fn hpr2<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    a: *mut T,
) -> Result {
    // SAFETY: the caller upholds the contract.
    unsafe { update_by_two(call, packed(fill, n, a), alpha, (x, incx), (y, incy)) }
}

pub(in super::super) unsafe fn tpmv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Packed)?;
    multiply(call, operation, n, a, (x, incx))
}

pub(in super::super) unsafe fn tpsv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Packed)?;
    solve(call, operation, n, a, (x, incx))
}

/// Returns a packed matrix, which is Hermitian, or symmetric if its elements are real.
fn packed<T>(fill: cublasFillMode_t, n: i64, a: *const T) -> Half<T> {
    Half {
        fill,
        n,
        a,
        storage: Storage::Packed,
        other: Other::Hermitian,
    }
}
