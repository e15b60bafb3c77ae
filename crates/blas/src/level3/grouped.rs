//! Products of groups of matrices of different shapes.

use bytemuck::Pod;
use curium_driver::sys::call;

use super::batched::{addresses, arrays, layouts, vector_alignment};
use super::product::{Product, as_stored};
use super::product_agrees;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::Each;
use crate::sys::{cublasComputeType_t, cublasPointerMode_t, cudaDataType_t};
use crate::vector::Vector;
use crate::{Blas, address};

/// A type of elements with grouped products: `f32`, `f64`, and `half::f16` and `half::bf16` (feature `half`). It cannot be
/// implemented for other types.
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
    /// A type that this crate passes to `cublasGemmGroupedBatchedEx`. Other crates cannot name it, so they cannot implement it.
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

/// A group of products with equal shapes and scalars: `c` = `alpha` · `a` · `b` + `beta` · `c` for each index.
///
/// All matrices of `a` have the same shape, order, leading dimension and conjugation; the same holds for `b` and `c`. A group may contain a
/// factor several times.
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

/// The parameters of all groups, as cuBLAS takes them.
struct Parameters<'m, T: Grouped> {
    operations: (
        Vec<crate::sys::cublasOperation_t>,
        Vec<crate::sys::cublasOperation_t>,
    ),
    sizes: [Vec<i64>; 3],
    leading: [Vec<i64>; 3],
    factors: (Vec<T::Scale>, Vec<T::Scale>),
    counts: Vec<i64>,
    a: Vec<Matrix<'m, T>>,
    b: Vec<Matrix<'m, T>>,
}

impl<'m, T: Grouped> Parameters<'m, T> {
    fn new() -> Self {
        let (operations, factors) = Default::default();
        let (sizes, leading, counts) = Default::default();
        Self {
            operations,
            sizes,
            leading,
            factors,
            counts,
            a: Vec::new(),
            b: Vec::new(),
        }
    }

    /// Adds a group, unless it is empty. Returns `true` if it was added.
    fn add(&mut self, operation: &'static str, group: &GemmGroup<'_, 'm, T>) -> Result<bool> {
        let Some((a, b, c)) = layouts(operation, group.a, group.b, group.c)? else {
            return Ok(false);
        };
        product_agrees(operation, a, b, c)?;
        if c.is_empty() {
            return Ok(false);
        }
        let (a, b): (Vec<_>, Vec<_>) = group
            .a
            .iter()
            .zip(group.b)
            .map(|(a, b)| as_stored(*a, *b, c))
            .unzip();
        let Product {
            operations,
            sizes,
            leading,
        } = Product::new(operation, a[0].stored, b[0].stored, c)?;
        self.operations.0.push(operations.0);
        self.operations.1.push(operations.1);
        for (all, size) in self.sizes.iter_mut().zip([sizes.0, sizes.1, sizes.2]) {
            all.push(size as i64);
        }
        for (all, size) in self
            .leading
            .iter_mut()
            .zip([leading.0, leading.1, leading.2])
        {
            all.push(size as i64);
        }
        self.factors.0.push(group.alpha);
        self.factors.1.push(group.beta);
        self.counts.push(a.len() as i64);
        self.a.extend(a);
        self.b.extend(b);
        Ok(true)
    }
}

impl Blas {
    /// Computes the products of groups of matrices anywhere in memory. Shapes, orders and scalars may differ between groups.
    ///
    /// CUDA: `cublasGemmGroupedBatchedEx`, since 12.5, and a copy of the pointers to device memory.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::gemm_batched`]; matrices of 16 and 32 bits must be aligned to 16 bytes.
    /// [`Error::Missing`](crate::Error::Missing) if the library is older.
    #[doc(alias = "cublasGemmGroupedBatchedEx")]
    #[doc(alias = "cublasSgemmGroupedBatched")]
    pub fn gemm_grouped<T: Grouped>(&mut self, groups: &mut [GemmGroup<'_, '_, T>]) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_grouped";
        let mut parameters = Parameters::new();
        let mut results = Vec::with_capacity(groups.len());
        for group in groups {
            if parameters.add(OPERATION, group)? {
                results.push(Each(&mut *group.c));
            }
        }
        let Parameters {
            operations,
            sizes,
            leading,
            factors,
            counts,
            mut a,
            mut b,
        } = parameters;
        if a.is_empty() {
            return Ok(());
        }
        let mut addresses = addresses::<T, T>(&a, &b, &[]);
        addresses.extend(
            results
                .iter()
                .flat_map(|Each(matrices)| matrices.iter().map(MatrixMut::address)),
        );
        if T::IS_VECTORIZED {
            vector_alignment(OPERATION, &addresses)?;
        }
        let pointers = self.pointers(OPERATION, &addresses)?;
        let [left, right, to] = arrays(pointers.as_pointer().as_raw(), a.len());
        let (mut pointers, mut a, mut b) = (Vector::new(&pointers), Each(&mut a), Each(&mut b));
        let mut results = Each(&mut results);
        let operands = (&mut pointers, &mut a, &mut b, &mut results);
        self.enqueue(
            OPERATION,
            cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST,
            operands,
            |api, raw| {
                let (a, b, c) = (
                    address(left).cast(),
                    address(right).cast(),
                    address(to).cast(),
                );
                let ([m, n, k], [lda, ldb, ldc], of) = (&sizes, &leading, T::TYPE);
                // SAFETY: each array on the host has an element for each group. The arrays of pointers have one for each matrix, which has the
                // shape of its group in live memory. Results do not overlap.
                unsafe {
                    call!(
                        api,
                        cublasGemmGroupedBatchedEx_64(
                            raw,
                            operations.0.as_ptr(),
                            operations.1.as_ptr(),
                            m.as_ptr(),
                            n.as_ptr(),
                            k.as_ptr(),
                            factors.0.as_ptr().cast(),
                            a,
                            of,
                            lda.as_ptr(),
                            b,
                            of,
                            ldb.as_ptr(),
                            factors.1.as_ptr().cast(),
                            c,
                            of,
                            ldc.as_ptr(),
                            counts.len() as i64,
                            counts.as_ptr(),
                            T::COMPUTE,
                        )
                    )
                }
            },
        )
    }
}
