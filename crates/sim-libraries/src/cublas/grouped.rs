//! Products of groups of matrices of different shapes.

use std::ffi::{c_int, c_void};

use curium_blas::sys::{
    Api, cublasComputeType_t, cublasHandle_t, cublasOperation_t, cublasStatus_t, cudaDataType_t,
};
use half::{bf16, f16};

use super::call::Access::{Read, ReadWrite, Write};
use super::dense::Transform;
use super::mixed::{Narrow, set_narrow, wide};
use super::operand::MatrixOperand;
use super::{Call, INVALID, Result, code, size};

/// The parameters of all groups: arrays on the host with an element for each group, and arrays of pointers on the device.
struct Groups<I> {
    count: i64,
    sizes: *const I,
    operations: (*const cublasOperation_t, *const cublasOperation_t),
    shapes: [*const I; 3],
    leading: [*const I; 3],
    factors: (*const c_void, *const c_void),
    a: *const *const c_void,
    b: *const *const c_void,
    c: *const *mut c_void,
    types: [cudaDataType_t; 3],
    compute: cublasComputeType_t,
}

/// One product.
struct Product {
    a: (MatrixOperand, Transform),
    b: (MatrixOperand, Transform),
    c: MatrixOperand,
    factors: (f64, f64),
}

macro_rules! function {
    ($name:ident, $size:ty) => {
        unsafe extern "C" fn $name(
            handle: cublasHandle_t,
            on_a: *const cublasOperation_t,
            on_b: *const cublasOperation_t,
            m: *const $size,
            n: *const $size,
            k: *const $size,
            alpha: *const c_void,
            a: *const *const c_void,
            type_a: cudaDataType_t,
            lda: *const $size,
            b: *const *const c_void,
            type_b: cudaDataType_t,
            ldb: *const $size,
            beta: *const c_void,
            c: *const *mut c_void,
            type_c: cudaDataType_t,
            ldc: *const $size,
            count: $size,
            sizes: *const $size,
            compute: cublasComputeType_t,
        ) -> cublasStatus_t {
            let groups = Groups {
                count: count.into(),
                sizes,
                operations: (on_a, on_b),
                shapes: [m, n, k],
                leading: [lda, ldb, ldc],
                factors: (alpha, beta),
                a,
                b,
                c,
                types: [type_a, type_b, type_c],
                compute,
            };
            code(
                Call::new("cublasGemmGroupedBatchedEx", handle)
                    // SAFETY: the caller upholds the contract of the C function.
                    .and_then(|call| unsafe { gemm(call, &groups) }),
            )
        }
    };
}

function!(gemm_grouped, c_int);
function!(gemm_grouped_64, i64);

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasGemmGroupedBatchedEx = Some(gemm_grouped);
    api.cublasGemmGroupedBatchedEx_64 = Some(gemm_grouped_64);
}

/// Enqueues the products of the types that the groups name.
///
/// # Safety
///
/// The contract of `cublasGemmGroupedBatchedEx`.
unsafe fn gemm<I: Copy + Into<i64>>(call: Call, groups: &Groups<I>) -> Result {
    use cublasComputeType_t as Compute;
    use cudaDataType_t as Type;

    let [of, other, result] = groups.types;
    if of != other || of != result {
        return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
    }
    let enqueue = match (of, groups.compute) {
        (Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<f32, f32, I>,
        (Type::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F) => enqueue::<f64, f64, I>,
        (Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<f16, f32, I>,
        (Type::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F) => enqueue::<bf16, f32, I>,
        _ => return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED),
    };
    // SAFETY: the caller upholds the contract, and the types are those of the elements.
    unsafe { enqueue(call, groups) }
}

/// Enqueues products of matrices of `T` with factors of type `S`.
///
/// # Safety
///
/// The contract of `cublasGemmGroupedBatchedEx` for these types.
unsafe fn enqueue<T: Narrow, S: Narrow, I: Copy + Into<i64>>(
    mut call: Call,
    groups: &Groups<I>,
) -> Result {
    let count = size(groups.count)?;
    if !call.results_are_on_host() {
        return Err(INVALID);
    }
    // SAFETY: the caller passes an element of each array for each group.
    let at = |array: *const I, group: usize| -> i64 { unsafe { element(array, group) }.into() };
    let total =
        (0..count).try_fold(0, |total, group| Ok(total + size(at(groups.sizes, group))?))?;
    let pointers = (
        call.pointers(groups.a, total)?,
        call.pointers(groups.b, total)?,
        call.pointers(groups.c, total)?,
    );
    let (mut products, mut index) = (Vec::with_capacity(total), 0);
    for group in 0..count {
        // SAFETY: the caller passes an element of each array for each group.
        let transform = |array| Transform::of(unsafe { element(array, group) });
        let (on_a, on_b) = (
            transform(groups.operations.0)?,
            transform(groups.operations.1)?,
        );
        let [m, n, k] = groups.shapes.map(|array| size(at(array, group)));
        let (m, n, k) = (m?, n?, k?);
        let [lda, ldb, ldc] = groups.leading.map(|array| at(array, group));
        let factor = |array: *const c_void| {
            // SAFETY: the caller passes a factor for each group.
            unsafe { element(array.cast::<S>(), group) }.wide()
        };
        let factors = (factor(groups.factors.0), factor(groups.factors.1));
        let access = if factors.1 == 0.0 { Write } else { ReadWrite };
        for _ in 0..size(at(groups.sizes, group))? {
            products.push(Product {
                a: (
                    call.matrix_of::<T>(Read, (pointers.0, index), on_a.stored(m, k), lda)?,
                    on_a,
                ),
                b: (
                    call.matrix_of::<T>(Read, (pointers.1, index), on_b.stored(k, n), ldb)?,
                    on_b,
                ),
                c: call.matrix_of::<T>(access, (pointers.2, index), (m, n), ldc)?,
                factors,
            });
            index += 1;
        }
    }
    call.enqueue(move |memory| {
        for Product {
            a: (a, on_a),
            b: (b, on_b),
            c,
            factors,
        } in &products
        {
            let product = wide::<T>(memory, *a)
                .transformed(*on_a)
                .times(&wide::<T>(memory, *b).transformed(*on_b));
            let result = product
                .scaled(factors.0)
                .plus(factors.1, &wide::<T>(memory, *c));
            set_narrow::<T>(memory, *c, result);
        }
    })
}

/// Returns an element of an array on the host.
///
/// # Safety
///
/// The array has the element.
unsafe fn element<T: Copy>(array: *const T, index: usize) -> T {
    // SAFETY: the caller guarantees the element.
    unsafe { array.wrapping_add(index).read_unaligned() }
}
