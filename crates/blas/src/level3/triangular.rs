//! Products with triangular matrices, and their solutions.

use super::same_order;
use crate::Blas;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::level1::pointer_mode;
use crate::level2::{square, transpose_operation};
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::stored::Stored;
use crate::triangle::{Diagonal, Side, Triangle};

impl Blas {
    /// Computes `c` = `alpha` · `a` · `b` for a triangular matrix `a`, or `alpha` · `b` · `a` if
    /// its side is the right one.
    ///
    /// CUDA: `cublas<t>trmm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if `b` and `c` are
    /// stored in different orders.
    #[doc(alias = "cublasStrmm")]
    #[expect(
        clippy::too_many_arguments,
        reason = "these are the operation's parameters"
    )]
    pub fn trmm<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        side: Side,
        triangle: Triangle,
        diagonal: Diagonal,
        a: Matrix<'_, T>,
        mut b: Matrix<'_, T>,
        c: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::trmm";
        side_agrees(OPERATION, side, a.stored, b.stored)?;
        same_shape(OPERATION, b.stored, c.stored)?;
        same_order(OPERATION, b.stored, c.stored)?;
        if c.stored.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let result = c.stored;
        let mut a = if result.is_transposed {
            a.transposed()
        } else {
            a
        };
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let triangle = if result.is_transposed {
            triangle.flipped()
        } else {
            triangle
        };
        let side = side.side_mode(result);
        let fill = triangle.fill_mode(a.stored);
        let diagonal = diagonal.to_raw();
        let transform = transpose_operation(OPERATION, a.stored)?;
        let m = result.length;
        let n = result.count;
        let lda = a.stored.leading_dimension;
        let ldb = b.stored.leading_dimension;
        let ldc = result.leading_dimension;
        let a_ptr = a.as_ptr();
        let b_ptr = b.as_ptr();
        let c_ptr = c.as_ptr();
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut a, &mut b, c),
            |api, raw| {
                // SAFETY: the operands have these shapes in live memory, and the factor is where
                // the mode requires.
                unsafe {
                    T::trmm(
                        api, raw, side, fill, transform, diagonal, m, n, alpha_ptr, a_ptr, lda,
                        b_ptr, ldb, c_ptr, ldc,
                    )
                }
            },
        )
    }

    /// Solves `a` · `z` = `alpha` · `b` for a triangular matrix `a`, or `z` · `a` = `alpha` · `b`
    /// if its side is the right one, and stores `z` in `b`.
    ///
    /// CUDA: `cublas<t>trsm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree.
    #[doc(alias = "cublasStrsm")]
    pub fn trsm<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        side: Side,
        triangle: Triangle,
        diagonal: Diagonal,
        a: Matrix<'_, T>,
        b: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::trsm";
        side_agrees(OPERATION, side, a.stored, b.stored)?;
        if b.stored.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let result = b.stored;
        let mut a = if result.is_transposed {
            a.transposed()
        } else {
            a
        };
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let triangle = if result.is_transposed {
            triangle.flipped()
        } else {
            triangle
        };
        let side = side.side_mode(result);
        let fill = triangle.fill_mode(a.stored);
        let diagonal = diagonal.to_raw();
        let transform = transpose_operation(OPERATION, a.stored)?;
        let m = result.length;
        let n = result.count;
        let lda = a.stored.leading_dimension;
        let ldb = result.leading_dimension;
        let a_ptr = a.as_ptr();
        let b_ptr = b.as_ptr();
        self.enqueue(OPERATION, mode, (&mut alpha, &mut a, b), |api, raw| {
            // SAFETY: the operands have these shapes in live memory, and the factor is where the
            // mode requires.
            unsafe {
                T::trsm(
                    api, raw, side, fill, transform, diagonal, m, n, alpha_ptr, a_ptr, lda, b_ptr,
                    ldb,
                )
            }
        })
    }
}

/// Checks that `a` is square, and as large as `b` on its side of the product.
pub(super) fn side_agrees(operation: &'static str, side: Side, a: Stored, b: Stored) -> Result<()> {
    square(operation, a)?;
    let size = if side == Side::Left {
        b.rows()
    } else {
        b.columns()
    };
    if a.length == size {
        return Ok(());
    }
    Err(ShapeError::refused(
        operation,
        format!("the shapes do not agree (a is {a}, b is {b}, side {side:?})"),
    ))
}

pub(super) fn same_shape(operation: &'static str, b: Stored, c: Stored) -> Result<()> {
    if b.shape() == c.shape() {
        return Ok(());
    }
    Err(ShapeError::refused(
        operation,
        format!("the shapes differ (the factor is {b}, c is {c})"),
    ))
}
