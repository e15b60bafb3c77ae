//! Products of groups of matrices of different shapes.

use std::ffi::{c_int, c_void};

use curium_sys::cublas::{
    Api, cublasComputeType_t, cublasHandle_t, cublasOperation_t, cublasStatus_t, cudaDataType_t,
};
use half::{bf16, f16};

use super::call::Access::{Read, ReadWrite, Write};
use super::dense::Transform;
use super::mixed::{Narrow, set_narrow, wide};
use super::operand::{Input, MatrixOperand, PointerArgument, Shape};
use super::{Call, INVALID, Result, code, size};

/// The arguments of all groups: arrays on the host with an element for each group, and arrays of
/// pointers on the device.
struct Groups<I> {
    count: i64,
    operation_a: HostArray<cublasOperation_t>,
    operation_b: HostArray<cublasOperation_t>,
    m: HostArray<I>,
    n: HostArray<I>,
    k: HostArray<I>,
    alpha: HostArray<c_void>,
    a: Input<*const c_void>,
    lda: HostArray<I>,
    b: Input<*const c_void>,
    ldb: HostArray<I>,
    beta: HostArray<c_void>,
    c: Input<*mut c_void>,
    ldc: HostArray<I>,
    /// The numbers of products.
    sizes: HostArray<I>,
    type_a: cudaDataType_t,
    type_b: cudaDataType_t,
    type_c: cudaDataType_t,
    compute: cublasComputeType_t,
}

/// An array on the host with an element for each group.
struct HostArray<T>(*const T);

impl<T> HostArray<T> {
    /// # Safety
    ///
    /// The array has an element for each group, of type `T`, or of the type that the data types of
    /// the operation determine if `T` is `void`.
    unsafe fn new(first: *const T) -> Self {
        Self(first)
    }

    fn cast<U>(&self) -> HostArray<U> {
        HostArray(self.0.cast())
    }

    /// Returns the element of a group, whose number is less than that of the groups.
    fn get(&self, group: usize) -> T
    where
        T: Copy,
    {
        // SAFETY: the array has an element for each group.
        unsafe { self.0.wrapping_add(group).read_unaligned() }
    }
}

/// One product.
struct Product {
    transform_a: Transform,
    transform_b: Transform,
    alpha: f64,
    a: MatrixOperand,
    b: MatrixOperand,
    beta: f64,
    c: MatrixOperand,
}

/// Converts a pointer that a C function gets.
macro_rules! argument {
    ($conversion:expr) => {
        // SAFETY: the contract of the C function guarantees its arrays, which have an element for
        // each group.
        unsafe { $conversion }
    };
}

macro_rules! function {
    ($name:ident, $size:ty) => {
        unsafe extern "C" fn $name(
            handle: cublasHandle_t,
            operation_a: *const cublasOperation_t,
            operation_b: *const cublasOperation_t,
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
                operation_a: argument!(HostArray::new(operation_a)),
                operation_b: argument!(HostArray::new(operation_b)),
                m: argument!(HostArray::new(m)),
                n: argument!(HostArray::new(n)),
                k: argument!(HostArray::new(k)),
                alpha: argument!(HostArray::new(alpha)),
                a: argument!(PointerArgument::from_raw(a)),
                lda: argument!(HostArray::new(lda)),
                b: argument!(PointerArgument::from_raw(b)),
                ldb: argument!(HostArray::new(ldb)),
                beta: argument!(HostArray::new(beta)),
                c: argument!(PointerArgument::from_raw(c)),
                ldc: argument!(HostArray::new(ldc)),
                sizes: argument!(HostArray::new(sizes)),
                type_a,
                type_b,
                type_c,
                compute,
            };
            code(
                Call::new("cublasGemmGroupedBatchedEx", handle)
                    .and_then(|call| gemm(call, &groups)),
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
fn gemm<I: Copy + Into<i64>>(call: Call, groups: &Groups<I>) -> Result {
    use cublasComputeType_t as Compute;
    use cudaDataType_t as Type;

    if groups.type_a != groups.type_b || groups.type_a != groups.type_c {
        return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
    }
    let enqueue = match (groups.type_a, groups.compute) {
        (Type::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<f32, f32, I>,
        (Type::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F) => enqueue::<f64, f64, I>,
        (Type::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F) => enqueue::<f16, f32, I>,
        (Type::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F) => enqueue::<bf16, f32, I>,
        _ => return Err(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED),
    };
    enqueue(call, groups)
}

/// Enqueues products of matrices of `T` with factors of type `S`.
fn enqueue<T: Narrow, S: Narrow, I: Copy + Into<i64>>(
    mut call: Call,
    groups: &Groups<I>,
) -> Result {
    let count = size(groups.count)?;
    if call.host_mode().is_none() {
        return Err(INVALID);
    }
    let mut total = 0;
    for group in 0..count {
        total += size(groups.sizes.get(group).into())?;
    }
    let a_pointers = call.pointers(groups.a, total)?;
    let b_pointers = call.pointers(groups.b, total)?;
    let c_pointers = call.pointers(groups.c, total)?;
    let mut products = Vec::with_capacity(total);
    for group in 0..count {
        let transform_a = Transform::from_raw(groups.operation_a.get(group))?;
        let transform_b = Transform::from_raw(groups.operation_b.get(group))?;
        let shape = Shape::checked(groups.m.get(group).into(), groups.n.get(group).into())?;
        let k = size(groups.k.get(group).into())?;
        let shape_a = transform_a.stored(shape.rows, k);
        let shape_b = transform_b.stored(k, shape.columns);
        let lda = groups.lda.get(group).into();
        let ldb = groups.ldb.get(group).into();
        let ldc = groups.ldc.get(group).into();
        let alpha = groups.alpha.cast::<S>().get(group).wide();
        let beta = groups.beta.cast::<S>().get(group).wide();
        let access = if beta == 0.0 { Write } else { ReadWrite };
        for _ in 0..size(groups.sizes.get(group).into())? {
            let index = products.len();
            products.push(Product {
                transform_a,
                transform_b,
                alpha,
                a: call.indirect_matrix::<T>(Read, a_pointers, index, shape_a, lda)?,
                b: call.indirect_matrix::<T>(Read, b_pointers, index, shape_b, ldb)?,
                beta,
                c: call.indirect_matrix::<T>(access, c_pointers, index, shape, ldc)?,
            });
        }
    }
    call.enqueue(move |memory| {
        for product in &products {
            let a = wide::<T>(memory, product.a).transformed(product.transform_a);
            let b = wide::<T>(memory, product.b).transformed(product.transform_b);
            let result = a
                .times(&b)
                .scaled(product.alpha)
                .plus(product.beta, &wide::<T>(memory, product.c));
            set_narrow::<T>(memory, product.c, result);
        }
    })
}
