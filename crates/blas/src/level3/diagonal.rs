//! Products with diagonal matrices.

use super::same_order;
use super::triangular::same_shape;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::matrix::{Matrix, MatrixMut};
use crate::sys::cublasPointerMode_t;
use crate::triangle::Side;
use crate::vector::Vector;
use crate::{Blas, address, address_mut};

impl Blas {
    /// Computes `c` = diagonal(`x`) · `a`, which scales rows, or `a` · diagonal(`x`) if the side is the right one, which scales columns.
    ///
    /// CUDA: `cublas<t>dgmm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if `a` and `c` are stored in different orders.
    #[doc(alias = "cublasSdgmm")]
    pub fn dgmm<T: Element>(
        &mut self,
        side: Side,
        a: Matrix<'_, T>,
        x: Vector<'_, T>,
        c: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::dgmm";
        same_shape(OPERATION, a.stored, c.stored)?;
        let len = if side == Side::Left {
            c.stored.rows()
        } else {
            c.stored.columns()
        };
        if x.len() != len {
            let problem = format!(
                "the shapes do not agree (a is {}, x has {} elements, side {side:?})",
                a.stored,
                x.len()
            );
            return Err(ShapeError::refused(OPERATION, problem));
        }
        same_order(OPERATION, a.stored, c.stored)?;
        if c.stored.is_empty() {
            return Ok(());
        }
        let (mut a, mut x, result) = (a, x, c.stored);
        let (side, m, n, step) = (side.of(result), result.length, result.count, x.stride());
        let (lda, ldc) = (a.stored.leading_dimension, result.leading_dimension);
        let (from, diagonal, to) = (a.address(), x.address(), c.address());
        let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
        self.enqueue(OPERATION, mode, (&mut a, &mut x, c), |api, raw| {
            let (a, x, c) = (address(from), address(diagonal), address_mut(to));
            // SAFETY: the operands have these shapes in live memory.
            unsafe { T::dgmm(api, raw, side, m, n, a, lda, x, step, c, ldc) }
        })
    }
}
