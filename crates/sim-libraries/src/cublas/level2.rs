//! Level 2: operations on a matrix and vectors, computed as products with matrices of one column.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::call::Access::{Read, ReadWrite};
use super::call::{Access, Other};
use super::dense::Transform;
use super::{Call, Number, Result, Scalar, size};

const STORED: cublasDiagType_t = cublasDiagType_t::CUBLAS_DIAG_NON_UNIT;

pub(super) unsafe fn gemv<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    beta: *const T,
    y: *mut T,
    incy: i64,
) -> Result {
    let (transform, m, n) = (Transform::of(operation)?, size(m)?, size(n)?);
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let (rows, columns) = transform.stored(m, n);
    let a = call.matrix(Read, a, (m, n), lda)?;
    let (x, y) =
        (call.vector(Read, x, columns as i64, incx)?, call.vector(Access::of_result(beta), y, rows as i64, incy)?);
    call.enqueue(move |memory| {
        let product = memory.matrix::<T>(a).transformed(transform).times(&memory.column(x));
        let result = product.scaled(memory.scalar(alpha)).plus(memory.scalar(beta), &memory.column(y));
        memory.set_vector(y, &result.elements);
    })
}

pub(super) unsafe fn ger<T: Number>(
    call: Call,
    m: i64,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    a: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller upholds the contract.
    unsafe { outer(call, (m, n), alpha, (x, incx), (y, incy), (a, lda), Transform::Transposition) }
}

pub(super) unsafe fn ger_conjugated<T: Number>(
    call: Call,
    m: i64,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    a: *mut T,
    lda: i64,
) -> Result {
    // SAFETY: the caller upholds the contract.
    unsafe { outer(call, (m, n), alpha, (x, incx), (y, incy), (a, lda), Transform::Adjoint) }
}

/// Adds alpha · x · y, transposed or its adjoint, to a matrix.
unsafe fn outer<T: Number>(
    mut call: Call,
    (m, n): (i64, i64),
    alpha: *const T,
    (x, incx): (*const T, i64),
    (y, incy): (*const T, i64),
    (a, lda): (*mut T, i64),
    transform: Transform,
) -> Result {
    if size(m)? == 0 || size(n)? == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    let (x, y) = (call.vector(Read, x, m, incx)?, call.vector(Read, y, n, incy)?);
    let a = call.matrix(ReadWrite, a.cast_const(), (size(m)?, size(n)?), lda)?;
    call.enqueue(move |memory| {
        let product = memory.column::<T>(x).times(&memory.column(y).transformed(transform));
        let result = memory.matrix(a).plus(memory.scalar(alpha), &product);
        memory.set_matrix(a, &result);
    })
}

/// Declares the products of a symmetric or Hermitian matrix and a vector.
macro_rules! product {
    ($name:ident, $other:expr) => {
        pub(super) unsafe fn $name<T: Number>(
            mut call: Call,
            fill: cublasFillMode_t,
            n: i64,
            alpha: *const T,
            a: *const T,
            lda: i64,
            x: *const T,
            incx: i64,
            beta: *const T,
            y: *mut T,
            incy: i64,
        ) -> Result {
            if size(n)? == 0 {
                return Ok(());
            }
            // SAFETY: the caller passes a factor.
            let alpha = unsafe { call.scalar(alpha) }?;
            // SAFETY: the caller passes a factor.
            let beta = unsafe { call.scalar(beta) }?;
            let a = call.triangle(Read, fill, STORED, a, size(n)?, lda)?;
            let (x, y) = (call.vector(Read, x, n, incx)?, call.vector(Access::of_result(beta), y, n, incy)?);
            call.enqueue(move |memory| {
                let product = memory.triangle::<T>(a, $other).times(&memory.column(x));
                let result = product.scaled(memory.scalar(alpha)).plus(memory.scalar(beta), &memory.column(y));
                memory.set_vector(y, &result.elements);
            })
        }
    };
}

product!(symv, Other::Symmetric);
product!(hemv, Other::Hermitian);

pub(super) unsafe fn syr<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    a: *mut T,
    lda: i64,
) -> Result {
    if size(n)? == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    update(call, (fill, n), (x, incx), (a, lda), Other::Symmetric, move |memory| memory.scalar(alpha))
}

pub(super) unsafe fn her<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: *const T::Absolute,
    x: *const T,
    incx: i64,
    a: *mut T,
    lda: i64,
) -> Result {
    if size(n)? == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha: Scalar<T::Absolute> = unsafe { call.scalar(alpha) }?;
    let factor = move |memory: &super::Memory<'_>| T::from_real(memory.scalar(alpha));
    update(call, (fill, n), (x, incx), (a, lda), Other::Hermitian, factor)
}

/// Adds a multiple of x · x, transposed or its adjoint, to a triangle.
fn update<T: Number>(
    mut call: Call,
    (fill, n): (cublasFillMode_t, i64),
    (x, incx): (*const T, i64),
    (a, lda): (*mut T, i64),
    other: Other,
    factor: impl Fn(&super::Memory<'_>) -> T + Send + Sync + 'static,
) -> Result {
    let x = call.vector(Read, x, n, incx)?;
    let a = call.triangle(ReadWrite, fill, STORED, a.cast_const(), size(n)?, lda)?;
    call.enqueue(move |memory| {
        let column = memory.column::<T>(x);
        let product = column.times(&column.clone().transformed(transform_of(other)));
        let result = memory.triangle(a, other).plus(factor(memory), &product);
        memory.set_triangle(a, &result);
    })
}

/// Declares the updates of a triangle by two vectors.
macro_rules! update_by_two {
    ($name:ident, $other:expr) => {
        pub(super) unsafe fn $name<T: Number>(
            mut call: Call,
            fill: cublasFillMode_t,
            n: i64,
            alpha: *const T,
            x: *const T,
            incx: i64,
            y: *const T,
            incy: i64,
            a: *mut T,
            lda: i64,
        ) -> Result {
            if size(n)? == 0 {
                return Ok(());
            }
            // SAFETY: the caller passes a factor.
            let alpha = unsafe { call.scalar(alpha) }?;
            let (x, y) = (call.vector(Read, x, n, incx)?, call.vector(Read, y, n, incy)?);
            let a = call.triangle(ReadWrite, fill, STORED, a.cast_const(), size(n)?, lda)?;
            call.enqueue(move |memory| {
                let (x, y, alpha) = (memory.column::<T>(x), memory.column::<T>(y), memory.scalar(alpha));
                let transform = transform_of($other);
                let back = if transform == Transform::Adjoint { alpha.conj() } else { alpha };
                let one = x.times(&y.clone().transformed(transform));
                let other = y.times(&x.clone().transformed(transform));
                let result = memory.triangle(a, $other).plus(alpha, &one).plus(back, &other);
                memory.set_triangle(a, &result);
            })
        }
    };
}

update_by_two!(syr2, Other::Symmetric);
update_by_two!(her2, Other::Hermitian);

pub(super) unsafe fn trmv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    let transform = Transform::of(operation)?;
    if size(n)? == 0 {
        return Ok(());
    }
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, lda)?;
    let x = call.vector(ReadWrite, x.cast_const(), n, incx)?;
    call.enqueue(move |memory| {
        let result = memory.triangle::<T>(a, Other::Zero).transformed(transform).times(&memory.column(x));
        memory.set_vector(x, &result.elements);
    })
}

pub(super) unsafe fn trsv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: *const T,
    lda: i64,
    x: *mut T,
    incx: i64,
) -> Result {
    let transform = Transform::of(operation)?;
    if size(n)? == 0 {
        return Ok(());
    }
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, lda)?;
    let x = call.vector(ReadWrite, x.cast_const(), n, incx)?;
    call.enqueue(move |memory| {
        let is_upper = a.is_upper() != transform.flips();
        let result = memory.triangle::<T>(a, Other::Zero).transformed(transform).solve(is_upper, memory.column(x));
        memory.set_vector(x, &result.elements);
    })
}

/// Returns what turns a factor of a product into the other one.
pub(super) fn transform_of(other: Other) -> Transform {
    if other == Other::Hermitian { Transform::Adjoint } else { Transform::Transposition }
}
