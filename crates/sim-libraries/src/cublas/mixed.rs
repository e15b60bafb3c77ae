//! Products of matrices of 8 and 16 bits.

use std::ffi::{c_int, c_void};

use curium_blas::sys::{
    Api, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasStatus_t,
    cudaDataType_t,
};
use half::{bf16, f16};

use super::call::Access;
use super::call::Access::Read;
use super::dense::Transform;
use super::memory::Memory;
use super::operand::{MatrixOperand, Scalar};
use super::{Call, Dense, INVALID, Result, code, size};

/// A type of elements that is summed in `f64`, which holds each product and each sum of 8 and 16 bits.
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

/// The parameters of a product, or of a batch, whose matrices are those that arrays of pointers refer to.
struct Product {
    operations: (cublasOperation_t, cublasOperation_t),
    sizes: (i64, i64, i64),
    factors: (*const c_void, *const c_void),
    a: (*const c_void, i64),
    b: (*const c_void, i64),
    c: (*const c_void, i64),
    types: (cudaDataType_t, cudaDataType_t, cudaDataType_t),
    compute: cublasComputeType_t,
    /// The number of products of a batch.
    count: Option<i64>,
}

macro_rules! function {
    ($name:ident: $function:literal, $size:ty, $factor:ty, $result:ty$(, $count:ident)?) => {
        unsafe extern "C" fn $name(
            handle: cublasHandle_t,
            on_a: cublasOperation_t,
            on_b: cublasOperation_t,
            m: $size,
            n: $size,
            k: $size,
            alpha: *const c_void,
            a: $factor,
            type_a: cudaDataType_t,
            lda: $size,
            b: $factor,
            type_b: cudaDataType_t,
            ldb: $size,
            beta: *const c_void,
            c: $result,
            type_c: cudaDataType_t,
            ldc: $size,
            $($count: $size,)?
            compute: cublasComputeType_t,
            _algorithm: cublasGemmAlgo_t,
        ) -> cublasStatus_t {
            let product = Product {
                operations: (on_a, on_b),
                sizes: (m.into(), n.into(), k.into()),
                factors: (alpha, beta),
                a: (a.cast(), lda.into()),
                b: (b.cast(), ldb.into()),
                c: (c.cast(), ldc.into()),
                types: (type_a, type_b, type_c),
                compute,
                count: [$(i64::from($count))?].first().copied(),
            };
            // SAFETY: the caller upholds the contract of the C function.
            code(Call::new($function, handle).and_then(|call| unsafe { gemm(call, &product) }))
        }
    };
}

function!(gemm_ex: "cublasGemmEx", c_int, *const c_void, *mut c_void);
function!(gemm_ex_64: "cublasGemmEx", i64, *const c_void, *mut c_void);
function!(gemm_batched: "cublasGemmBatchedEx", c_int, *const *const c_void, *const *mut c_void, count);
function!(gemm_batched_64: "cublasGemmBatchedEx", i64, *const *const c_void, *const *mut c_void, count);

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasGemmEx = Some(gemm_ex);
    api.cublasGemmEx_64 = Some(gemm_ex_64);
    api.cublasGemmBatchedEx = Some(gemm_batched);
    api.cublasGemmBatchedEx_64 = Some(gemm_batched_64);
}

/// Enqueues products of the types that they name.
///
/// # Safety
///
/// The contract of `cublasGemmEx` or `cublasGemmBatchedEx`.
unsafe fn gemm(call: Call, product: &Product) -> Result {
    use cublasComputeType_t as Compute;
    use cudaDataType_t as Type;

    let (of, other, result) = product.types;
    if of != other {
        return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
    }
    let enqueue = match (of, result, product.compute) {
        (Type::CUDA_R_8I, Type::CUDA_R_32I, Compute::CUBLAS_COMPUTE_32I) => enqueue::<i8, i32, i32>,
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
        _ => return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED),
    };
    // SAFETY: the caller upholds the contract, and the types are those of the elements.
    unsafe { enqueue(call, product, if of == Type::CUDA_R_8I { 4 } else { 1 }) }
}

/// Enqueues products of matrices of `T` in elements of `C`, with factors of type `S`.
///
/// # Safety
///
/// The contract of `cublasGemmEx` or `cublasGemmBatchedEx` for these types.
unsafe fn enqueue<T: Narrow, C: Narrow, S: Narrow>(
    mut call: Call,
    product: &Product,
    granularity: i64,
) -> Result {
    let (on_a, on_b) = (
        Transform::of(product.operations.0)?,
        Transform::of(product.operations.1)?,
    );
    let (m, n, k) = (
        size(product.sizes.0)?,
        size(product.sizes.1)?,
        size(product.sizes.2)?,
    );
    if product.a.1 % granularity != 0 || product.b.1 % granularity != 0 {
        return Err(INVALID);
    }
    let count = product.count.map(size).transpose()?;
    if m == 0 || n == 0 || count == Some(0) {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar::<S>(product.factors.0.cast()) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar::<S>(product.factors.1.cast()) }?;
    let keeps = !matches!(beta, Scalar::Host(beta) if beta.wide() == 0.0);
    let access = if keeps {
        Access::ReadWrite
    } else {
        Access::Write
    };
    let a = operands::<T>(&mut call, Read, product.a, on_a.stored(m, k), count)?;
    let b = operands::<T>(&mut call, Read, product.b, on_b.stored(k, n), count)?;
    let c = operands::<C>(&mut call, access, product.c, (m, n), count)?;
    call.enqueue(move |memory| {
        for ((a, b), c) in a.iter().zip(&b).zip(&c) {
            let product = wide::<T>(memory, *a)
                .transformed(on_a)
                .times(&wide::<T>(memory, *b).transformed(on_b));
            let product = product.scaled(factor::<S>(memory, alpha));
            let result = product.plus(factor::<S>(memory, beta), &wide::<C>(memory, *c));
            set_narrow::<C>(memory, *c, result);
        }
    })
}

/// Adds a matrix, or those that an array of pointers refers to.
fn operands<T: Narrow>(
    call: &mut Call,
    access: Access,
    (first, leading): (*const c_void, i64),
    sizes: (usize, usize),
    count: Option<usize>,
) -> Result<Vec<MatrixOperand>> {
    let Some(count) = count else {
        return Ok(vec![call.matrix::<T>(
            access,
            first.cast(),
            sizes,
            leading,
        )?]);
    };
    let array = call.pointers(first, count)?;
    (0..count)
        .map(|index| call.matrix_of::<T>(access, (array, index), sizes, leading))
        .collect()
}

/// Returns a matrix in `f64`.
pub(super) fn wide<T: Narrow>(memory: &Memory<'_>, matrix: MatrixOperand) -> Dense<f64> {
    let elements = memory
        .elements::<T>(matrix)
        .into_iter()
        .map(Narrow::wide)
        .collect();
    Dense::new(matrix.rows, matrix.columns, elements)
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
