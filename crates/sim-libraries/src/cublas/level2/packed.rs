//! Operations on a packed matrix and vectors.

use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::super::call::Access::Read;
use super::super::operand::{Input, Other, Output, ScalarInput, Storage, VectorArgument};
use super::super::{Call, Number, Result, size};
use super::{Factors, HalfMatrix, half_product, hermitian_update, multiply, solve, update_by_two};

pub(in super::super) fn hpmv<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    x: Input<T>,
    incx: i64,
    beta: ScalarInput<T>,
    y: Output<T>,
    incy: i64,
) -> Result {
    let factors = Factors { alpha, beta };
    let x = VectorArgument {
        pointer: x,
        increment: incx,
    };
    let y = VectorArgument {
        pointer: y,
        increment: incy,
    };
    half_product(call, packed(fill, n, a), factors, x, y)
}

pub(in super::super) fn hpr<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: ScalarInput<T::Absolute>,
    x: Input<T>,
    incx: i64,
    a: Output<T>,
) -> Result {
    hermitian_update(call, packed(fill, n, a), alpha, x, incx)
}

pub(in super::super) fn hpr2<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: ScalarInput<T>,
    x: Input<T>,
    incx: i64,
    y: Input<T>,
    incy: i64,
    a: Output<T>,
) -> Result {
    let x = VectorArgument {
        pointer: x,
        increment: incx,
    };
    let y = VectorArgument {
        pointer: y,
        increment: incy,
    };
    update_by_two(call, packed(fill, n, a), alpha, x, y)
}

pub(in super::super) fn tpmv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: Input<T>,
    x: Output<T>,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Packed)?;
    multiply(call, operation, n, a, x, incx)
}

pub(in super::super) fn tpsv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: Input<T>,
    x: Output<T>,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Packed)?;
    solve(call, operation, n, a, x, incx)
}

/// Returns a packed matrix, which is Hermitian, or symmetric if its elements are real.
fn packed<P>(fill: cublasFillMode_t, n: i64, a: P) -> HalfMatrix<P> {
    HalfMatrix {
        fill,
        n,
        a,
        storage: Storage::Packed,
        other: Other::Hermitian,
    }
}
