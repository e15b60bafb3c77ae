//! Products of general matrices, and their sums.

use super::product_agrees;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::level1::mode_of;
use crate::level2::operation_of;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::stored::Stored;
use crate::sys::cublasOperation_t;
use crate::{Blas, address, address_mut};

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
    pub(super) operations: (cublasOperation_t, cublasOperation_t),
    pub(super) sizes: (usize, usize, usize),
    pub(super) leading: (usize, usize, usize),
}

impl Product {
    #[inline]
    pub(super) fn new(operation: &'static str, a: Stored, b: Stored, c: Stored) -> Result<Self> {
        let operations = (operation_of(operation, a)?, operation_of(operation, b)?);
        let leading = (
            a.leading_dimension,
            b.leading_dimension,
            c.leading_dimension,
        );
        Ok(Self {
            operations,
            sizes: (c.length, c.count, a.columns()),
            leading,
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
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if a complex factor is conjugated and cuBLAS would not
    /// transpose it.
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
        product_agrees(OPERATION, a.stored, b.stored, c.stored)?;
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut a, mut b) = as_stored(a, b, c.stored);
        let Product {
            operations,
            sizes: (m, n, k),
            leading,
        } = Product::new(OPERATION, a.stored, b.stored, c.stored)?;
        let (mut alpha, mut beta) = (Aligned(alpha), Aligned(beta));
        let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
        let (left, right, to) = (a.address(), b.address(), c.address());
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                let (a, b, c, (lda, ldb, ldc)) =
                    (address(left), address(right), address_mut(to), leading);
                let (on_a, on_b) = operations;
                // SAFETY: the operands have these shapes in live memory, and the factors are where the mode requires.
                unsafe {
                    T::gemm(
                        api, raw, on_a, on_b, m, n, k, factors.0, a, lda, b, ldb, factors.1, c, ldc,
                    )
                }
            },
        )
    }

    /// Computes the products of batches of matrices: `c` = `alpha` · `a` · `b` + `beta` · `c` for each.
    ///
    /// The views describe the first matrix of each batch.
    ///
    /// CUDA: `cublas<t>gemmStridedBatched`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) as for [`Blas::gemm`], or if results overlap, or if the last matrix of a batch is out of
    /// bounds.
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
        product_agrees(OPERATION, a.stored, b.stored, c.stored)?;
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
            in_memory(OPERATION, name, (stored, stride, count), available)?;
        }
        let is_transposed = c.stored.is_transposed;
        let (mut a, mut b) = as_stored(a, b, c.stored);
        let (stride_a, stride_b) = if is_transposed {
            (stride_b, stride_a)
        } else {
            (stride_a, stride_b)
        };
        let Product {
            operations,
            sizes: (m, n, k),
            leading,
        } = Product::new(OPERATION, a.stored, b.stored, c.stored)?;
        let (mut alpha, mut beta) = (Aligned(alpha), Aligned(beta));
        let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
        let (left, right, to) = (a.address(), b.address(), c.address());
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                let (a, b, c, (lda, ldb, ldc)) =
                    (address(left), address(right), address_mut(to), leading);
                let (on_a, on_b) = operations;
                // SAFETY: every matrix has this shape in live memory, and the factors are where the mode requires.
                unsafe {
                    T::gemm_strided_batched(
                        api, raw, on_a, on_b, m, n, k, factors.0, a, lda, stride_a, b, ldb,
                        stride_b, factors.1, c, ldc, stride_c, count,
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
        a: Matrix<'_, T>,
        beta: S,
        b: Matrix<'_, T>,
        c: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::geam";
        let shape = |stored: Stored| (stored.rows(), stored.columns());
        if shape(a.stored) != shape(c.stored) || shape(b.stored) != shape(c.stored) {
            let problem = format!(
                "the shapes differ (a is {}, b is {}, c is {})",
                a.stored, b.stored, c.stored
            );
            return Err(ShapeError::refused(OPERATION, problem));
        }
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut alpha, mut beta, mut a, mut b) = (Aligned(alpha), Aligned(beta), a, b);
        if c.stored.is_transposed {
            (a, b) = (a.transposed(), b.transposed());
        }
        let (on_a, on_b) = (
            operation_of(OPERATION, a.stored)?,
            operation_of(OPERATION, b.stored)?,
        );
        let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
        let (one, other, to, result) = (a.address(), b.address(), c.address(), c.stored);
        let (m, n, ldc) = (result.length, result.count, result.leading_dimension);
        let (lda, ldb) = (a.stored.leading_dimension, b.stored.leading_dimension);
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut b, c),
            |api, raw| {
                let (a, b, c) = (address(one), address(other), address_mut(to));
                // SAFETY: the operands have these shapes in live memory, and the factors are where the mode requires.
                unsafe {
                    T::geam(
                        api, raw, on_a, on_b, m, n, factors.0, a, lda, factors.1, b, ldb, c, ldc,
                    )
                }
            },
        )
    }
}

/// Returns the factors of the product as its result is stored: a transposed product has transposed factors in the other order.
pub(super) fn as_stored<'a, T>(
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
    (stored, stride, count): (Stored, usize, usize),
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
