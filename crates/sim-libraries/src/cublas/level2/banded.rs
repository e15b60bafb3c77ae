//! Operations on a banded matrix and vectors.

use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::super::call::Access::Read;
use super::super::dense::Transform;
use super::super::operand::{
    Diagonals, Input, Other, Output, ScalarInput, Shape, Storage, VectorArgument,
};
use super::super::{Call, Number, Result, size};
use super::{Factors, HalfMatrix, half_product, multiply, product, solve};

pub(in super::super) fn gbmv<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    m: i64,
    n: i64,
    lower: i64,
    upper: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    x: Input<T>,
    incx: i64,
    beta: ScalarInput<T>,
    y: Output<T>,
    incy: i64,
) -> Result {
    let transform = Transform::from_raw(operation)?;
    let shape = Shape::checked(m, n)?;
    let diagonals = Diagonals {
        lower: size(lower)?,
        upper: size(upper)?,
    };
    if shape.is_empty() {
        return Ok(());
    }
    let a = call.band(a, shape, diagonals, lda)?;
    product(
        call,
        move |memory| memory.band::<T>(a).transformed(transform),
        transform.stored(shape.rows, shape.columns),
        Factors { alpha, beta },
        VectorArgument {
            pointer: x,
            increment: incx,
        },
        VectorArgument {
            pointer: y,
            increment: incy,
        },
    )
}

pub(in super::super) fn hbmv<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    x: Input<T>,
    incx: i64,
    beta: ScalarInput<T>,
    y: Output<T>,
    incy: i64,
) -> Result {
    let matrix = HalfMatrix {
        fill,
        n,
        a,
        storage: Storage::Banded(k, lda),
        other: Other::Hermitian,
    };
    let factors = Factors { alpha, beta };
    let x = VectorArgument {
        pointer: x,
        increment: incx,
    };
    let y = VectorArgument {
        pointer: y,
        increment: incy,
    };
    half_product(call, matrix, factors, x, y)
}

pub(in super::super) fn tbmv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    k: i64,
    a: Input<T>,
    lda: i64,
    x: Output<T>,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Banded(k, lda))?;
    multiply(call, operation, n, a, x, incx)
}

pub(in super::super) fn tbsv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    k: i64,
    a: Input<T>,
    lda: i64,
    x: Output<T>,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Banded(k, lda))?;
    solve(call, operation, n, a, x, incx)
}
