//! Products with triangular matrices, and their solutions.

use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t};

use super::super::call::Access::{Read, ReadWrite, Write};
use super::super::dense::Transform;
use super::super::memory::Memory;
use super::super::operand::{Input, Other, Output, ScalarInput, Shape, Storage, TriangleOperand};
use super::super::{Call, Dense, Number, Result, size};
use super::is_left;

pub(in super::super) fn trmm<T: Number>(
    mut call: Call,
    side: cublasSideMode_t,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    b: Input<T>,
    ldb: i64,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let is_left = is_left(side)?;
    let transform = Transform::from_raw(operation)?;
    let m = size(m)?;
    let n = size(n)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let a = call.triangle(
        Read,
        fill,
        diagonal,
        a,
        if is_left { m } else { n },
        Storage::Full(lda),
    )?;
    let b = call.matrix(Read, b, Shape::new(m, n), ldb)?;
    let c = call.matrix(Write, c, Shape::new(m, n), ldc)?;
    call.enqueue(move |memory| {
        let a = memory.triangle::<T>(a, Other::Zero).transformed(transform);
        let b = memory.matrix(b);
        let product = if is_left { a.times(&b) } else { b.times(&a) };
        memory.set_matrix(c, &product.scaled(memory.scalar(alpha)));
    })
}

pub(in super::super) fn trsm<T: Number>(
    mut call: Call,
    side: cublasSideMode_t,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    m: i64,
    n: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    b: Output<T>,
    ldb: i64,
) -> Result {
    let is_left = is_left(side)?;
    let transform = Transform::from_raw(operation)?;
    let m = size(m)?;
    let n = size(n)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let a = call.triangle(
        Read,
        fill,
        diagonal,
        a,
        if is_left { m } else { n },
        Storage::Full(lda),
    )?;
    let b = call.matrix(ReadWrite, b, Shape::new(m, n), ldb)?;
    call.enqueue(move |memory| {
        let right = memory.matrix::<T>(b).scaled(memory.scalar(alpha));
        let result = solution(memory, a, transform, is_left, right);
        memory.set_matrix(b, &result);
    })
}

/// Returns the solution of a · z = right, or of z · a = right.
pub(super) fn solution<T: Number>(
    memory: &Memory<'_>,
    a: TriangleOperand,
    transform: Transform,
    is_left: bool,
    right: Dense<T>,
) -> Dense<T> {
    let is_upper = a.is_upper != transform.flips();
    let a = memory.triangle::<T>(a, Other::Zero).transformed(transform);
    if is_left {
        return a.solve(is_upper, right);
    }
    // z · a = b is transposed(a) · transposed(z) = transposed(b).
    let transposed = right.transformed(Transform::Transposition);
    let solved = a
        .transformed(Transform::Transposition)
        .solve(!is_upper, transposed);
    solved.transformed(Transform::Transposition)
}
