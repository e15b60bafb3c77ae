//! Products of general matrices, and their sums.

use super::check_product_shapes;
use crate::Blas;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::level1::pointer_mode;
use crate::level2::transpose_operation;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::stored::Stored;
use crate::sys::cublasOperation_t;

/// The batches of a product: matrices of equal shapes at equal distances in elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batches {
    /// The number of products.
    pub count: usize,
    /// The distance from one left factor to the next; 0 for the same factor in each product.
    pub stride_a: usize,
    /// The distance from one right factor to the next; 0 for the same factor in each product.
    pub stride_b: usize,
    /// The distance from one result to the next. Results do not overlap.
    pub stride_c: usize,
}

/// A product as cuBLAS computes it: the result is not transposed.
pub(super) struct Product {
    pub(super) op_a: cublasOperation_t,
    pub(super) op_b: cublasOperation_t,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) lda: usize,
    pub(super) ldb: usize,
    pub(super) ldc: usize,
}

impl Product {
    #[inline]
    pub(super) fn new(operation: &'static str, a: Stored, b: Stored, c: Stored) -> Result<Self> {
        Ok(Self {
            op_a: transpose_operation(operation, a)?,
            op_b: transpose_operation(operation, b)?,
            m: c.length,
            n: c.count,
            k: a.columns(),
            lda: a.leading_dimension,
            ldb: b.leading_dimension,
            ldc: c.leading_dimension,
        })
    }
}

impl Blas {
    /// Computes `c` = `alpha` · `a` · `b` + `beta` · `c`.
    ///
    /// CUDA: `cublas<t>gemm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if a complex factor is
    /// conjugated and cuBLAS would not transpose it.
    #[doc(alias = "cublasSgemm")]
    // Inlined: docs/performance.md, "Functions around a call".
    #[inline(always)]
    pub fn gemm<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: S,
        c: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemm";
        check_product_shapes(OPERATION, a.stored, b.stored, c.stored)?;
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut a, mut b) = transpose_for_result(a, b, c.stored);
        let Product {
            op_a,
            op_b,
            m,
            n,
            k,
            lda,
            ldb,
            ldc,
        } = Product::new(OPERATION, a.stored, b.stored, c.stored)?;
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        let alpha_ptr = alpha.pointer();
        let beta_ptr = beta.pointer();
        let mode = pointer_mode(&alpha);
        let a_ptr = a.as_ptr();
        let b_ptr = b.as_ptr();
        let c_ptr = c.as_ptr();
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                // SAFETY: the operands have these shapes in live memory, and the factors are where
                // the mode requires.
                unsafe {
                    T::gemm(
                        api, raw, op_a, op_b, m, n, k, alpha_ptr, a_ptr, lda, b_ptr, ldb, beta_ptr,
                        c_ptr, ldc,
                    )
                }
            },
        )
    }

    /// Computes the products of batches of matrices: `c` = `alpha` · `a` · `b` + `beta` · `c` for
    /// each.
    ///
    /// The views describe the first matrix of each batch.
    ///
    /// CUDA: `cublas<t>gemmStridedBatched`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::gemm`], or if results overlap, or if
    /// the last matrix of a batch is out of bounds.
    #[doc(alias = "cublasSgemmStridedBatched")]
    pub fn gemm_strided_batched<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: S,
        c: &mut MatrixMut<'_, T>,
        batches: Batches,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemm_strided_batched";
        let Batches {
            count,
            stride_a,
            stride_b,
            stride_c,
        } = batches;
        check_product_shapes(OPERATION, a.stored, b.stored, c.stored)?;
        if c.stored.is_empty() || count == 0 {
            return Ok(());
        }
        if count > 1 && c.stored.span() > stride_c {
            let problem = format!(
                "the results overlap (stride {stride_c}, each has {} elements)",
                c.stored.span()
            );
            return Err(ShapeError::refused(OPERATION, problem));
        }
        for (name, stored, stride, available) in [
            ("a", a.stored, stride_a, a.available()),
            ("b", b.stored, stride_b, b.available()),
            ("c", c.stored, stride_c, c.available()),
        ] {
            in_memory(OPERATION, name, stored, stride, count, available)?;
        }
        let is_transposed = c.stored.is_transposed;
        let (mut a, mut b) = transpose_for_result(a, b, c.stored);
        let (stride_a, stride_b) = if is_transposed {
            (stride_b, stride_a)
        } else {
            (stride_a, stride_b)
        };
        let Product {
            op_a,
            op_b,
            m,
            n,
            k,
            lda,
            ldb,
            ldc,
        } = Product::new(OPERATION, a.stored, b.stored, c.stored)?;
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        let alpha_ptr = alpha.pointer();
        let beta_ptr = beta.pointer();
        let mode = pointer_mode(&alpha);
        let a_ptr = a.as_ptr();
        let b_ptr = b.as_ptr();
        let c_ptr = c.as_ptr();
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                // SAFETY: every matrix has this shape in live memory, and the factors are where the
                // mode requires.
                unsafe {
                    T::gemm_strided_batched(
                        api, raw, op_a, op_b, m, n, k, alpha_ptr, a_ptr, lda, stride_a, b_ptr, ldb,
                        stride_b, beta_ptr, c_ptr, ldc, stride_c, count,
                    )
                }
            },
        )
    }

    /// Computes `c` = `alpha` · `a` + `beta` · `b`, which also transposes and copies matrices.
    ///
    /// CUDA: `cublas<t>geam`.
    ///
    /// # Errors
    ///
    /// As for [`Blas::gemm`].
    #[doc(alias = "cublasSgeam")]
    pub fn geam<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        mut a: Matrix<'_, T>,
        beta: S,
        mut b: Matrix<'_, T>,
        c: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::geam";
        if a.stored.shape() != c.stored.shape() || b.stored.shape() != c.stored.shape() {
            let problem = format!(
                "the shapes differ (a is {}, b is {}, c is {})",
                a.stored, b.stored, c.stored
            );
            return Err(ShapeError::refused(OPERATION, problem));
        }
        if c.stored.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        if c.stored.is_transposed {
            (a, b) = (a.transposed(), b.transposed());
        }
        let op_a = transpose_operation(OPERATION, a.stored)?;
        let op_b = transpose_operation(OPERATION, b.stored)?;
        let alpha_ptr = alpha.pointer();
        let beta_ptr = beta.pointer();
        let mode = pointer_mode(&alpha);
        let a_ptr = a.as_ptr();
        let b_ptr = b.as_ptr();
        let c_ptr = c.as_ptr();
        let result = c.stored;
        let m = result.length;
        let n = result.count;
        let ldc = result.leading_dimension;
        let lda = a.stored.leading_dimension;
        let ldb = b.stored.leading_dimension;
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                // SAFETY: the operands have these shapes in live memory, and the factors are where
                // the mode requires.
                unsafe {
                    T::geam(
                        api, raw, op_a, op_b, m, n, alpha_ptr, a_ptr, lda, beta_ptr, b_ptr, ldb,
                        c_ptr, ldc,
                    )
                }
            },
        )
    }
}

/// Returns the factors of the product as its result is stored: a transposed product has transposed
/// factors in the other order.
pub(super) fn transpose_for_result<'a, T>(
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    c: Stored,
) -> (Matrix<'a, T>, Matrix<'a, T>) {
    if c.is_transposed {
        (b.transposed(), a.transposed())
    } else {
        (a, b)
    }
}

fn in_memory(
    operation: &'static str,
    name: &str,
    stored: Stored,
    stride: usize,
    count: usize,
    available: usize,
) -> Result<()> {
    let end = stride
        .checked_mul(count - 1)
        .and_then(|last| last.checked_add(stored.span()));
    if end.is_some_and(|end| end <= available) {
        return Ok(());
    }
    let problem = format!(
        "memory too small for the batches of {name} ({count} of {stored}, stride {stride}, {available} elements available)"
    );
    Err(ShapeError::refused(operation, problem))
}
