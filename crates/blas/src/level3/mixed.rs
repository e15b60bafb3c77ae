//! Products of matrices of 8 and 16 bits.

use bytemuck::Pod;
use curium_driver::sys::call;

use super::product::{Product, as_stored};
use super::product_agrees;
use crate::error::{Result, ShapeError};
use crate::level1::mode_of;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::{Aligned, Factor as _, ScalarArgument};
use crate::stored::Stored;
use crate::sys::{cublasComputeType_t, cublasGemmAlgo_t, cudaDataType_t};
use crate::{Blas, address, address_mut};

/// A type of matrices whose products have elements of type `C`: `half::f16` and `half::bf16` in themselves and in `f32` (feature `half`),
/// and `i8` in `i32`.
pub trait Mixed<C: Pod>: Pod {
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

macro_rules! mixed {
    ($($(#[$attribute:meta])* $factor:ty => $result:ty: $scale:ty, $ty:ident, $of:ident, $compute:ident, $granularity:literal;)*) => {
        $(
            $(#[$attribute])*
            impl Mixed<$result> for $factor {
                type Scale = $scale;
                const TYPE: cudaDataType_t = cudaDataType_t::$ty;
                const RESULT: cudaDataType_t = cudaDataType_t::$of;
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
    /// Computes `c` = `alpha` · `a` · `b` + `beta` · `c` for factors of 8 or 16 bits, with sums of 32 bits.
    ///
    /// CUDA: `cublasGemmEx`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if a leading dimension of a matrix of `i8` is not a multiple of
    /// 4, as cuBLAS requires.
    #[doc(alias = "cublasGemmEx")]
    pub fn gemm_mixed<T: Mixed<C>, C: Pod, S: ScalarArgument<T::Scale>>(
        &mut self,
        alpha: S,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: S,
        c: &mut MatrixMut<'_, C>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_mixed";
        product_agrees(OPERATION, a.stored, b.stored, c.stored)?;
        for stored in [a.stored, b.stored] {
            granular(OPERATION, stored, T::GRANULARITY)?;
        }
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut a, mut b) = as_stored(a, b, c.stored);
        let Product { operations, sizes, leading } = Product::new(OPERATION, a.stored, b.stored, c.stored)?;
        let (mut alpha, mut beta) = (Aligned(alpha), Aligned(beta));
        let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
        let (left, right, to) = (a.address(), b.address(), c.address());
        let is_narrow =
            [sizes.0, sizes.1, sizes.2, leading.0, leading.1, leading.2].map(|size| i32::try_from(size).is_ok());
        self.enqueue(OPERATION, mode, &mut [&mut alpha, &mut beta, &mut a, &mut b, c], |api, raw| {
            let ((on_a, on_b), (m, n, k), (lda, ldb, ldc)) = (operations, sizes, leading);
            let (a, b, c) = (address(left), address(right), address_mut(to));
            let (of, result, compute, algorithm) =
                (T::TYPE, T::RESULT, T::COMPUTE, cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT);
            macro_rules! gemm {
                ($function:ident) => {
                    // SAFETY: the operands have these shapes and types in live memory, and the factors are where the mode requires.
                    unsafe {
                        call!(
                            api,
                            $function(
                                raw, on_a, on_b, m as _, n as _, k as _, factors.0, a, of, lda as _, b, of, ldb as _,
                                factors.1, c, result, ldc as _, compute, algorithm,
                            )
                        )
                    }
                };
            }
            if is_narrow == [true; 6] { gemm!(cublasGemmEx) } else { gemm!(cublasGemmEx_64) }
        })
    }
}

fn granular(operation: &'static str, stored: Stored, granularity: usize) -> Result<()> {
    if stored.leading_dimension.is_multiple_of(granularity) {
        return Ok(());
    }
    let problem = format!(
        "leading dimension {} of a matrix of {stored} is not a multiple of {granularity}, as cuBLAS requires for this type",
        stored.leading_dimension
    );
    Err(ShapeError::refused(operation, problem))
}
