//! Products of groups of matrices of different shapes.

use bytemuck::Pod;

use super::batched::{check_vector_alignment, common_layouts, split_pointer_arrays};
use super::check_product_shapes;
use super::product::{Product, transpose_for_result};
use crate::Blas;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::OperandSlice;
use crate::sys::{cublasComputeType_t, cublasOperation_t, cublasPointerMode_t, cudaDataType_t};
use crate::vector::Vector;
use curium_sys::library_call as call;

/// A type of elements with grouped products: `f32`, `f64`, and `half::f16` and `half::bf16`
/// (feature `half`). It cannot be implemented for other types.
pub trait Grouped: sealed::Sealed + Pod {
    /// The type in which products are summed, which is also that of `alpha` and `beta`.
    type Scale: Copy;
    #[doc(hidden)]
    const TYPE: cudaDataType_t;
    #[doc(hidden)]
    const COMPUTE: cublasComputeType_t;
    /// `true` if matrices are read by vector loads.
    #[doc(hidden)]
    const IS_VECTORIZED: bool;
}

mod sealed {
    /// A type that this crate passes to `cublasGemmGroupedBatchedEx`. Other crates cannot name it,
    /// so they cannot implement it.
    pub trait Sealed {}
}

macro_rules! grouped {
    ($($(#[$attribute:meta])* $element:ty: $scale:ty, $ty:ident, $compute:ident, $is_vectorized:literal;)*) => {
        $(
            $(#[$attribute])*
            impl sealed::Sealed for $element {}

            $(#[$attribute])*
            impl Grouped for $element {
                type Scale = $scale;
                const TYPE: cudaDataType_t = cudaDataType_t::$ty;
                const COMPUTE: cublasComputeType_t = cublasComputeType_t::$compute;
                const IS_VECTORIZED: bool = $is_vectorized;
            }
        )*
    };
}

grouped! {
    f32: f32, CUDA_R_32F, CUBLAS_COMPUTE_32F, true;
    f64: f64, CUDA_R_64F, CUBLAS_COMPUTE_64F, false;
    #[cfg(feature = "half")]
    half::f16: f32, CUDA_R_16F, CUBLAS_COMPUTE_32F, true;
    #[cfg(feature = "half")]
    half::bf16: f32, CUDA_R_16BF, CUBLAS_COMPUTE_32F, true;
}

/// A group of products with equal shapes and scalars: `c` = `alpha` · `a` · `b` + `beta` · `c` for
/// each index.
///
/// All matrices of `a` have the same shape, order, leading dimension and conjugation; the same
/// holds for `b` and `c`. A group may contain a factor several times.
#[derive(Debug)]
pub struct GemmGroup<'g, 'm, T: Grouped> {
    /// The scalar that multiplies the products.
    pub alpha: T::Scale,
    /// The left factors.
    pub a: &'g [Matrix<'m, T>],
    /// The right factors.
    pub b: &'g [Matrix<'m, T>],
    /// The scalar that multiplies the previous content of `c`.
    pub beta: T::Scale,
    /// The results.
    pub c: &'g mut [MatrixMut<'m, T>],
}

/// The parameters of all groups, as cuBLAS takes them: an element of each array for each group.
struct Parameters<T: Grouped> {
    op_a: Vec<cublasOperation_t>,
    op_b: Vec<cublasOperation_t>,
    m: Vec<i64>,
    n: Vec<i64>,
    k: Vec<i64>,
    lda: Vec<i64>,
    ldb: Vec<i64>,
    ldc: Vec<i64>,
    alpha: Vec<T::Scale>,
    beta: Vec<T::Scale>,
    counts: Vec<i64>,
}

impl<T: Grouped> Parameters<T> {
    fn new() -> Self {
        Self {
            op_a: Vec::new(),
            op_b: Vec::new(),
            m: Vec::new(),
            n: Vec::new(),
            k: Vec::new(),
            lda: Vec::new(),
            ldb: Vec::new(),
            ldc: Vec::new(),
            alpha: Vec::new(),
            beta: Vec::new(),
            counts: Vec::new(),
        }
    }

    // Sizes are below `isize::MAX`, so no conversion changes them.
    fn push(&mut self, product: &Product, alpha: T::Scale, beta: T::Scale, count: usize) {
        self.op_a.push(product.op_a);
        self.op_b.push(product.op_b);
        self.m.push(product.m as i64);
        self.n.push(product.n as i64);
        self.k.push(product.k as i64);
        self.lda.push(product.lda as i64);
        self.ldb.push(product.ldb as i64);
        self.ldc.push(product.ldc as i64);
        self.alpha.push(alpha);
        self.beta.push(beta);
        self.counts.push(count as i64);
    }
}

impl Blas {
    /// Computes the products of groups of matrices anywhere in memory. Shapes, orders and scalars
    /// may differ between groups.
    ///
    /// CUDA: `cublasGemmGroupedBatchedEx`, since 12.5, and a copy of the pointers to device memory.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::gemm_batched`]; matrices of 16-bit and
    /// 32-bit elements must be aligned to 16 bytes. [`Error::Missing`](crate::Error::Missing) if
    /// the library is older.
    #[doc(alias = "cublasGemmGroupedBatchedEx")]
    #[doc(alias = "cublasSgemmGroupedBatched")]
    pub fn gemm_grouped<T: Grouped>(&mut self, groups: &mut [GemmGroup<'_, '_, T>]) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_grouped";
        let mut parameters = Parameters::<T>::new();
        let mut factors_a = Vec::new();
        let mut factors_b = Vec::new();
        let mut results = Vec::with_capacity(groups.len());
        for group in groups {
            let Some(layouts) = common_layouts(OPERATION, group.a, group.b, group.c)? else {
                continue;
            };
            check_product_shapes(OPERATION, layouts.a, layouts.b, layouts.c)?;
            if layouts.c.is_empty() {
                continue;
            }
            let group_start = factors_a.len();
            for (a, b) in group.a.iter().zip(group.b) {
                let (a, b) = transpose_for_result(*a, *b, layouts.c);
                factors_a.push(a);
                factors_b.push(b);
            }
            let a = factors_a[group_start].stored;
            let b = factors_b[group_start].stored;
            let product = Product::new(OPERATION, a, b, layouts.c)?;
            parameters.push(&product, group.alpha, group.beta, group.a.len());
            results.push(OperandSlice(&mut *group.c));
        }
        if factors_a.is_empty() {
            return Ok(());
        }
        let factors = factors_a.iter().chain(&factors_b);
        let mut addresses: Vec<_> = factors.map(Matrix::address).collect();
        for OperandSlice(matrices) in &results {
            addresses.extend(matrices.iter().map(MatrixMut::address));
        }
        if T::IS_VECTORIZED {
            check_vector_alignment(OPERATION, &addresses)?;
        }
        let pointer_buffer = self.pointers(OPERATION, &addresses)?;
        let [a_ptrs, b_ptrs, c_ptrs] = split_pointer_arrays(&pointer_buffer, factors_a.len());
        let mut pointers = Vector::new(&pointer_buffer);
        let mut a_operand = OperandSlice(&mut factors_a);
        let mut b_operand = OperandSlice(&mut factors_b);
        let mut c_operand = OperandSlice(&mut results);
        let operands = (
            &mut pointers,
            &mut a_operand,
            &mut b_operand,
            &mut c_operand,
        );
        self.enqueue(
            OPERATION,
            cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST,
            operands,
            |api, raw| {
                // SAFETY: each array on the host has an element for each group. The arrays of
                // pointers have one for each matrix, which has the shape of its group in live
                // memory. Results do not overlap.
                unsafe {
                    call!(
                        api,
                        cublasGemmGroupedBatchedEx_64(
                            raw,
                            parameters.op_a.as_ptr(),
                            parameters.op_b.as_ptr(),
                            parameters.m.as_ptr(),
                            parameters.n.as_ptr(),
                            parameters.k.as_ptr(),
                            parameters.alpha.as_ptr().cast(),
                            a_ptrs.cast(),
                            T::TYPE,
                            parameters.lda.as_ptr(),
                            b_ptrs.cast(),
                            T::TYPE,
                            parameters.ldb.as_ptr(),
                            parameters.beta.as_ptr().cast(),
                            c_ptrs,
                            T::TYPE,
                            parameters.ldc.as_ptr(),
                            parameters.counts.len() as i64,
                            parameters.counts.as_ptr(),
                            T::COMPUTE,
                        )
                    )
                }
            },
        )
    }
}
