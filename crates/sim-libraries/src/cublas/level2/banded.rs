//! Operations on a banded matrix and vectors.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.

use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::super::call::Access::Read;
use super::super::dense::Transform;
use super::super::memory::Memory;
use super::super::operand::{Other, Storage};
use super::super::{Call, Number, Result, size};
use super::{Half, multiply, product, product_with_half, solve};

pub(in super::super) unsafe fn gbmv<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    m: i64,
    n: i64,
    lower: i64,
    upper: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let (transform, sizes) = (Transform::of(operation)?, (size(m)?, size(n)?));
    let diagonals = (size(lower)?, size(upper)?);
    if sizes.0 == 0 || sizes.1 == 0 {
        return Ok(());
    }
    let a = call.band(a, sizes, diagonals, lda)?;
    let matrix = move |memory: &Memory<'_>| memory.band::<T>(a).transformed(transform);
    // SAFETY: the caller upholds the contract.
    unsafe {
        product(
            call,
            matrix,
            transform.stored(sizes.0, sizes.1),
            (alpha, beta),
            (x, incx),
            (y, incy),
        )
    }
}

pub(in super::super) unsafe fn hbmv<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let half = Half {
        fill,
        n,
        a,
        storage: Storage::Banded(k, lda),
        other: Other::Hermitian,
    };
    // SAFETY: the caller upholds the contract.
    unsafe { product_with_half(call, half, (alpha, beta), (x, incx), (y, incy)) }
}

pub(in super::super) unsafe fn tbmv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    k: i64,
    a: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Banded(k, lda))?;
    multiply(call, operation, n, a, (x, incx))
}

pub(in super::super) unsafe fn tbsv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    k: i64,
    a: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Banded(k, lda))?;
    solve(call, operation, n, a, (x, incx))
}
