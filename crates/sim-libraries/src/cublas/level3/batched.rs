//! Operations on the matrices of arrays of pointers.

use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t};

use super::super::call::Access;
use super::super::call::Access::{Read, ReadWrite};
use super::super::dense::Transform;
use super::super::operand::{First, Input, ScalarInput, Shape, Storage};
use super::super::{Call, Number, Result, size};
use super::is_left;
use super::triangular::solution;

pub(in super::super) fn gemm_batched<T: Number>(
    mut call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<*const T>,
    lda: i64,
    b: Input<*const T>,
    ldb: i64,
    beta: ScalarInput<T>,
    c: Input<*mut T>,
    ldc: i64,
    count: i64,
) -> Result {
    let transform_a = Transform::from_raw(operation_a)?;
    let transform_b = Transform::from_raw(operation_b)?;
    let m = size(m)?;
    let n = size(n)?;
    let k = size(k)?;
    let count = size(count)?;
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let beta = call.scalar(beta)?;
    let a = call.pointers(a, count)?;
    let b = call.pointers(b, count)?;
    let c = call.pointers(c, count)?;
    let products = (0..count).map(|index| {
        Ok((
            call.indirect_matrix::<T>(Read, a, index, transform_a.stored(m, k), lda)?,
            call.indirect_matrix::<T>(Read, b, index, transform_b.stored(k, n), ldb)?,
            call.indirect_matrix::<T>(Access::for_result(beta), c, index, Shape::new(m, n), ldc)?,
        ))
    });
    let products = products.collect::<Result<Vec<_>>>()?;
    call.enqueue(move |memory| {
        let alpha = memory.scalar(alpha);
        let beta = memory.scalar(beta);
        for (a, b, c) in &products {
            let product = memory
                .matrix::<T>(*a)
                .transformed(transform_a)
                .times(&memory.matrix(*b).transformed(transform_b));
            let result = product.scaled(alpha).plus(beta, &memory.matrix(*c));
            memory.set_matrix(*c, &result);
        }
    })
}

pub(in super::super) fn trsm_batched<T: Number>(
    mut call: Call,
    side: cublasSideMode_t,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: ScalarInput<T>,
    a: Input<*const T>,
    lda: i64,
    b: Input<*mut T>,
    ldb: i64,
    count: i64,
) -> Result {
    let is_left = is_left(side)?;
    let transform = Transform::from_raw(operation)?;
    let m = size(m)?;
    let n = size(n)?;
    let count = size(count)?;
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let a = call.pointers(a, count)?;
    let b = call.pointers(b, count)?;
    let size_a = if is_left { m } else { n };
    let storage = Storage::Full(lda);
    let solutions = (0..count).map(|index| {
        Ok((
            call.triangle_at::<T>(
                Read,
                fill,
                diagonal,
                First::Pointer(a, index),
                size_a,
                storage,
            )?,
            call.indirect_matrix::<T>(ReadWrite, b, index, Shape::new(m, n), ldb)?,
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
