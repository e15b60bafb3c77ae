//! Products of matrices of the types that arguments name.

use std::ffi::{c_int, c_longlong, c_void};

use curium_sys::cublas::{
    Api, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasStatus_t,
    cudaDataType_t,
};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use super::call::Access;
use super::call::Access::Read;
use super::dense::Transform;
use super::memory::Memory;
use super::operand::{
    Input, MatrixArgument, MatrixOperand, PointerArgument, Scalar, ScalarInput, Shape,
};
use super::{Call, Dense, INVALID, Number, Result, code, level3, size};

/// A type of elements that is summed in `f64`, which is exact for products and sums of 8 and 16
/// bits.
pub(super) trait Narrow: bytemuck::Pod + Send + Sync + 'static {
    fn wide(self) -> f64;
    fn narrow(value: f64) -> Self;
}

macro_rules! narrow {
    ($($ty:ty: |$value:ident| $wide:expr, |$sum:ident| $narrow:expr;)*) => {
        $(
            impl Narrow for $ty {
                fn wide(self) -> f64 {
                    let $value = self;
                    $wide
                }

                fn narrow($sum: f64) -> Self {
                    $narrow
                }
            }
        )*
    };
}

narrow! {
    i8: |value| f64::from(value), |sum| sum as Self;
    i32: |value| f64::from(value), |sum| sum as Self;
    f16: |value| value.to_f64(), |sum| Self::from_f32(sum as f32);
    bf16: |value| value.to_f64(), |sum| Self::from_f32(sum as f32);
    f32: |value| f64::from(value), |sum| sum as Self;
    f64: |value| value, |sum| sum;
}

/// The arguments of a product, or of a batch, whose matrices are those that arrays of pointers
/// refer to.
struct Product {
    operation_a: cublasOperation_t,
    operation_b: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: ScalarInput<c_void>,
    a: MatrixArgument<Input<c_void>>,
    b: MatrixArgument<Input<c_void>>,
    beta: ScalarInput<c_void>,
    c: MatrixArgument<Input<c_void>>,
    type_a: cudaDataType_t,
    type_b: cudaDataType_t,
    type_c: cudaDataType_t,
    compute: cublasComputeType_t,
    batch: Batch,
}

/// The matrices of a product.
#[derive(Clone, Copy)]
enum Batch {
    Single,
    /// The arguments are arrays of pointers to the matrices.
    Pointers {
        count: i64,
    },
    /// The matrices of each argument are a stride apart.
    Strided {
        count: i64,
        stride_a: i64,
        stride_b: i64,
        stride_c: i64,
    },
}

/// Converts a pointer that a C function gets.
macro_rules! argument {
    ($pointer:expr) => {
        // SAFETY: the contract of the C function guarantees its pointers.
        unsafe { PointerArgument::from_raw($pointer) }
    };
}

macro_rules! function {
    ($name:ident: $function:literal, $size:ty, $factor:ty, $result:ty => $as_const:ident,
        ($($stride_a:ident)?), ($($stride_b:ident)?), ($($stride_c:ident)?), ($($count:ident)?), $batch:expr) => {
        unsafe extern "C" fn $name(
            handle: cublasHandle_t,
            operation_a: cublasOperation_t,
            operation_b: cublasOperation_t,
            m: $size,
            n: $size,
            k: $size,
            alpha: *const c_void,
            a: $factor,
            type_a: cudaDataType_t,
            lda: $size,
            $($stride_a: c_longlong,)?
            b: $factor,
            type_b: cudaDataType_t,
            ldb: $size,
            $($stride_b: c_longlong,)?
            beta: *const c_void,
            c: $result,
            type_c: cudaDataType_t,
            ldc: $size,
            $($stride_c: c_longlong,)?
            $($count: $size,)?
            compute: cublasComputeType_t,
            _algorithm: cublasGemmAlgo_t,
        ) -> cublasStatus_t {
            let product = Product {
                operation_a,
                operation_b,
                m: m.into(),
                n: n.into(),
                k: k.into(),
                alpha: argument!(alpha),
                a: MatrixArgument {
                    pointer: argument!(a.cast()),
                    leading_dimension: lda.into(),
                },
                b: MatrixArgument {
                    pointer: argument!(b.cast()),
                    leading_dimension: ldb.into(),
                },
                beta: argument!(beta),
                c: MatrixArgument {
                    pointer: argument!(c.$as_const()),
                    leading_dimension: ldc.into(),
                },
                type_a,
                type_b,
                type_c,
                compute,
                batch: $batch,
            };
            code(Call::new($function, handle).and_then(|call| gemm(call, &product)))
        }
    };
}

macro_rules! functions {
    ($size:ty: $single:ident, $batched:ident, $strided:ident) => {
        function!($single: "cublasGemmEx", $size, *const c_void, *mut c_void => cast_const,
            (), (), (), (), Batch::Single);
        function!($batched: "cublasGemmBatchedEx", $size, *const *const c_void, *const *mut c_void => cast,
            (), (), (), (count), Batch::Pointers { count: count.into() });
        function!($strided: "cublasGemmStridedBatchedEx", $size, *const c_void, *mut c_void => cast_const,
            (stride_a), (stride_b), (stride_c), (count),
            Batch::Strided { count: count.into(), stride_a, stride_b, stride_c });
    };
}

functions!(c_int: gemm_ex, gemm_batched, gemm_strided);
functions!(i64: gemm_ex_64, gemm_batched_64, gemm_strided_64);

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasGemmEx = Some(gemm_ex);
    api.cublasGemmEx_64 = Some(gemm_ex_64);
    api.cublasGemmBatchedEx = Some(gemm_batched);
    api.cublasGemmBatchedEx_64 = Some(gemm_batched_64);
    api.cublasGemmStridedBatchedEx = Some(gemm_strided);
    api.cublasGemmStridedBatchedEx_64 = Some(gemm_strided_64);
}

/// Enqueues products of the types that they name.
fn gemm(call: Call, product: &Product) -> Result {
    use cublasComputeType_t as Compute;
    use cudaDataType_t as Type;

    if product.type_a != product.type_b {
        return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
    }
    match (product.type_a, product.type_c, product.compute) {
        (Type::CUDA_C_32F, Type::CUDA_C_32F, Compute::CUBLAS_COMPUTE_32F) => {
            return complex::<Complex32>(call, product);
        }
        (Type::CUDA_C_64F, Type::CUDA_C_64F, Compute::CUBLAS_COMPUTE_64F) => {
            return complex::<Complex64>(call, product);
        }
        _ => {}
    }
    let enqueue = match (product.type_a, product.type_c, product.compute) {
        (Type::CUDA_R_8I, Type::CUDA_R_32I, Compute::CUBLAS_COMPUTE_32I) => enqueue::<i8, i32, i32>,
        (Type::CUDA_R_16F, Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_16F) => {
            enqueue::<f16, f16, f16>
        }
        (Type::CUDA_R_16F, Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F) => {
            enqueue::<f16, f16, f32>
        }
        (Type::CUDA_R_16F, Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F) => {
            enqueue::<f16, f32, f32>
        }
        (Type::CUDA_R_16BF, Type::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F) => {
            enqueue::<bf16, bf16, f32>
        }
        (Type::CUDA_R_16BF, Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F) => {
            enqueue::<bf16, f32, f32>
        }
        (
            Type::CUDA_R_32F,
            Type::CUDA_R_32F,
            Compute::CUBLAS_COMPUTE_32F
            | Compute::CUBLAS_COMPUTE_32F_FAST_16F
            | Compute::CUBLAS_COMPUTE_32F_FAST_16BF
            | Compute::CUBLAS_COMPUTE_32F_FAST_TF32,
        ) => enqueue::<f32, f32, f32>,
        (Type::CUDA_R_64F, Type::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F) => {
            enqueue::<f64, f64, f64>
        }
        _ => return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED),
    };
    let granularity = if product.type_a == Type::CUDA_R_8I {
        4
    } else {
        1
    };
    enqueue(call, product, granularity)
}

/// Enqueues products of complex matrices: the routine of their type.
fn complex<T: Number>(call: Call, product: &Product) -> Result {
    let Product {
        operation_a,
        operation_b,
        m,
        n,
        k,
        a,
        b,
        c,
        ..
    } = *product;
    let alpha = product.alpha.cast();
    let beta = product.beta.cast();
    match product.batch {
        Batch::Single => level3::gemm::<T>(
            call,
            operation_a,
            operation_b,
            m,
            n,
            k,
            alpha,
            a.pointer.cast(),
            a.leading_dimension,
            b.pointer.cast(),
            b.leading_dimension,
            beta,
            c.pointer.cast().as_output(),
            c.leading_dimension,
        ),
        Batch::Pointers { count } => level3::gemm_batched::<T>(
            call,
            operation_a,
            operation_b,
            m,
            n,
            k,
            alpha,
            a.pointer.cast(),
            a.leading_dimension,
            b.pointer.cast(),
            b.leading_dimension,
            beta,
            c.pointer.cast(),
            c.leading_dimension,
            count,
        ),
        Batch::Strided {
            count,
            stride_a,
            stride_b,
            stride_c,
        } => level3::gemm_strided_batched::<T>(
            call,
            operation_a,
            operation_b,
            m,
            n,
            k,
            alpha,
            a.pointer.cast(),
            a.leading_dimension,
            stride_a,
            b.pointer.cast(),
            b.leading_dimension,
            stride_b,
            beta,
            c.pointer.cast().as_output(),
            c.leading_dimension,
            stride_c,
            count,
        ),
    }
}

/// Enqueues products of matrices of `T` in elements of `C`, with factors of type `S`.
fn enqueue<T: Narrow, C: Narrow, S: Narrow>(
    mut call: Call,
    product: &Product,
    granularity: i64,
) -> Result {
    let transform_a = Transform::from_raw(product.operation_a)?;
    let transform_b = Transform::from_raw(product.operation_b)?;
    let Product { a, b, c, .. } = product;
    let shape = Shape::checked(product.m, product.n)?;
    let k = size(product.k)?;
    if a.leading_dimension % granularity != 0 || b.leading_dimension % granularity != 0 {
        return Err(INVALID);
    }
    let count = match product.batch {
        Batch::Single => 1,
        Batch::Pointers { count } | Batch::Strided { count, .. } => size(count)?,
    };
    if shape.is_empty() || count == 0 {
        return Ok(());
    }
    let alpha = call.scalar(product.alpha.cast::<S>())?;
    let beta = call.scalar(product.beta.cast::<S>())?;
    let is_overwritten = matches!(beta, Scalar::Host(beta) if beta.wide() == 0.0);
    let access = if is_overwritten {
        Access::Write
    } else {
        Access::ReadWrite
    };
    let shape_a = transform_a.stored(shape.rows, k);
    let shape_b = transform_b.stored(k, shape.columns);
    let strides = match product.batch {
        Batch::Single => Some([0; 3]),
        Batch::Pointers { .. } => None,
        Batch::Strided {
            stride_a,
            stride_b,
            stride_c,
            ..
        } => Some([stride_a, stride_b, stride_c]),
    };
    let [stride_a, stride_b, stride_c] =
        [0, 1, 2].map(|operand| strides.map(|strides| strides[operand]));
    let a = operands::<T>(&mut call, Read, *a, shape_a, count, stride_a)?;
    let b = operands::<T>(&mut call, Read, *b, shape_b, count, stride_b)?;
    let c = operands::<C>(&mut call, access, *c, shape, count, stride_c)?;
    call.enqueue(move |memory| {
        for ((a, b), c) in a.iter().zip(&b).zip(&c) {
            let product = wide::<T>(memory, *a)
                .transformed(transform_a)
                .times(&wide::<T>(memory, *b).transformed(transform_b));
            let product = product.scaled(factor::<S>(memory, alpha));
            let result = product.plus(factor::<S>(memory, beta), &wide::<C>(memory, *c));
            set_narrow::<C>(memory, *c, result);
        }
    })
}

/// Adds matrices: those that are a stride apart, or without a stride, those that an array of
/// pointers refers to.
fn operands<T: Narrow>(
    call: &mut Call,
    access: Access,
    matrix: MatrixArgument<Input<c_void>>,
    shape: Shape,
    count: usize,
    stride: Option<i64>,
) -> Result<Vec<MatrixOperand>> {
    let leading = matrix.leading_dimension;
    let Some(stride) = stride else {
        let array = call.pointers(matrix.pointer, count)?;
        return (0..count)
            .map(|index| call.indirect_matrix::<T>(access, array, index, shape, leading))
            .collect();
    };
    let bytes = stride * size_of::<T>() as i64;
    (0..count as i64)
        .map(|index| {
            let first = matrix.pointer.cast::<T>().byte_offset(index * bytes);
            call.matrix(access, first, shape, leading)
        })
        .collect()
}

/// Returns a matrix in `f64`.
pub(super) fn wide<T: Narrow>(memory: &Memory<'_>, matrix: MatrixOperand) -> Dense<f64> {
    let elements = memory
        .elements::<T>(matrix)
        .into_iter()
        .map(Narrow::wide)
        .collect();
    Dense::new(matrix.shape, elements)
}

/// Stores a matrix in elements of `T`.
pub(super) fn set_narrow<T: Narrow>(
    memory: &mut Memory<'_>,
    matrix: MatrixOperand,
    values: Dense<f64>,
) {
    let elements: Vec<T> = values.elements.into_iter().map(T::narrow).collect();
    memory.set_elements(matrix, &elements);
}

fn factor<S: Narrow>(memory: &Memory<'_>, scalar: Scalar<S>) -> f64 {
    memory.scalar(scalar).wide()
}
