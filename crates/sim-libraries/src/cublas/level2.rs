//! Level 2: operations on a matrix and vectors, computed as products with matrices of one column.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

mod banded;
mod packed;

use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t};

use super::call::Access;
use super::call::Access::{Read, ReadWrite};
use super::dense::Transform;
use super::memory::Memory;
use super::operand::{
    Input, MatrixArgument, Other, Output, PointerArgument, ScalarInput, Shape, Storage,
    TriangleOperand, VectorArgument,
};
use super::{Call, Dense, Number, Result, Scalar, size};

pub(super) use self::banded::{gbmv, hbmv, tbmv, tbsv};
pub(super) use self::packed::{hpmv, hpr, hpr2, tpmv, tpsv};

const STORED: cublasDiagType_t = cublasDiagType_t::CUBLAS_DIAG_NON_UNIT;

pub(super) fn gemv<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    m: i64,
    n: i64,
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
    if shape.is_empty() {
        return Ok(());
    }
    let a = call.matrix(Read, a, shape, lda)?;
    product(
        call,
        move |memory| memory.matrix::<T>(a).transformed(transform),
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

/// The factors of a product and of the previous content of its result.
#[derive(Clone, Copy)]
struct Factors<T> {
    alpha: ScalarInput<T>,
    beta: ScalarInput<T>,
}

/// Computes alpha · matrix · x + beta · y for a matrix with this shape.
fn product<T: Number>(
    mut call: Call,
    matrix: impl Fn(&Memory<'_>) -> Dense<T> + Send + Sync + 'static,
    shape: Shape,
    factors: Factors<T>,
    x: VectorArgument<Input<T>>,
    y: VectorArgument<Output<T>>,
) -> Result {
    let alpha = call.scalar(factors.alpha)?;
    let beta = call.scalar(factors.beta)?;
    let x = call.vector(Read, x.pointer, shape.columns as i64, x.increment)?;
    let y = call.vector(
        Access::for_result(beta),
        y.pointer,
        shape.rows as i64,
        y.increment,
    )?;
    call.enqueue(move |memory| {
        let product = matrix(memory).times(&memory.column(x));
        let result = product
            .scaled(memory.scalar(alpha))
            .plus(memory.scalar(beta), &memory.column(y));
        memory.set_vector(y, &result.elements);
    })
}

pub(super) fn ger<T: Number>(
    call: Call,
    m: i64,
    n: i64,
    alpha: ScalarInput<T>,
    x: Input<T>,
    incx: i64,
    y: Input<T>,
    incy: i64,
    a: Output<T>,
    lda: i64,
) -> Result {
    let x = VectorArgument {
        pointer: x,
        increment: incx,
    };
    let y = VectorArgument {
        pointer: y,
        increment: incy,
    };
    let a = MatrixArgument {
        pointer: a,
        leading_dimension: lda,
    };
    outer(
        call,
        Shape::checked(m, n)?,
        alpha,
        x,
        y,
        a,
        Transform::Transposition,
    )
}

pub(super) fn ger_conjugated<T: Number>(
    call: Call,
    m: i64,
    n: i64,
    alpha: ScalarInput<T>,
    x: Input<T>,
    incx: i64,
    y: Input<T>,
    incy: i64,
    a: Output<T>,
    lda: i64,
) -> Result {
    let x = VectorArgument {
        pointer: x,
        increment: incx,
    };
    let y = VectorArgument {
        pointer: y,
        increment: incy,
    };
    let a = MatrixArgument {
        pointer: a,
        leading_dimension: lda,
    };
    outer(
        call,
        Shape::checked(m, n)?,
        alpha,
        x,
        y,
        a,
        Transform::Adjoint,
    )
}

/// Adds alpha · x · y, transposed or its adjoint, to a matrix.
fn outer<T: Number>(
    mut call: Call,
    shape: Shape,
    alpha: ScalarInput<T>,
    x: VectorArgument<Input<T>>,
    y: VectorArgument<Input<T>>,
    a: MatrixArgument<Output<T>>,
    transform: Transform,
) -> Result {
    if shape.is_empty() {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let x = call.vector(Read, x.pointer, shape.rows as i64, x.increment)?;
    let y = call.vector(Read, y.pointer, shape.columns as i64, y.increment)?;
    let a = call.matrix(ReadWrite, a.pointer, shape, a.leading_dimension)?;
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
        pub(super) fn $name<T: Number>(
            call: Call,
            fill: cublasFillMode_t,
            n: i64,
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
                storage: Storage::Full(lda),
                other: $other,
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
    };
}

product!(symv, Other::Symmetric);
product!(hemv, Other::Hermitian);

/// A square matrix that one of its triangles determines.
#[derive(Clone, Copy)]
struct HalfMatrix<P> {
    fill: cublasFillMode_t,
    n: i64,
    a: P,
    storage: Storage,
    other: Other,
}

impl<T: Number, P: PointerArgument<Element = T>> HalfMatrix<P> {
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
fn half_product<T: Number>(
    mut call: Call,
    matrix: HalfMatrix<Input<T>>,
    factors: Factors<T>,
    x: VectorArgument<Input<T>>,
    y: VectorArgument<Output<T>>,
) -> Result {
    let n = size(matrix.n)?;
    if n == 0 {
        return Ok(());
    }
    let a = matrix.operand(&mut call, Read)?;
    product(
        call,
        move |memory| memory.triangle(a, matrix.other),
        Shape::new(n, n),
        factors,
        x,
        y,
    )
}

pub(super) fn syr<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: ScalarInput<T>,
    x: Input<T>,
    incx: i64,
    a: Output<T>,
    lda: i64,
) -> Result {
    if size(n)? == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let matrix = HalfMatrix {
        fill,
        n,
        a,
        storage: Storage::Full(lda),
        other: Other::Symmetric,
    };
    update(call, matrix, x, incx, move |memory| memory.scalar(alpha))
}

pub(super) fn her<T: Number>(
    call: Call,
    fill: cublasFillMode_t,
    n: i64,
    alpha: ScalarInput<T::Absolute>,
    x: Input<T>,
    incx: i64,
    a: Output<T>,
    lda: i64,
) -> Result {
    let matrix = HalfMatrix {
        fill,
        n,
        a,
        storage: Storage::Full(lda),
        other: Other::Hermitian,
    };
    hermitian_update(call, matrix, alpha, x, incx)
}

/// Adds a real multiple of x · adjoint(x) to a triangle.
fn hermitian_update<T: Number>(
    mut call: Call,
    matrix: HalfMatrix<Output<T>>,
    alpha: ScalarInput<T::Absolute>,
    x: Input<T>,
    incx: i64,
) -> Result {
    if size(matrix.n)? == 0 {
        return Ok(());
    }
    let alpha: Scalar<T::Absolute> = call.scalar(alpha)?;
    update(call, matrix, x, incx, move |memory| {
        T::from_real(memory.scalar(alpha))
    })
}

/// Adds a multiple of x · x, transposed or its adjoint, to a triangle.
fn update<T: Number>(
    mut call: Call,
    matrix: HalfMatrix<Output<T>>,
    x: Input<T>,
    incx: i64,
    factor: impl Fn(&Memory<'_>) -> T + Send + Sync + 'static,
) -> Result {
    let x = call.vector(Read, x, matrix.n, incx)?;
    let a = matrix.operand(&mut call, ReadWrite)?;
    let other = matrix.other;
    call.enqueue(move |memory| {
        let column = memory.column::<T>(x);
        let product = column.times(&column.clone().transformed(paired_transform(other)));
        let result = memory.triangle(a, other).plus(factor(memory), &product);
        memory.set_triangle(a, &result);
    })
}

/// Declares the updates of a triangle by two vectors.
macro_rules! update_by_two {
    ($name:ident, $other:expr) => {
        pub(super) fn $name<T: Number>(
            call: Call,
            fill: cublasFillMode_t,
            n: i64,
            alpha: ScalarInput<T>,
            x: Input<T>,
            incx: i64,
            y: Input<T>,
            incy: i64,
            a: Output<T>,
            lda: i64,
        ) -> Result {
            let matrix = HalfMatrix {
                fill,
                n,
                a,
                storage: Storage::Full(lda),
                other: $other,
            };
            let x = VectorArgument {
                pointer: x,
                increment: incx,
            };
            let y = VectorArgument {
                pointer: y,
                increment: incy,
            };
            update_by_two(call, matrix, alpha, x, y)
        }
    };
}

update_by_two!(syr2, Other::Symmetric);
update_by_two!(her2, Other::Hermitian);

/// Adds multiples of x · y and y · x, the second factor transposed or its adjoint, to a triangle.
fn update_by_two<T: Number>(
    mut call: Call,
    matrix: HalfMatrix<Output<T>>,
    alpha: ScalarInput<T>,
    x: VectorArgument<Input<T>>,
    y: VectorArgument<Input<T>>,
) -> Result {
    if size(matrix.n)? == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let x = call.vector(Read, x.pointer, matrix.n, x.increment)?;
    let y = call.vector(Read, y.pointer, matrix.n, y.increment)?;
    let a = matrix.operand(&mut call, ReadWrite)?;
    let other = matrix.other;
    call.enqueue(move |memory| {
        let x = memory.column::<T>(x);
        let y = memory.column::<T>(y);
        let alpha = memory.scalar(alpha);
        let transform = paired_transform(other);
        let second_alpha = if transform == Transform::Adjoint {
            alpha.conj()
        } else {
            alpha
        };
        let one = x.times(&y.clone().transformed(transform));
        let two = y.times(&x.clone().transformed(transform));
        let result = memory
            .triangle(a, other)
            .plus(alpha, &one)
            .plus(second_alpha, &two);
        memory.set_triangle(a, &result);
    })
}

pub(super) fn trmv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: Input<T>,
    lda: i64,
    x: Output<T>,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Full(lda))?;
    multiply(call, operation, n, a, x, incx)
}

pub(super) fn trsv<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    diagonal: cublasDiagType_t,
    n: i64,
    a: Input<T>,
    lda: i64,
    x: Output<T>,
    incx: i64,
) -> Result {
    let a = call.triangle(Read, fill, diagonal, a, size(n)?, Storage::Full(lda))?;
    solve(call, operation, n, a, x, incx)
}

/// Multiplies a vector by a triangular matrix.
fn multiply<T: Number>(
    mut call: Call,
    operation: cublasOperation_t,
    n: i64,
    a: TriangleOperand,
    x: Output<T>,
    incx: i64,
) -> Result {
    let transform = Transform::from_raw(operation)?;
    if n == 0 {
        return Ok(());
    }
    let x = call.vector(ReadWrite, x, n, incx)?;
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
    x: Output<T>,
    incx: i64,
) -> Result {
    let transform = Transform::from_raw(operation)?;
    if n == 0 {
        return Ok(());
    }
    let x = call.vector(ReadWrite, x, n, incx)?;
    call.enqueue(move |memory| {
        let is_upper = a.is_upper != transform.flips();
        let result = memory
            .triangle::<T>(a, Other::Zero)
            .transformed(transform)
            .solve(is_upper, memory.column(x));
        memory.set_vector(x, &result.elements);
    })
}

/// Returns the transform that turns the first factor of an update into the second one.
pub(super) fn paired_transform(other: Other) -> Transform {
    if other == Other::Hermitian {
        Transform::Adjoint
    } else {
        Transform::Transposition
    }
}
