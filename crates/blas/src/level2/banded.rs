//! Operations on a banded matrix and vectors.

use super::{agree, is_hermitian_as_stored, operation_of, square, unsupported};
use crate::banded::{BandTriangle, Banded};
use crate::element::{Element, RealElement};
use crate::error::Result;
use crate::level1::mode_of;
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::sys::cublasPointerMode_t;
use crate::triangle::{Diagonal, Triangle};
use crate::vector::{Vector, VectorMut};
use crate::{Blas, address, address_mut};

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
        a: Banded<'_, T>,
        x: Vector<'_, T>,
        beta: S,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gbmv";
        agree(OPERATION, a.stored, x.len(), y.len())?;
        if y.is_empty() {
            return Ok(());
        }
        let (mut alpha, mut a, mut x, mut beta) = (Aligned(alpha), a, x, Aligned(beta));
        let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
        let (transform, stored, (kl, ku)) =
            (operation_of(OPERATION, a.stored)?, a.stored, a.diagonals);
        let (m, n, lda) = (stored.length, stored.count, stored.leading_dimension);
        let (at, from, to, steps) = (
            a.address(),
            x.address(),
            y.address(),
            (x.stride(), y.stride()),
        );
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut x, y),
            |api, raw| {
                let (a, x, y) = (address(at), address(from), address_mut(to));
                // SAFETY: the operands have these shapes in live memory, and the factors are where the mode requires.
                unsafe {
                    T::gbmv(
                        api, raw, transform, m, n, kl, ku, factors.0, a, lda, x, steps.0,
                        factors.1, y, steps.1,
                    )
                }
            },
        )
    }

    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a Hermitian banded matrix, or a symmetric one of real elements.
    ///
    /// Only one triangle of the matrix is accessed.
    ///
    /// CUDA: `cublas<t>hbmv`, `cublas<t>sbmv`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does not support the order and conjugation of the
    /// matrix.
    #[doc(alias = "cublasChbmv")]
    pub fn hbmv<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        triangle: Triangle,
        a: Banded<'_, T>,
        x: Vector<'_, T>,
        beta: S,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        self.product_with_half("Blas::hbmv", (alpha, beta), triangle, a, x, y)
    }

    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a symmetric banded matrix.
    ///
    /// Only one triangle of the matrix is accessed.
    ///
    /// CUDA: `cublas<t>sbmv`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree.
    #[doc(alias = "cublasSsbmv")]
    pub fn sbmv<T: RealElement, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        triangle: Triangle,
        a: Banded<'_, T>,
        x: Vector<'_, T>,
        beta: S,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        self.product_with_half("Blas::sbmv", (alpha, beta), triangle, a, x, y)
    }

    /// Computes the product of a matrix that one of its triangles determines.
    fn product_with_half<T: Element, S: ScalarArgument<T>>(
        &mut self,
        operation: &'static str,
        (alpha, beta): (S, S),
        triangle: Triangle,
        a: Banded<'_, T>,
        x: Vector<'_, T>,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        square(operation, a.stored)?;
        agree(operation, a.stored, x.len(), y.len())?;
        if T::IS_COMPLEX && !is_hermitian_as_stored(a.stored) {
            return Err(unsupported(operation, a.stored));
        }
        if y.is_empty() {
            return Ok(());
        }
        let (mut alpha, mut a, mut x, mut beta) = (Aligned(alpha), a, x, Aligned(beta));
        let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
        let BandTriangle {
            fill,
            diagonals: k,
            address: at,
        } = a.triangle(triangle);
        let (n, lda) = (a.stored.count, a.stored.leading_dimension);
        let (from, to, steps) = (x.address(), y.address(), (x.stride(), y.stride()));
        self.enqueue(
            operation,
            mode,
            (&mut alpha, &mut beta, &mut a, &mut x, y),
            |api, raw| {
                let (a, x, y) = (address(at), address(from), address_mut(to));
                // SAFETY: the operands have these shapes in live memory, and the factors are where the mode requires.
                unsafe {
                    T::hbmv(
                        api, raw, fill, n, k, factors.0, a, lda, x, steps.0, factors.1, y, steps.1,
                    )
                }
            },
        )
    }
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
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does not support the conjugation of the
            /// matrix.
            pub fn $name<T: Element>(
                &mut self,
                triangle: Triangle,
                diagonal: Diagonal,
                a: Banded<'_, T>,
                x: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), x.len())?;
                let transform = operation_of($operation, a.stored)?;
                if x.is_empty() {
                    return Ok(());
                }
                let mut a = a;
                let BandTriangle { fill, diagonals: k, address: at } = a.triangle(triangle);
                let (diagonal, n, lda) = (diagonal.to_raw(), x.len(), a.stored.leading_dimension);
                let (to, step) = (x.address(), x.stride());
                let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
                self.enqueue($operation, mode, (&mut a, x), |api, raw| {
                    let (a, x) = (address(at), address_mut(to));
                    // SAFETY: the operands have these shapes in live memory.
                    unsafe { T::$name(api, raw, fill, transform, diagonal, n, k, a, lda, x, step) }
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
