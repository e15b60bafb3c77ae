//! Level 2: operations on a matrix and vectors, computed as products with matrices of one column.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

mod banded;
mod packed;

use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::call::Access;
use super::call::Access::{Read, ReadWrite};
use super::dense::Transform;
use super::memory::Memory;
use super::operand::{Other, Storage, TriangleOperand};
use super::{Call, Dense, Number, Result, Scalar, size};

pub(super) use self::banded::{gbmv, hbmv, tbmv, tbsv};
pub(super) use self::packed::{hpmv, hpr, hpr2, tpmv, tpsv};

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
    let (transform, sizes) = (Transform::of(operation)?, (size(m)?, size(n)?));
    if sizes.0 == 0 || sizes.1 == 0 {
        return Ok(());
    }
    let a = call.matrix(Read, a, sizes, lda)?;
    let matrix = move |memory: &Memory<'_>| memory.matrix::<T>(a).transformed(transform);
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

/// Computes alpha · matrix · x + beta · y, where the matrix has these rows and columns.
unsafe fn product<T: Number>(
    mut call: Call,
    matrix: impl Fn(&Memory<'_>) -> Dense<T> + Send + Sync + 'static,
    (rows, columns): (usize, usize),
    (alpha, beta): (*const T, *const T),
    (x, incx): (*const T, i64),
    (y, incy): (*mut T, i64),
) -> Result {
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let x = call.vector(Read, x, columns as i64, incx)?;
    let y = call.vector(Access::of_result(beta), y, rows as i64, incy)?;
    call.enqueue(move |memory| {
        let product = matrix(memory).times(&memory.column(x));
        let result = product
            .scaled(memory.scalar(alpha))
            .plus(memory.scalar(beta), &memory.column(y));
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
    unsafe {
        outer(
            call,
            (m, n),
            alpha,
            (x, incx),
            (y, incy),
            (a, lda),
            Transform::Transposition,
        )
    }
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
    unsafe {
        outer(
            call,
            (m, n),
            alpha,
            (x, incx),
            (y, incy),
            (a, lda),
            Transform::Adjoint,
        )
    }
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
    let (x, y) = (
        call.vector(Read, x, m, incx)?,
        call.vector(Read, y, n, incy)?,
    );
    let a = call.matrix(ReadWrite, a.cast_const(), (size(m)?, size(n)?), lda)?;
    call.enqueue(move |memory| {
        let product = memory
            .column::<T>(x)
            .times(&memory.column(y).transformed(transform));
        let result = memory.matrix(a).plus(memory.scalar(alpha), &product);
        memory.set_matrix(a, &result);
    })
}

/// Declares the products of a symmetric or Hermitian matrix and a vector.
macro_rules! product {
    ($name:ident, $other:expr) => {
        pub(super) unsafe fn $name<T: Number>(
            call: Call,
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
            let (half, factors) = (
                Half {
                    fill,
                    n,
                    a,
                    storage: Storage::Full(lda),
                    other: $other,
                },
                (alpha, beta),
            );
            // SAFETY: the caller upholds the contract.
            unsafe { product_with_half(call, half, factors, (x, incx), (y, incy)) }
        }
    };
}

product!(symv, Other::Symmetric);
product!(hemv, Other::Hermitian);

/// A matrix that one of its triangles determines.
#[derive(Clone, Copy)]
struct Half<T> {
    fill: cublasFillMode_t,
    n: i64,
    a: *const T,
    storage: Storage,
    other: Other,
}

impl<T: Number> Half<T> {
    fn operand(&self, call: &mut Call, access: Access) -> Result<TriangleOperand> {
        call.triangle(
            access,
            self.fill,
            STORED,
            self.a,
            size(self.n)?,
            self.storage,
        )
    }
}

/// Computes the product of a matrix that one of its triangles determines and a vector.
unsafe fn product_with_half<T: Number>(
    mut call: Call,
    half: Half<T>,
    factors: (*const T, *const T),
    x: (*const T, i64),
    y: (*mut T, i64),
) -> Result {
    let n = size(half.n)?;
    if n == 0 {
        return Ok(());
    }
    let (a, other) = (half.operand(&mut call, Read)?, half.other);
    // SAFETY: the caller upholds the contract.
    unsafe {
        product(
            call,
            move |memory| memory.triangle(a, other),
            (n, n),
            factors,
            x,
            y,
        )
    }
}

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
    let half = Half {
        fill,
        n,
        a: a.cast_const(),
        storage: Storage::Full(lda),
        other: Other::Symmetric,
    };
    update(call, half, (x, incx), move |memory| memory.scalar(alpha))
}

pub(super) unsafe fn her<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: *const T::Absolute,
    x: *const T,
    incx: i64,
    a: *mut T,
    lda: i64,
) -> Result {
    let half = Half {
        fill,
        n,
        a: a.cast_const(),
        storage: Storage::Full(lda),
        other: Other::Hermitian,
    };
    // SAFETY: the caller upholds the contract.
    unsafe { hermitian_update(call, half, alpha, (x, incx)) }
}

/// Adds a real multiple of x · adjoint(x) to a triangle.
unsafe fn hermitian_update<T: Number>(
    mut call: Call,
    half: Half<T>,
    alpha: *const T::Absolute,
    x: (*const T, i64),
) -> Result {
    if size(half.n)? == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha: Scalar<T::Absolute> = unsafe { call.scalar(alpha) }?;
    update(call, half, x, move |memory| {
        T::from_real(memory.scalar(alpha))
    })
}

/// Adds a multiple of x · x, transposed or its adjoint, to a triangle.
fn update<T: Number>(
    mut call: Call,
    half: Half<T>,
    (x, incx): (*const T, i64),
    factor: impl Fn(&Memory<'_>) -> T + Send + Sync + 'static,
) -> Result {
    let x = call.vector(Read, x, half.n, incx)?;
    let (a, other) = (half.operand(&mut call, ReadWrite)?, half.other);
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
            call: Call,
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
            let half = Half {
                fill,
                n,
                a: a.cast_const(),
                storage: Storage::Full(lda),
                other: $other,
            };
            // SAFETY: the caller upholds the contract.
            unsafe { update_by_two(call, half, alpha, (x, incx), (y, incy)) }
        }
    };
}

update_by_two!(syr2, Other::Symmetric);
update_by_two!(her2, Other::Hermitian);

/// Adds multiples of x · y and y · x, the second factor transposed or its adjoint, to a triangle.
unsafe fn update_by_two<T: Number>(
    mut call: Call,
    half: Half<T>,
    alpha: *const T,
    (x, incx): (*const T, i64),
    (y, incy): (*const T, i64),
) -> Result {
    if size(half.n)? == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    let (x, y) = (
        call.vector(Read, x, half.n, incx)?,
        call.vector(Read, y, half.n, incy)?,
    );
    let (a, other) = (half.operand(&mut call, ReadWrite)?, half.other);
    call.enqueue(move |memory| {
        let (x, y, alpha) = (
            memory.column::<T>(x),
            memory.column::<T>(y),
            memory.scalar(alpha),
        );
        let transform = transform_of(other);
        let back = if transform == Transform::Adjoint {
            alpha.conj()
        } else {
            alpha
        };
        let one = x.times(&y.clone().transformed(transform));
        let two = y.times(&x.clone().transformed(transform));
        let result = memory.triangle(a, other).plus(alpha, &one).plus(back, &two);
        memory.set_triangle(a, &result);
    })
}

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
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Full(lda))?;
    multiply(call, operation, n, a, (x, incx))
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
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Full(lda))?;
    solve(call, operation, n, a, (x, incx))
}

/// Multiplies a vector by a triangular matrix.
fn multiply<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    n: i64,
    a: TriangleOperand,
    (x, incx): (*mut T, i64),
) -> Result {
    let transform = Transform::of(operation)?;
    if n == 0 {
        return Ok(());
    }
    let x = call.vector(ReadWrite, x.cast_const(), n, incx)?;
    call.enqueue(move |memory| {
        let result = memory
            .triangle::<T>(a, Other::Zero)
            .transformed(transform)
            .times(&memory.column(x));
        memory.set_vector(x, &result.elements);
    })
}

/// Solves a triangular system in place.
fn solve<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    n: i64,
    a: TriangleOperand,
    (x, incx): (*mut T, i64),
) -> Result {
    let transform = Transform::of(operation)?;
    if n == 0 {
        return Ok(());
    }
    let x = call.vector(ReadWrite, x.cast_const(), n, incx)?;
    call.enqueue(move |memory| {
        let is_upper = a.is_upper != transform.flips();
        let result = memory
            .triangle::<T>(a, Other::Zero)
            .transformed(transform)
            .solve(is_upper, memory.column(x));
        memory.set_vector(x, &result.elements);
    })
}

/// Returns the transform of one factor of a product that makes the other one.
pub(super) fn transform_of(other: Other) -> Transform {
    if other == Other::Hermitian {
        Transform::Adjoint
    } else {
        Transform::Transposition
    }
}
