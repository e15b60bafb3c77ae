//! Level 3: operations on matrices.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

mod batched;
mod triangular;

use curium_sys::cublas::{cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t};

pub(super) use self::batched::{gemm_batched, trsm_batched};
pub(super) use self::triangular::{trmm, trsm};
use super::call::Access;
use super::call::Access::{Read, Write};
use super::dense::Transform;
use super::level2::paired_transform;
use super::memory::Memory;
use super::operand::{
    Input, MatrixArgument, Other, Output, ScalarInput, Shape, Storage, TriangleOperand,
};
use super::{Call, Dense, INVALID, Number, Result, size};

const STORED: cublasDiagType_t = cublasDiagType_t::CUBLAS_DIAG_NON_UNIT;

pub(super) fn gemm<T: Number>(
    call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    b: Input<T>,
    ldb: i64,
    beta: ScalarInput<T>,
    c: Output<T>,
    ldc: i64,
) -> Result {
    Products {
        operation_a,
        operation_b,
        m,
        n,
        k,
        alpha,
        a: StridedMatrix {
            pointer: a,
            leading_dimension: lda,
            stride: 0,
        },
        b: StridedMatrix {
            pointer: b,
            leading_dimension: ldb,
            stride: 0,
        },
        beta,
        c: StridedMatrix {
            pointer: c,
            leading_dimension: ldc,
            stride: 0,
        },
        count: 1,
    }
    .enqueue(call)
}

pub(super) fn gemm_strided_batched<T: Number>(
    call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    stride_a: i64,
    b: Input<T>,
    ldb: i64,
    stride_b: i64,
    beta: ScalarInput<T>,
    c: Output<T>,
    ldc: i64,
    stride_c: i64,
    count: i64,
) -> Result {
    Products {
        operation_a,
        operation_b,
        m,
        n,
        k,
        alpha,
        a: StridedMatrix {
            pointer: a,
            leading_dimension: lda,
            stride: stride_a,
        },
        b: StridedMatrix {
            pointer: b,
            leading_dimension: ldb,
            stride: stride_b,
        },
        beta,
        c: StridedMatrix {
            pointer: c,
            leading_dimension: ldc,
            stride: stride_c,
        },
        count,
    }
    .enqueue(call)
}

/// A matrix in device memory, but for its shape, and the distance to the next one in elements.
struct StridedMatrix<P> {
    pointer: P,
    leading_dimension: i64,
    stride: i64,
}

/// The arguments of `count` products.
struct Products<T> {
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: StridedMatrix<Input<T>>,
    b: StridedMatrix<Input<T>>,
    beta: ScalarInput<T>,
    c: StridedMatrix<Output<T>>,
    count: i64,
}

impl<T: Number> Products<T> {
    fn enqueue(self, mut call: Call) -> Result {
        let Self { a, b, c, .. } = self;
        let transform_a = Transform::from_raw(self.operation_a)?;
        let transform_b = Transform::from_raw(self.operation_b)?;
        let shape = Shape::checked(self.m, self.n)?;
        let k = size(self.k)?;
        let count = size(self.count)?;
        if shape.is_empty() || count == 0 {
            return Ok(());
        }
        let alpha = call.scalar(self.alpha)?;
        let beta = call.scalar(self.beta)?;
        let a = call.matrices(
            Read,
            a.pointer,
            transform_a.stored(shape.rows, k),
            a.leading_dimension,
            a.stride,
            count,
        )?;
        let b = call.matrices(
            Read,
            b.pointer,
            transform_b.stored(k, shape.columns),
            b.leading_dimension,
            b.stride,
            count,
        )?;
        let c = call.matrices(
            Access::for_result(beta),
            c.pointer,
            shape,
            c.leading_dimension,
            c.stride,
            count,
        )?;
        call.enqueue(move |memory| {
            let alpha = memory.scalar(alpha);
            let beta = memory.scalar(beta);
            let a = memory.matrices::<T>(a);
            let b = memory.matrices::<T>(b);
            let mut results = memory.matrices::<T>(c);
            for (index, result) in results.iter_mut().enumerate() {
                // A factor without elements has no matrices.
                let product = match (a.get(index), b.get(index)) {
                    (Some(a), Some(b)) => a
                        .clone()
                        .transformed(transform_a)
                        .times(&b.clone().transformed(transform_b)),
                    _ => Dense::from_fn(shape.rows, shape.columns, |_, _| T::zero()),
                };
                *result = product.scaled(alpha).plus(beta, result);
            }
            memory.set_matrices(c, &results);
        })
    }
}

pub(super) fn geam<T: Number>(
    mut call: Call,
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    beta: ScalarInput<T>,
    b: Input<T>,
    ldb: i64,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let transform_a = Transform::from_raw(operation_a)?;
    let transform_b = Transform::from_raw(operation_b)?;
    let m = size(m)?;
    let n = size(n)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let beta = call.scalar(beta)?;
    let a = call.matrix(Read, a, transform_a.stored(m, n), lda)?;
    let b = call.matrix(Read, b, transform_b.stored(m, n), ldb)?;
    let c = call.matrix(Write, c, Shape::new(m, n), ldc)?;
    call.enqueue(move |memory| {
        let alpha = memory.scalar::<T>(alpha);
        let beta = memory.scalar(beta);
        let a = memory.matrix(a).transformed(transform_a);
        let b = memory.matrix(b).transformed(transform_b);
        let zero = Dense::from_fn(m, n, |_, _| T::zero());
        memory.set_matrix(c, &zero.plus(alpha, &a).plus(beta, &b));
    })
}

pub(super) fn dgmm<T: Number>(
    mut call: Call,
    side: cublasSideMode_t,
    m: i64,
    n: i64,
    a: Input<T>,
    lda: i64,
    x: Input<T>,
    incx: i64,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let is_left = is_left(side)?;
    let m = size(m)?;
    let n = size(n)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let x = call.vector(Read, x, if is_left { m } else { n } as i64, incx)?;
    let a = call.matrix(Read, a, Shape::new(m, n), lda)?;
    let c = call.matrix(Write, c, Shape::new(m, n), ldc)?;
    call.enqueue(move |memory| {
        let a = memory.matrix::<T>(a);
        let x = memory.vector::<T>(x);
        let result = Dense::from_fn(m, n, |row, column| {
            a.at(row, column) * x[if is_left { row } else { column }]
        });
        memory.set_matrix(c, &result);
    })
}

/// Declares the products of a symmetric or Hermitian matrix and a general one.
macro_rules! product {
    ($name:ident, $other:expr) => {
        pub(super) fn $name<T: Number>(
            mut call: Call,
            side: cublasSideMode_t,
            fill: cublasFillMode_t,
            m: i64,
            n: i64,
            alpha: ScalarInput<T>,
            a: Input<T>,
            lda: i64,
            b: Input<T>,
            ldb: i64,
            beta: ScalarInput<T>,
            c: Output<T>,
            ldc: i64,
        ) -> Result {
            let is_left = is_left(side)?;
            let m = size(m)?;
            let n = size(n)?;
            if m == 0 || n == 0 {
                return Ok(());
            }
            let alpha = call.scalar(alpha)?;
            let beta = call.scalar(beta)?;
            let a = call.triangle(
                Read,
                fill,
                STORED,
                a,
                if is_left { m } else { n },
                Storage::Full(lda),
            )?;
            let b = call.matrix(Read, b, Shape::new(m, n), ldb)?;
            let c = call.matrix(Access::for_result(beta), c, Shape::new(m, n), ldc)?;
            call.enqueue(move |memory| {
                let a = memory.triangle::<T>(a, $other);
                let b = memory.matrix(b);
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

pub(super) fn syrk<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    beta: ScalarInput<T>,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let alpha = call.scalar(alpha)?;
    let beta = call.scalar(beta)?;
    let arguments = Update {
        fill,
        operation,
        n: size(n)?,
        k: size(k)?,
        c: MatrixArgument {
            pointer: c,
            leading_dimension: ldc,
        },
        access: Access::for_result(beta),
        other: Other::Symmetric,
    };
    update(
        call,
        arguments,
        MatrixArgument {
            pointer: a,
            leading_dimension: lda,
        },
        move |memory| UpdateFactors {
            alpha: memory.scalar(alpha),
            second_alpha: memory.scalar(alpha),
            beta: memory.scalar(beta),
        },
    )
}

pub(super) fn herk<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: ScalarInput<T::Absolute>,
    a: Input<T>,
    lda: i64,
    beta: ScalarInput<T::Absolute>,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let alpha = call.scalar(alpha)?;
    let beta = call.scalar(beta)?;
    let arguments = Update {
        fill,
        operation,
        n: size(n)?,
        k: size(k)?,
        c: MatrixArgument {
            pointer: c,
            leading_dimension: ldc,
        },
        access: Access::for_result(beta),
        other: Other::Hermitian,
    };
    update(
        call,
        arguments,
        MatrixArgument {
            pointer: a,
            leading_dimension: lda,
        },
        move |memory| UpdateFactors {
            alpha: T::from_real(memory.scalar(alpha)),
            second_alpha: T::from_real(memory.scalar(alpha)),
            beta: T::from_real(memory.scalar(beta)),
        },
    )
}

/// The arguments of an update of one triangle of a square matrix, but for its factors.
#[derive(Clone, Copy)]
struct Update<T> {
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: usize,
    k: usize,
    c: MatrixArgument<Output<T>>,
    access: Access,
    other: Other,
}

/// The factors of an update of one triangle.
struct UpdateFactors<T> {
    alpha: T,
    /// The factor of the second product of an update by two matrices.
    second_alpha: T,
    /// The factor of the previous content.
    beta: T,
}

impl<T: Number> Update<T> {
    fn operand(&self, call: &mut Call) -> Result<TriangleOperand> {
        let storage = Storage::Full(self.c.leading_dimension);
        call.triangle(
            self.access,
            self.fill,
            STORED,
            self.c.pointer,
            self.n,
            storage,
        )
    }
}

/// Adds a multiple of a · a, transposed or its adjoint, to a triangle.
fn update<T: Number>(
    mut call: Call,
    arguments: Update<T>,
    a: MatrixArgument<Input<T>>,
    factors: impl Fn(&Memory<'_>) -> UpdateFactors<T> + Send + Sync + 'static,
) -> Result {
    let transform = Transform::from_raw(arguments.operation)?;
    if arguments.n == 0 {
        return Ok(());
    }
    let shape = transform.stored(arguments.n, arguments.k);
    let a = call.matrix(Read, a.pointer, shape, a.leading_dimension)?;
    let c = arguments.operand(&mut call)?;
    let other = arguments.other;
    call.enqueue(move |memory| {
        let UpdateFactors { alpha, beta, .. } = factors(memory);
        let a = memory.matrix::<T>(a).transformed(transform);
        let product = a.times(&a.clone().transformed(paired_transform(other)));
        let result = product.scaled(alpha).plus(beta, &memory.triangle(c, other));
        memory.set_triangle(c, &result);
    })
}

pub(super) fn syr2k<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    b: Input<T>,
    ldb: i64,
    beta: ScalarInput<T>,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let alpha = call.scalar(alpha)?;
    let beta = call.scalar(beta)?;
    let arguments = Update {
        fill,
        operation,
        n: size(n)?,
        k: size(k)?,
        c: MatrixArgument {
            pointer: c,
            leading_dimension: ldc,
        },
        access: Access::for_result(beta),
        other: Other::Symmetric,
    };
    update_by_two(
        call,
        arguments,
        MatrixArgument {
            pointer: a,
            leading_dimension: lda,
        },
        MatrixArgument {
            pointer: b,
            leading_dimension: ldb,
        },
        move |memory| UpdateFactors {
            alpha: memory.scalar(alpha),
            second_alpha: memory.scalar(alpha),
            beta: memory.scalar(beta),
        },
    )
}

pub(super) fn her2k<T: Number>(
    mut call: Call,
    fill: cublasFillMode_t,
    operation: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: ScalarInput<T>,
    a: Input<T>,
    lda: i64,
    b: Input<T>,
    ldb: i64,
    beta: ScalarInput<T::Absolute>,
    c: Output<T>,
    ldc: i64,
) -> Result {
    let alpha = call.scalar(alpha)?;
    let beta = call.scalar(beta)?;
    let arguments = Update {
        fill,
        operation,
        n: size(n)?,
        k: size(k)?,
        c: MatrixArgument {
            pointer: c,
            leading_dimension: ldc,
        },
        access: Access::for_result(beta),
        other: Other::Hermitian,
    };
    update_by_two(
        call,
        arguments,
        MatrixArgument {
            pointer: a,
            leading_dimension: lda,
        },
        MatrixArgument {
            pointer: b,
            leading_dimension: ldb,
        },
        move |memory| {
            let alpha: T = memory.scalar(alpha);
            UpdateFactors {
                alpha,
                second_alpha: alpha.conj(),
                beta: T::from_real(memory.scalar(beta)),
            }
        },
    )
}

/// Adds multiples of a · b and b · a, the second factor transposed or its adjoint, to a triangle.
fn update_by_two<T: Number>(
    mut call: Call,
    arguments: Update<T>,
    a: MatrixArgument<Input<T>>,
    b: MatrixArgument<Input<T>>,
    factors: impl Fn(&Memory<'_>) -> UpdateFactors<T> + Send + Sync + 'static,
) -> Result {
    let transform = Transform::from_raw(arguments.operation)?;
    if arguments.n == 0 {
        return Ok(());
    }
    let shape = transform.stored(arguments.n, arguments.k);
    let a = call.matrix(Read, a.pointer, shape, a.leading_dimension)?;
    let b = call.matrix(Read, b.pointer, shape, b.leading_dimension)?;
    let c = arguments.operand(&mut call)?;
    let other = arguments.other;
    call.enqueue(move |memory| {
        let UpdateFactors {
            alpha,
            second_alpha,
            beta,
        } = factors(memory);
        let a = memory.matrix::<T>(a).transformed(transform);
        let b = memory.matrix::<T>(b).transformed(transform);
        let pair = paired_transform(other);
        let sum = a
            .times(&b.clone().transformed(pair))
            .scaled(alpha)
            .plus(second_alpha, &b.times(&a.clone().transformed(pair)));
        memory.set_triangle(c, &sum.plus(beta, &memory.triangle(c, other)));
    })
}

fn is_left(side: cublasSideMode_t) -> Result<bool> {
    match side {
        cublasSideMode_t::CUBLAS_SIDE_LEFT => Ok(true),
        cublasSideMode_t::CUBLAS_SIDE_RIGHT => Ok(false),
        _ => Err(INVALID),
    }
}
