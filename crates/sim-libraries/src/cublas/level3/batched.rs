//! Operations on the matrices of arrays of pointers.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.

use curium_blas::sys::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t};

use super::super::call::Access;
use super::super::call::Access::{Read, ReadWrite};
use super::super::dense::Transform;
use super::super::operand::{First, Storage};
use super::super::{Call, Number, Result, size};
use super::is_left;
use super::triangular::solution;

pub(in super::super) unsafe fn gemm_batched<T: Number>(
    mut call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const T,
    a: *const *const T,
    lda: i64,
    b: *const *const T,
    ldb: i64,
    beta: *const T,
    c: *const *mut T,
    ldc: i64,
    count: i64,
) -> Result {
    let (on_a, on_b) = (Transform::of(operation_a)?, Transform::of(operation_b)?);
    let (m, n, k, count) = (size(m)?, size(n)?, size(k)?, size(count)?);
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar(beta) }?;
    let (a, b, c) = (
        call.pointers(a, count)?,
        call.pointers(b, count)?,
        call.pointers(c, count)?,
    );
    let products = (0..count).map(|index| {
        Ok((
            call.matrix_of::<T>(Read, (a, index), on_a.stored(m, k), lda)?,
            call.matrix_of::<T>(Read, (b, index), on_b.stored(k, n), ldb)?,
            call.matrix_of::<T>(Access::of_result(beta), (c, index), (m, n), ldc)?,
        ))
    });
    let products = products.collect::<Result<Vec<_>>>()?;
    call.enqueue(move |memory| {
        let (alpha, beta) = (memory.scalar(alpha), memory.scalar(beta));
        for (a, b, c) in &products {
            let product = memory
                .matrix::<T>(*a)
                .transformed(on_a)
                .times(&memory.matrix(*b).transformed(on_b));
            let result = product.scaled(alpha).plus(beta, &memory.matrix(*c));
            memory.set_matrix(*c, &result);
        }
    })
}

pub(in super::super) unsafe fn trsm_batched<T: Number>(
    mut call: Call,
    side: cublasSideMode_t,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: *const T,
    a: *const *const T,
    lda: i64,
    b: *const *mut T,
    ldb: i64,
    count: i64,
) -> Result {
    let (is_left, transform) = (is_left(side)?, Transform::of(operation)?);
    let (m, n, count) = (size(m)?, size(n)?, size(count)?);
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    let (a, b) = (call.pointers(a, count)?, call.pointers(b, count)?);
    let (of_a, storage) = (if is_left { m } else { n }, Storage::Full(lda));
    let solutions = (0..count).map(|index| {
        Ok((
            call.triangle_at::<T>(
                Read,
                fill,
                diagonal,
                First::Pointer(a, index),
                of_a,
                storage,
            )?,
            call.matrix_of::<T>(ReadWrite, (b, index), (m, n), ldb)?,
        ))
    });
    let solutions = solutions.collect::<Result<Vec<_>>>()?;
    call.enqueue(move |memory| {
        for (a, b) in &solutions {
            let right = memory.matrix::<T>(*b).scaled(memory.scalar(alpha));
            let result = solution(memory, *a, transform, is_left, right);
            memory.set_matrix(*b, &result);
        }
    })
}
