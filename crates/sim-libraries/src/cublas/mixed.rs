//! Products of matrices of 8 and 16 bits.

use std::ffi::{c_int, c_void};

use curium_blas::sys::{
    Api, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasStatus_t, cudaDataType_t,
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

/// The parameters of a product.
struct Product {
    operations: (cublasOperation_t, cublasOperation_t),
    sizes: (i64, i64, i64),
    factors: (*const c_void, *const c_void),
    a: (*const c_void, i64),
    b: (*const c_void, i64),
    c: (*mut c_void, i64),
    types: (cudaDataType_t, cudaDataType_t, cudaDataType_t),
    compute: cublasComputeType_t,
}

macro_rules! function {
    ($name:ident, $size:ty) => {
        unsafe extern "C" fn $name(
            handle: cublasHandle_t,
            on_a: cublasOperation_t,
            on_b: cublasOperation_t,
            m: $size,
            n: $size,
            k: $size,
            alpha: *const c_void,
            a: *const c_void,
            type_a: cudaDataType_t,
            lda: $size,
            b: *const c_void,
            type_b: cudaDataType_t,
            ldb: $size,
            beta: *const c_void,
            c: *mut c_void,
            type_c: cudaDataType_t,
            ldc: $size,
            compute: cublasComputeType_t,
            _algorithm: cublasGemmAlgo_t,
        ) -> cublasStatus_t {
            let product = Product {
                operations: (on_a, on_b),
                sizes: (m.into(), n.into(), k.into()),
                factors: (alpha, beta),
                a: (a, lda.into()),
                b: (b, ldb.into()),
                c: (c, ldc.into()),
                types: (type_a, type_b, type_c),
                compute,
            };
            // SAFETY: the caller upholds the contract of the C function.
            code(Call::new("cublasGemmEx", handle).and_then(|call| unsafe { gemm(call, &product) }))
        }
    };
}

function!(gemm_ex, c_int);
function!(gemm_ex_64, i64);

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasGemmEx = Some(gemm_ex);
    api.cublasGemmEx_64 = Some(gemm_ex_64);
}

/// Enqueues a product of the types that it names.
///
/// # Safety
///
/// The contract of `cublasGemmEx`.
unsafe fn gemm(call: Call, product: &Product) -> Result {
    use cublasComputeType_t as Compute;
    use cudaDataType_t as Type;

    let (of, other, result) = product.types;
    if of != other {
        return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
    }
    let enqueue = match (of, result, product.compute) {
        (Type::CUDA_R_8I, Type::CUDA_R_32I, Compute::CUBLAS_COMPUTE_32I) => enqueue::<i8, i32, i32>,
        (Type::CUDA_R_16F, Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<f16, f16, f32>,
        (Type::CUDA_R_16F, Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<f16, f32, f32>,
        (Type::CUDA_R_16BF, Type::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F) => enqueue::<bf16, bf16, f32>,
        (Type::CUDA_R_16BF, Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<bf16, f32, f32>,
        _ => return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED),
    };
    // SAFETY: the caller upholds the contract, and the types are those of the elements.
    unsafe { enqueue(call, product, if of == Type::CUDA_R_8I { 4 } else { 1 }) }
}

/// Enqueues a product of matrices of `T` in elements of `C`, with factors of type `S`.
///
/// # Safety
///
/// The contract of `cublasGemmEx` for these types.
unsafe fn enqueue<T: Narrow, C: Narrow, S: Narrow>(mut call: Call, product: &Product, granularity: i64) -> Result {
    let (on_a, on_b) = (Transform::of(product.operations.0)?, Transform::of(product.operations.1)?);
    let (m, n, k) = (size(product.sizes.0)?, size(product.sizes.1)?, size(product.sizes.2)?);
    if product.a.1 % granularity != 0 || product.b.1 % granularity != 0 {
        return Err(INVALID);
    }
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar::<S>(product.factors.0.cast()) }?;
    // SAFETY: the caller passes a factor.
    let beta = unsafe { call.scalar::<S>(product.factors.1.cast()) }?;
    let keeps = !matches!(beta, Scalar::Host(beta) if beta.wide() == 0.0);
    let access = if keeps { Access::ReadWrite } else { Access::Write };
    let a = call.matrix::<T>(Read, product.a.0.cast(), on_a.stored(m, k), product.a.1)?;
    let b = call.matrix::<T>(Read, product.b.0.cast(), on_b.stored(k, n), product.b.1)?;
    let c = call.matrix::<C>(access, product.c.0.cast(), (m, n), product.c.1)?;
    call.enqueue(move |memory| {
        let product = wide::<T>(memory, a).transformed(on_a).times(&wide::<T>(memory, b).transformed(on_b));
        let product = product.scaled(factor::<S>(memory, alpha));
        let result = product.plus(factor::<S>(memory, beta), &wide::<C>(memory, c));
        set_narrow::<C>(memory, c, result);
    })
}

/// Returns a matrix in `f64`.
pub(super) fn wide<T: Narrow>(memory: &Memory<'_>, matrix: MatrixOperand) -> Dense<f64> {
    let elements = memory.elements::<T>(matrix).into_iter().map(Narrow::wide).collect();
    Dense::new(matrix.rows, matrix.columns, elements)
}

/// Stores a matrix in elements of `T`.
pub(super) fn set_narrow<T: Narrow>(memory: &mut Memory<'_>, matrix: MatrixOperand, values: Dense<f64>) {
    let elements: Vec<T> = values.elements.into_iter().map(T::narrow).collect();
    memory.set_elements(matrix, &elements);
}

fn factor<S: Narrow>(memory: &Memory<'_>, scalar: Scalar<S>) -> f64 {
    memory.scalar(scalar).wide()
}
