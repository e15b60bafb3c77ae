//! Products of matrices of 8 and 16 bits.

use std::ffi::c_void;

use bytemuck::Pod;

use super::batched::{addresses, check_vector_alignment, common_layouts, split_pointer_arrays};
use super::check_product_shapes;
use super::product::{Product, transpose_for_result};
use crate::Blas;
use crate::error::{Result, ShapeError};
use crate::level1::pointer_mode;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, OperandSlice, ScalarArgument};
use crate::stored::Stored;
use crate::sys::{Api, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cudaDataType_t};
use crate::vector::Vector;
use curium_sys::library_call as call;

/// The element type of matrices whose product has elements of type `C`.
///
/// With the feature `half`, products of `half::f16` and `half::bf16` have elements of the same type
/// or of `f32`. Products of `i8` have elements of type `i32`. The trait cannot be implemented for
/// other types.
pub trait Mixed<C: Pod>: sealed::Factor<C> + Pod {
    /// The type in which products are summed, which is also that of `alpha` and `beta`.
    type Scale: Copy;
    #[doc(hidden)]
    const TYPE: cudaDataType_t;
    #[doc(hidden)]
    const RESULT: cudaDataType_t;
    #[doc(hidden)]
    const COMPUTE: cublasComputeType_t;
    /// Leading dimensions must be multiples of this number of elements.
    #[doc(hidden)]
    const GRANULARITY: usize;
}

mod sealed {
    /// A type that this crate passes to `cublasGemmEx` with results of type `C`. Other crates
    /// cannot name it, so they cannot implement it.
    pub trait Factor<C> {}
}

macro_rules! mixed {
    ($($(#[$attribute:meta])* $factor:ty => $result:ty: $scale:ty, $factor_type:ident, $result_type:ident, $compute:ident, $granularity:literal;)*) => {
        $(
            $(#[$attribute])*
            impl sealed::Factor<$result> for $factor {}

            $(#[$attribute])*
            impl Mixed<$result> for $factor {
                type Scale = $scale;
                const TYPE: cudaDataType_t = cudaDataType_t::$factor_type;
                const RESULT: cudaDataType_t = cudaDataType_t::$result_type;
                const COMPUTE: cublasComputeType_t = cublasComputeType_t::$compute;
                const GRANULARITY: usize = $granularity;
            }
        )*
    };
}

mixed! {
    i8 => i32: i32, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 4;
    #[cfg(feature = "half")]
    half::f16 => half::f16: f32, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 1;
    #[cfg(feature = "half")]
    half::f16 => f32: f32, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1;
    #[cfg(feature = "half")]
    half::bf16 => half::bf16: f32, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1;
    #[cfg(feature = "half")]
    half::bf16 => f32: f32, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1;
}

impl Blas {
    /// Computes `c` = `alpha` · `a` · `b` + `beta` · `c` for factors of 8 or 16 bits, with sums of
    /// 32 bits.
    ///
    /// CUDA: `cublasGemmEx`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if a leading dimension
    /// of a matrix of `i8` is not a multiple of 4, as cuBLAS requires.
    #[doc(alias = "cublasGemmEx")]
    // Inlined: docs/performance.md, "Functions around a call".
    #[inline(always)]
    pub fn gemm_mixed<T: Mixed<C>, C: Pod, S: ScalarArgument<T::Scale>>(
        &mut self,
        alpha: S,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: S,
        c: &mut MatrixMut<'_, C>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_mixed";
        check_product_shapes(OPERATION, a.stored, b.stored, c.stored)?;
        for stored in [a.stored, b.stored] {
            check_leading_dimension(OPERATION, stored, T::GRANULARITY)?;
        }
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut a, mut b) = transpose_for_result(a, b, c.stored);
        let product = Product::new(OPERATION, a.stored, b.stored, c.stored)?;
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        let factors = Factors {
            alpha: alpha.pointer(),
            beta: beta.pointer(),
        };
        let mode = pointer_mode(&alpha);
        let matrices = [a.as_ptr(), b.as_ptr(), c.as_ptr()];
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                // SAFETY: the operands have these shapes and types in live memory, and the factors
                // are where the mode requires.
                unsafe { multiply::<T, C>(api, raw, &product, factors, matrices, None) }
            },
        )
    }

    /// Computes the products of batches of matrices of 8 or 16 bits anywhere in memory, with sums
    /// of 32 bits: `c` = `alpha` · `a` · `b` + `beta` · `c` for each index.
    ///
    /// The matrices of a batch have the same shape, order and leading dimension. A batch may
    /// contain a factor several times.
    ///
    /// CUDA: `cublasGemmBatchedEx`, and a copy of the pointers to device memory.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::gemm_mixed`], or if the batches have
    /// different lengths, or if the matrices of a batch differ, or if a matrix is not aligned to 16
    /// bytes.
    #[doc(alias = "cublasGemmBatchedEx")]
    pub fn gemm_mixed_batched<T: Mixed<C>, C: Pod, S: ScalarArgument<T::Scale>>(
        &mut self,
        alpha: S,
        a: &[Matrix<'_, T>],
        b: &[Matrix<'_, T>],
        beta: S,
        c: &mut [MatrixMut<'_, C>],
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_mixed_batched";
        let Some(layouts) = common_layouts(OPERATION, a, b, c)? else {
            return Ok(());
        };
        check_product_shapes(OPERATION, layouts.a, layouts.b, layouts.c)?;
        for stored in [layouts.a, layouts.b] {
            check_leading_dimension(OPERATION, stored, T::GRANULARITY)?;
        }
        if layouts.c.is_empty() {
            return Ok(());
        }
        let (mut a, mut b): (Vec<_>, Vec<_>) = a
            .iter()
            .zip(b)
            .map(|(a, b)| transpose_for_result(*a, *b, layouts.c))
            .unzip();
        let product = Product::new(OPERATION, a[0].stored, b[0].stored, layouts.c)?;
        let addresses = addresses(&a, &b, c);
        // cuBLAS chooses an algorithm before it reads the addresses.
        check_vector_alignment(OPERATION, &addresses)?;
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        let count = c.len();
        let factors = Factors {
            alpha: alpha.pointer(),
            beta: beta.pointer(),
        };
        let mode = pointer_mode(&alpha);
        let pointers = self.pointers(OPERATION, &addresses)?;
        let matrices = split_pointer_arrays(&pointers, count).map(<*mut *mut c_void>::cast);
        let mut pointers = Vector::new(&pointers);
        let mut a = OperandSlice(&mut a);
        let mut b = OperandSlice(&mut b);
        let mut c = OperandSlice(c);
        let operands = (&mut alpha, &mut beta, &mut pointers, &mut a, &mut b, &mut c);
        self.enqueue(OPERATION, mode, operands, |api, raw| {
            // SAFETY: each array has `count` pointers to matrices of these shapes and types in live
            // memory, of which the results do not overlap, and the factors are where the mode
            // requires.
            unsafe { multiply::<T, C>(api, raw, &product, factors, matrices, Some(count)) }
        })
    }
}

/// The addresses of the scalars of a product, in the memory that the pointer mode requires.
struct Factors {
    alpha: *const c_void,
    beta: *const c_void,
}

/// Enqueues the product of the matrices at `a`, `b` and `c`, or the products of `count` matrices to
/// which arrays at these addresses point.
///
/// # Safety
///
/// The contract of `cublasGemmEx` or `cublasGemmBatchedEx`.
#[inline(always)]
unsafe fn multiply<T: Mixed<C>, C: Pod>(
    api: &Api,
    raw: cublasHandle_t,
    product: &Product,
    Factors { alpha, beta }: Factors,
    [a, b, c]: [*mut c_void; 3],
    count: Option<usize>,
) -> Result<()> {
    let &Product {
        op_a,
        op_b,
        m,
        n,
        k,
        lda,
        ldb,
        ldc,
    } = product;
    let factor_type = T::TYPE;
    let result_type = T::RESULT;
    let compute = T::COMPUTE;
    let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
    macro_rules! gemm {
        ($function:ident$(, $count:ident)?) => {
            // SAFETY: the operands are those of the contract of `multiply`, and the sizes are in
            // the range of the parameters.
            unsafe {
                call!(
                    api,
                    $function(
                        raw, op_a, op_b, m as _, n as _, k as _, alpha, a.cast(), factor_type, lda as _, b.cast(), factor_type, ldb as _,
                        beta, c.cast(), result_type, ldc as _, $($count as _,)? compute, algorithm,
                    )
                )
            }
        };
    }
    let is_narrow = [m, n, k, lda, ldb, ldc, count.unwrap_or(0)]
        .into_iter()
        .all(|size| i32::try_from(size).is_ok());
    match (count, is_narrow) {
        (None, true) => gemm!(cublasGemmEx),
        (None, false) => gemm!(cublasGemmEx_64),
        (Some(count), true) => gemm!(cublasGemmBatchedEx, count),
        (Some(count), false) => gemm!(cublasGemmBatchedEx_64, count),
    }
}

/// Checks that a leading dimension is a multiple of the granularity of its type.
fn check_leading_dimension(
    operation: &'static str,
    stored: Stored,
    granularity: usize,
) -> Result<()> {
    if stored.leading_dimension.is_multiple_of(granularity) {
        return Ok(());
    }
    let problem = format!(
        "leading dimension {} of a matrix of {stored} is not a multiple of {granularity}, as cuBLAS requires for this type",
        stored.leading_dimension
    );
    Err(ShapeError::refused(operation, problem))
}
