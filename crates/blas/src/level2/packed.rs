//! Operations on a packed matrix and vectors.

use super::{agree, is_hermitian_as_stored, transpose_operation, unsupported};
use crate::Blas;
use crate::element::{Element, RealElement};
use crate::error::Result;
use crate::level1::pointer_mode;
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::packed::{Packed, PackedMut};
use crate::sys::cublasPointerMode_t;
use crate::triangle::Diagonal;
use crate::vector::{Vector, VectorMut};

/// Declares the products of a packed symmetric or Hermitian matrix and a vector.
macro_rules! product {
    ($(#[$doc:meta])* $name:ident for $element:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the order and conjugation of the matrix.
            pub fn $name<T: $element, S: ScalarArgument<T>>(
                &mut self,
                alpha: S,
                mut a: Packed<'_, T>,
                mut x: Vector<'_, T>,
                beta: S,
                y: &mut VectorMut<'_, T>,
            ) -> Result<()> {
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
                let fill = a.triangle.fill_mode(a.stored);
                let n = a.stored.count;
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let y_ptr = y.as_ptr();
                let incx = x.stride();
                let incy = y.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut beta, &mut a, &mut x, y), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factors are
                    // where the mode requires.
                    unsafe { T::hpmv(api, raw, fill, n, alpha_ptr, a_ptr, x_ptr, incx, beta_ptr, y_ptr, incy) }
                })
            }
        }
    };
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a packed Hermitian matrix, or a
    /// symmetric one of real elements.
    ///
    /// CUDA: `cublas<t>hpmv`, `cublas<t>spmv`.
    #[doc(alias = "cublasChpmv")]
    hpmv for Element, "Blas::hpmv"
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a packed symmetric matrix.
    ///
    /// CUDA: `cublas<t>spmv`.
    #[doc(alias = "cublasSspmv")]
    spmv for RealElement, "Blas::spmv"
}

/// Declares the updates of a packed symmetric or Hermitian matrix by a vector.
macro_rules! update {
    ($(#[$doc:meta])* $name:ident for $element:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the order of the matrix.
            pub fn $name<T: $element>(
                &mut self,
                alpha: impl ScalarArgument<T::Real>,
                mut x: Vector<'_, T>,
                a: &mut PackedMut<'_, T>,
            ) -> Result<()> {
                agree($operation, a.stored, x.len(), x.len())?;
                if T::IS_COMPLEX && !is_hermitian_as_stored(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if x.is_empty() {
                    return Ok(());
                }
                let mut alpha = Aligned(alpha);
                let alpha_ptr = alpha.pointer();
                let mode = pointer_mode(&alpha);
                let fill = a.triangle.fill_mode(a.stored);
                let n = x.len();
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let incx = x.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut x, a), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factor is
                    // where the mode requires.
                    unsafe { T::hpr(api, raw, fill, n, alpha_ptr, x_ptr, incx, a_ptr) }
                })
            }
        }
    };
}

update! {
    /// Adds `alpha` · `x` · adjoint(`x`) to a packed Hermitian matrix, or a symmetric one of real
    /// elements.
    ///
    /// CUDA: `cublas<t>hpr`, `cublas<t>spr`.
    #[doc(alias = "cublasChpr")]
    hpr for Element, "Blas::hpr"
}

update! {
    /// Adds `alpha` · `x` · transposed(`x`) to a packed symmetric matrix.
    ///
    /// CUDA: `cublas<t>spr`.
    #[doc(alias = "cublasSspr")]
    spr for RealElement, "Blas::spr"
}

/// Declares the updates of a packed symmetric or Hermitian matrix by two vectors.
macro_rules! update_by_two {
    ($(#[$doc:meta])* $name:ident for $element:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the order of the matrix.
            pub fn $name<T: $element>(
                &mut self,
                alpha: impl ScalarArgument<T>,
                mut x: Vector<'_, T>,
                mut y: Vector<'_, T>,
                a: &mut PackedMut<'_, T>,
            ) -> Result<()> {
                agree($operation, a.stored, x.len(), y.len())?;
                if T::IS_COMPLEX && !is_hermitian_as_stored(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if x.is_empty() {
                    return Ok(());
                }
                let mut alpha = Aligned(alpha);
                let alpha_ptr = alpha.pointer();
                let mode = pointer_mode(&alpha);
                let fill = a.triangle.fill_mode(a.stored);
                let n = x.len();
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let y_ptr = y.as_ptr();
                let incx = x.stride();
                let incy = y.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut x, &mut y, a), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factor is
                    // where the mode requires.
                    unsafe { T::hpr2(api, raw, fill, n, alpha_ptr, x_ptr, incx, y_ptr, incy, a_ptr) }
                })
            }
        }
    };
}

update_by_two! {
    /// Adds `alpha` · `x` · adjoint(`y`) + conj(`alpha`) · `y` · adjoint(`x`) to a packed Hermitian
    /// matrix, or a symmetric one of real elements.
    ///
    /// CUDA: `cublas<t>hpr2`, `cublas<t>spr2`.
    #[doc(alias = "cublasChpr2")]
    hpr2 for Element, "Blas::hpr2"
}

update_by_two! {
    /// Adds `alpha` · (`x` · transposed(`y`) + `y` · transposed(`x`)) to a packed symmetric matrix.
    ///
    /// CUDA: `cublas<t>spr2`.
    #[doc(alias = "cublasSspr2")]
    spr2 for RealElement, "Blas::spr2"
}

/// Declares the operations of a packed triangular matrix on a vector in place.
macro_rules! triangular {
    ($(#[$doc:meta])* $name:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the conjugation of the matrix.
            pub fn $name<T: Element>(
                &mut self,
                diagonal: Diagonal,
                mut a: Packed<'_, T>,
                x: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                agree($operation, a.stored, x.len(), x.len())?;
                let transform = transpose_operation($operation, a.stored)?;
                if x.is_empty() {
                    return Ok(());
                }
                let fill = a.triangle.fill_mode(a.stored);
                let diagonal = diagonal.to_raw();
                let n = x.len();
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let incx = x.stride();
                let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
                self.enqueue($operation, mode, (&mut a, x), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory.
                    unsafe { T::$name(api, raw, fill, transform, diagonal, n, a_ptr, x_ptr, incx) }
                })
            }
        }
    };
}

triangular! {
    /// Computes `x` = `a` · `x` for a packed triangular matrix.
    ///
    /// CUDA: `cublas<t>tpmv`.
    #[doc(alias = "cublasStpmv")]
    tpmv, "Blas::tpmv"
}

triangular! {
    /// Solves `a` · `z` = `x` for a packed triangular matrix, and stores `z` in `x`.
    ///
    /// CUDA: `cublas<t>tpsv`.
    #[doc(alias = "cublasStpsv")]
    tpsv, "Blas::tpsv"
}
