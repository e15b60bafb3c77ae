//! Level 3: operations on matrices.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

mod batched;
mod triangular;

use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t};

pub(super) use self::batched::{gemm_batched, trsm_batched};
pub(super) use self::triangular::{trmm, trsm};
use super::call::Access;
use super::call::Access::{Read, Write};
use super::dense::Transform;
use super::level2::transform_of;
use super::memory::Memory;
use super::operand::{Other, Storage};
use super::{Call, Dense, INVALID, Number, Result, size};

const STORED: cublasDiagType_t = cublasDiagType_t::CUBLAS_DIAG_NON_UNIT;

pub(super) unsafe fn gemm<T: Number>(
    call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    b: *const T,
    ldb: i64,
    beta: *const T,
    c: *mut T,
    ldc: i64,
) -> Result {
    let operations = (operation_a, operation_b);
    // SAFETY: the caller upholds the contract.
    unsafe {
        products(
            call,
            operations,
            (m, n, k),
            (alpha, beta),
            (a, lda, 0),
            (b, ldb, 0),
            (c, ldc, 0),
            1,
        )
    }
}

pub(super) unsafe fn gemm_strided_batched<T: Number>(
    call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    stride_a: i64,
    b: *const T,
    ldb: i64,
    stride_b: i64,
    beta: *const T,
    c: *mut T,
    ldc: i64,
    stride_c: i64,
    count: i64,
) -> Result {
    let operations = (operation_a, operation_b);
    let (a, b, c) = ((a, lda, stride_a), (b, ldb, stride_b), (c, ldc, stride_c));
    // SAFETY: the caller upholds the contract.
    unsafe { products(call, operations, (m, n, k), (alpha, beta), a, b, c, count) }
}

/// Computes `count` products. Each matrix comes with its leading dimension and the distance to the next.
unsafe fn products<T: Number>(
    mut call: Call,
    operations: (cublasOperation_t, cublasOperation_t),
    (m, n, k): (i64, i64, i64),
    (alpha, beta): (*const T, *const T),
    (a, lda, stride_a): (*const T, i64, i64),
    (b, ldb, stride_b): (*const T, i64, i64),
    (c, ldc, stride_c): (*mut T, i64, i64),
    count: i64,
) -> Result {
    let (on_a, on_b) = (Transform::of(operations.0)?, Transform::of(operations.1)?);
    let (m, n, k, count) = (size(m)?, size(n)?, size(k)?, size(count)?);
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let a = call.matrices(Read, a, on_a.stored(m, k), lda, (stride_a, count))?;
    let b = call.matrices(Read, b, on_b.stored(k, n), ldb, (stride_b, count))?;
    let c = call.matrices(
        Access::of_result(beta),
        c.cast_const(),
        (m, n),
        ldc,
        (stride_c, count),
    )?;
    call.enqueue(move |memory| {
        let (alpha, beta) = (memory.scalar(alpha), memory.scalar(beta));
        let before = memory.matrices::<T>(c);
        let (left, right) = (memory.matrices::<T>(a), memory.matrices::<T>(b));
        let empty = || Dense::from_fn(m, n, |_, _| T::zero());
        let product = |index: usize| match (left.get(index), right.get(index)) {
            (Some(left), Some(right)) => left
                .clone()
                .transformed(on_a)
                .times(&right.clone().transformed(on_b)),
            _ => empty(),
        };
        let results: Vec<_> = before
            .iter()
            .enumerate()
            .map(|(index, before)| product(index).scaled(alpha).plus(beta, before))
            .collect();
        memory.set_matrices(c, &results);
    })
}

pub(super) unsafe fn geam<T: Number>(
    mut call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    beta: *const T,
    b: *const T,
    ldb: i64,
    c: *mut T,
    ldc: i64,
) -> Result {
    let (on_a, on_b) = (Transform::of(operation_a)?, Transform::of(operation_b)?);
    let (m, n) = (size(m)?, size(n)?);
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let a = call.matrix(Read, a, on_a.stored(m, n), lda)?;
    let b = call.matrix(Read, b, on_b.stored(m, n), ldb)?;
    let c = call.matrix(Write, c.cast_const(), (m, n), ldc)?;
    call.enqueue(move |memory| {
        let (alpha, beta) = (memory.scalar::<T>(alpha), memory.scalar(beta));
        let (a, b) = (
            memory.matrix(a).transformed(on_a),
            memory.matrix(b).transformed(on_b),
        );
        let zero = Dense::from_fn(m, n, |_, _| T::zero());
        memory.set_matrix(c, &zero.plus(alpha, &a).plus(beta, &b));
    })
}

pub(super) unsafe fn dgmm<T: Number>(
    mut call: Call,
    side: cublasSideMode_t,
    m: i64,
    n: i64,
    a: *const T,
    lda: i64,
    x: *const T,
    incx: i64,
    c: *mut T,
    ldc: i64,
) -> Result {
    let (is_left, m, n) = (is_left(side)?, size(m)?, size(n)?);
    if m == 0 || n == 0 {
        return Ok(());
    }
    let x = call.vector(Read, x, if is_left { m } else { n } as i64, incx)?;
    let a = call.matrix(Read, a, (m, n), lda)?;
    let c = call.matrix(Write, c.cast_const(), (m, n), ldc)?;
    call.enqueue(move |memory| {
        let (a, x) = (memory.matrix::<T>(a), memory.vector::<T>(x));
        let product = |row, column| a.at(row, column) * x[if is_left { row } else { column }];
        memory.set_matrix(c, &Dense::from_fn(m, n, product));
    })
}

/// Declares the products of a symmetric or Hermitian matrix and a general one.
macro_rules! product {
    ($name:ident, $other:expr) => {
        pub(super) unsafe fn $name<T: Number>(
            mut call: Call,
            side: cublasSideMode_t,
            fill: cublasFillMode_t,
            m: i64,
            n: i64,
            alpha: *const T,
            a: *const T,
            lda: i64,
            b: *const T,
            ldb: i64,
            beta: *const T,
            c: *mut T,
            ldc: i64,
        ) -> Result {
            let (is_left, m, n) = (is_left(side)?, size(m)?, size(n)?);
            if m == 0 || n == 0 {
                return Ok(());
            }
            // SAFETY: the caller passes a factor.
            let alpha = unsafe { call.scalar(alpha) }?;
            // SAFETY: the caller passes a factor.
            let beta = unsafe { call.scalar(beta) }?;
            let a = call.triangle(
                Read,
                fill,
                STORED,
                a,
                if is_left { m } else { n },
                Storage::Full(lda),
            )?;
            let b = call.matrix(Read, b, (m, n), ldb)?;
            let c = call.matrix(Access::of_result(beta), c.cast_const(), (m, n), ldc)?;
            call.enqueue(move |memory| {
                let (a, b) = (memory.triangle::<T>(a, $other), memory.matrix(b));
                let product = if is_left { a.times(&b) } else { b.times(&a) };
                let result = product
                    .scaled(memory.scalar(alpha))
                    .plus(memory.scalar(beta), &memory.matrix(c));
                memory.set_matrix(c, &result);
            })
        }
    };
}

product!(symm, Other::Symmetric);
product!(hemm, Other::Hermitian);

pub(super) unsafe fn syrk<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    beta: *const T,
    c: *mut T,
    ldc: i64,
) -> Result {
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let (access, sizes) = (Access::of_result(beta), (size(n)?, size(k)?));
    let factors = move |memory: &Memory<'_>| (memory.scalar(alpha), memory.scalar(beta));
    update(
        call,
        (fill, operation, sizes),
        (a, lda),
        (c, ldc, access),
        Other::Symmetric,
        factors,
    )
}

pub(super) unsafe fn herk<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T::Absolute,
    a: *const T,
    lda: i64,
    beta: *const T::Absolute,
    c: *mut T,
    ldc: i64,
) -> Result {
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let (access, sizes) = (Access::of_result(beta), (size(n)?, size(k)?));
    let factors = move |memory: &Memory<'_>| {
        (
            T::from_real(memory.scalar(alpha)),
            T::from_real(memory.scalar(beta)),
        )
    };
    update(
        call,
        (fill, operation, sizes),
        (a, lda),
        (c, ldc, access),
        Other::Hermitian,
        factors,
    )
}

/// Adds a multiple of a · a, transposed or its adjoint, to a triangle.
fn update<T: Number>(
    mut call: Call,
    (fill, operation, (n, k)): (cublasFillMode_t, cublasOperation_t, (usize, usize)),
    (a, lda): (*const T, i64),
    (c, ldc, access): (*mut T, i64, Access),
    other: Other,
    factors: impl Fn(&Memory<'_>) -> (T, T) + Send + Sync + 'static,
) -> Result {
    let (transform, back) = (Transform::of(operation)?, transform_of(other));
    if n == 0 {
        return Ok(());
    }
    let a = call.matrix(Read, a, transform.stored(n, k), lda)?;
    let c = call.triangle(access, fill, STORED, c.cast_const(), n, Storage::Full(ldc))?;
    call.enqueue(move |memory| {
        let (alpha, beta) = factors(memory);
        let a = memory.matrix::<T>(a).transformed(transform);
        let product = a.times(&a.clone().transformed(back));
        let result = product.scaled(alpha).plus(beta, &memory.triangle(c, other));
        memory.set_triangle(c, &result);
    })
}

pub(super) unsafe fn syr2k<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    b: *const T,
    ldb: i64,
    beta: *const T,
    c: *mut T,
    ldc: i64,
) -> Result {
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let (access, sizes) = (Access::of_result(beta), (size(n)?, size(k)?));
    let factors = move |memory: &Memory<'_>| {
        (
            memory.scalar(alpha),
            memory.scalar(alpha),
            memory.scalar(beta),
        )
    };
    let shape = (fill, operation, sizes);
    update_by_two(
        call,
        shape,
        (a, lda),
        (b, ldb),
        (c, ldc, access),
        Other::Symmetric,
        factors,
    )
}

pub(super) unsafe fn her2k<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const T,
    lda: i64,
    b: *const T,
    ldb: i64,
    beta: *const T::Absolute,
    c: *mut T,
    ldc: i64,
) -> Result {
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let (access, sizes) = (Access::of_result(beta), (size(n)?, size(k)?));
    let factors = move |memory: &Memory<'_>| {
        let alpha: T = memory.scalar(alpha);
        (alpha, alpha.conj(), T::from_real(memory.scalar(beta)))
    };
    let shape = (fill, operation, sizes);
    update_by_two(
        call,
        shape,
        (a, lda),
        (b, ldb),
        (c, ldc, access),
        Other::Hermitian,
        factors,
    )
}

/// Adds multiples of a · b and b · a, the second factor transposed or its adjoint, to a triangle.
fn update_by_two<T: Number>(
    mut call: Call,
    (fill, operation, (n, k)): (cublasFillMode_t, cublasOperation_t, (usize, usize)),
    (a, lda): (*const T, i64),
    (b, ldb): (*const T, i64),
    (c, ldc, access): (*mut T, i64, Access),
    other: Other,
    factors: impl Fn(&Memory<'_>) -> (T, T, T) + Send + Sync + 'static,
) -> Result {
    let (transform, back) = (Transform::of(operation)?, transform_of(other));
    if n == 0 {
        return Ok(());
    }
    let a = call.matrix(Read, a, transform.stored(n, k), lda)?;
    let b = call.matrix(Read, b, transform.stored(n, k), ldb)?;
    let c = call.triangle(access, fill, STORED, c.cast_const(), n, Storage::Full(ldc))?;
    call.enqueue(move |memory| {
        let (alpha, second, beta) = factors(memory);
        let (a, b) = (
            memory.matrix::<T>(a).transformed(transform),
            memory.matrix::<T>(b).transformed(transform),
        );
        let one = a.times(&b.clone().transformed(back)).scaled(alpha);
        let both = one.plus(second, &b.times(&a.clone().transformed(back)));
        memory.set_triangle(c, &both.plus(beta, &memory.triangle(c, other)));
    })
}

fn is_left(side: cublasSideMode_t) -> Result<bool> {
    match side {
        cublasSideMode_t::CUBLAS_SIDE_LEFT => Ok(true),
        cublasSideMode_t::CUBLAS_SIDE_RIGHT => Ok(false),
        _ => Err(INVALID),
    }
}
