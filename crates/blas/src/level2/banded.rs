//! Operations on a banded matrix and vectors.

use super::{agree, is_hermitian_as_stored, square, transpose_operation, unsupported};
use crate::Blas;
use crate::banded::{BandTriangle, Banded};
use crate::element::{Element, RealElement};
use crate::error::Result;
use crate::level1::pointer_mode;
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::sys::cublasPointerMode_t;
use crate::triangle::{Diagonal, Triangle};
use crate::vector::{Vector, VectorMut};

impl Blas {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a banded matrix.
    ///
    /// CUDA: `cublas<t>gbmv`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree.
    #[doc(alias = "cublasSgbmv")]
    pub fn gbmv<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        mut a: Banded<'_, T>,
        mut x: Vector<'_, T>,
        beta: S,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gbmv";
        agree(OPERATION, a.stored, x.len(), y.len())?;
        if y.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let mut beta = Aligned(beta);
        let alpha_ptr = alpha.pointer();
        let beta_ptr = beta.pointer();
        let mode = pointer_mode(&alpha);
        let transform = transpose_operation(OPERATION, a.stored)?;
        let stored = a.stored;
        let (kl, ku) = a.diagonals;
        let m = stored.length;
        let n = stored.count;
        let lda = stored.leading_dimension;
        let a_ptr = a.as_ptr();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut x, y),
            |api, raw| {
                // SAFETY: the operands have these shapes in live memory, and the factors are where
                // the mode requires.
                unsafe {
                    T::gbmv(
                        api, raw, transform, m, n, kl, ku, alpha_ptr, a_ptr, lda, x_ptr, incx,
                        beta_ptr, y_ptr, incy,
                    )
                }
            },
        )
    }
}

/// Declares the products of a symmetric or Hermitian banded matrix, of which one triangle is
/// accessed, and a vector.
macro_rules! product {
    ($(#[$doc:meta])* $name:ident for $element:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of the matrix is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the order and conjugation of the matrix.
            pub fn $name<T: $element, S: ScalarArgument<T>>(
                &mut self,
                alpha: S,
                triangle: Triangle,
                mut a: Banded<'_, T>,
                mut x: Vector<'_, T>,
                beta: S,
                y: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), y.len())?;
                if T::IS_COMPLEX && !is_hermitian_as_stored(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if y.is_empty() {
                    return Ok(());
                }
                let mut alpha = Aligned(alpha);
                let mut beta = Aligned(beta);
                let alpha_ptr = alpha.pointer();
                let beta_ptr = beta.pointer();
                let mode = pointer_mode(&alpha);
                let BandTriangle { fill, diagonals: k, pointer: a_ptr } = a.triangle(triangle);
                let n = a.stored.count;
                let lda = a.stored.leading_dimension;
                let x_ptr = x.as_ptr();
                let y_ptr = y.as_ptr();
                let incx = x.stride();
                let incy = y.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut beta, &mut a, &mut x, y), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factors are
                    // where the mode requires.
                    unsafe { T::hbmv(api, raw, fill, n, k, alpha_ptr, a_ptr, lda, x_ptr, incx, beta_ptr, y_ptr, incy) }
                })
            }
        }
    };
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a Hermitian banded matrix, or a
    /// symmetric one of real elements.
    ///
    /// CUDA: `cublas<t>hbmv`, `cublas<t>sbmv`.
    #[doc(alias = "cublasChbmv")]
    hbmv for Element, "Blas::hbmv"
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a symmetric banded matrix.
    ///
    /// CUDA: `cublas<t>sbmv`.
    #[doc(alias = "cublasSsbmv")]
    sbmv for RealElement, "Blas::sbmv"
}

/// Declares the operations of a triangular banded matrix on a vector in place.
macro_rules! triangular {
    ($(#[$doc:meta])* $name:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// `triangle` is that of `a` as the view shows it. Only this triangle is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the conjugation of the matrix.
            pub fn $name<T: Element>(
                &mut self,
                triangle: Triangle,
                diagonal: Diagonal,
                mut a: Banded<'_, T>,
                x: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), x.len())?;
                let transform = transpose_operation($operation, a.stored)?;
                if x.is_empty() {
                    return Ok(());
                }
                let BandTriangle { fill, diagonals: k, pointer: a_ptr } = a.triangle(triangle);
                let diagonal = diagonal.to_raw();
                let n = x.len();
                let lda = a.stored.leading_dimension;
                let x_ptr = x.as_ptr();
                let incx = x.stride();
                let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
                self.enqueue($operation, mode, (&mut a, x), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory.
                    unsafe { T::$name(api, raw, fill, transform, diagonal, n, k, a_ptr, lda, x_ptr, incx) }
                })
            }
        }
    };
}

triangular! {
    /// Computes `x` = `a` · `x` for a triangular banded matrix.
    ///
    /// CUDA: `cublas<t>tbmv`.
    #[doc(alias = "cublasStbmv")]
    tbmv, "Blas::tbmv"
}

triangular! {
    /// Solves `a` · `z` = `x` for a triangular banded matrix, and stores `z` in `x`.
    ///
    /// CUDA: `cublas<t>tbsv`.
    #[doc(alias = "cublasStbsv")]
    tbsv, "Blas::tbsv"
}
