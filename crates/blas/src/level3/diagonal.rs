//! Products with diagonal matrices.

use super::same_order;
use super::triangular::same_shape;
use crate::Blas;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::matrix::{Matrix, MatrixMut};
use crate::sys::cublasPointerMode_t;
use crate::triangle::Side;
use crate::vector::Vector;

impl Blas {
    /// Computes `c` = diagonal(`x`) · `a`, which scales rows, or `a` · diagonal(`x`) if the side is
    /// the right one, which scales columns.
    ///
    /// CUDA: `cublas<t>dgmm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if `a` and `c` are
    /// stored in different orders.
    #[doc(alias = "cublasSdgmm")]
    pub fn dgmm<T: Element>(
        &mut self,
        side: Side,
        mut a: Matrix<'_, T>,
        mut x: Vector<'_, T>,
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
        let result = c.stored;
        let side = side.side_mode(result);
        let m = result.length;
        let n = result.count;
        let incx = x.stride();
        let lda = a.stored.leading_dimension;
        let ldc = result.leading_dimension;
        let a_ptr = a.as_ptr();
        let x_ptr = x.as_ptr();
        let c_ptr = c.as_ptr();
        let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
        self.enqueue(OPERATION, mode, (&mut a, &mut x, c), |api, raw| {
            // SAFETY: the operands have these shapes in live memory.
            unsafe { T::dgmm(api, raw, side, m, n, a_ptr, lda, x_ptr, incx, c_ptr, ldc) }
        })
    }
}
