//! Products with triangular matrices, and their solutions.

use super::same_order;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::level1::mode_of;
use crate::level2::{operation_of, square};
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::stored::Stored;
use crate::triangle::{Diagonal, Side, Triangle};
use crate::{Blas, address, address_mut};

impl Blas {
    /// Computes `c` = `alpha` · `a` · `b` for a triangular matrix `a`, or `alpha` · `b` · `a` if its side is the right one.
    ///
    /// CUDA: `cublas<t>trmm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if `b` and `c` are stored in different orders.
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
        b: Matrix<'_, T>,
        c: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::trmm";
        fits(OPERATION, side, a.stored, b.stored)?;
        same_shape(OPERATION, b.stored, c.stored)?;
        same_order(OPERATION, b.stored, c.stored)?;
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut alpha, mut b, result) = (Aligned(alpha), b, c.stored);
        let mut a = if result.is_transposed {
            a.transposed()
        } else {
            a
        };
        let (factor, mode) = (alpha.pointer(), mode_of(&alpha));
        let triangle = if result.is_transposed {
            triangle.flipped()
        } else {
            triangle
        };
        let (side, fill, diagonal) = (side.of(result), triangle.of(a.stored), diagonal.to_raw());
        let (transform, m, n) = (
            operation_of(OPERATION, a.stored)?,
            result.length,
            result.count,
        );
        let (lda, ldb, ldc) = (
            a.stored.leading_dimension,
            b.stored.leading_dimension,
            result.leading_dimension,
        );
        let (left, right, to) = (a.address(), b.address(), c.address());
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut a, &mut b, c),
            |api, raw| {
                let (a, b, c) = (address(left), address(right), address_mut(to));
                // SAFETY: the operands have these shapes in live memory, and the factor is where the mode requires.
                unsafe {
                    T::trmm(
                        api, raw, side, fill, transform, diagonal, m, n, factor, a, lda, b, ldb, c,
                        ldc,
                    )
                }
            },
        )
    }

    /// Solves `a` · `z` = `alpha` · `b` for a triangular matrix `a`, or `z` · `a` = `alpha` · `b` if its side is the right one, and stores
    /// `z` in `b`.
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
        fits(OPERATION, side, a.stored, b.stored)?;
        if b.stored.is_empty() {
            return Ok(());
        }
        let (mut alpha, result) = (Aligned(alpha), b.stored);
        let mut a = if result.is_transposed {
            a.transposed()
        } else {
            a
        };
        let (factor, mode) = (alpha.pointer(), mode_of(&alpha));
        let triangle = if result.is_transposed {
            triangle.flipped()
        } else {
            triangle
        };
        let (side, fill, diagonal) = (side.of(result), triangle.of(a.stored), diagonal.to_raw());
        let (transform, m, n) = (
            operation_of(OPERATION, a.stored)?,
            result.length,
            result.count,
        );
        let (lda, ldb, at, to) = (
            a.stored.leading_dimension,
            result.leading_dimension,
            a.address(),
            b.address(),
        );
        self.enqueue(OPERATION, mode, (&mut alpha, &mut a, b), |api, raw| {
            let (a, b) = (address(at), address_mut(to));
            // SAFETY: the operands have these shapes in live memory, and the factor is where the mode requires.
            unsafe {
                T::trsm(
                    api, raw, side, fill, transform, diagonal, m, n, factor, a, lda, b, ldb,
                )
            }
        })
    }
}

/// Checks that a square matrix can stand on a side of another.
pub(super) fn fits(operation: &'static str, side: Side, a: Stored, b: Stored) -> Result<()> {
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
    if (b.rows(), b.columns()) == (c.rows(), c.columns()) {
        return Ok(());
    }
    Err(ShapeError::refused(
        operation,
        format!("the shapes differ (the factor is {b}, c is {c})"),
    ))
}
