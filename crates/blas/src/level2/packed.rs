//! Operations on a packed matrix and vectors.

use super::{agree, is_hermitian_as_stored, operation_of, unsupported};
use crate::element::{Element, RealElement};
use crate::error::Result;
use crate::level1::mode_of;
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::packed::{Packed, PackedMut};
use crate::sys::cublasPointerMode_t;
use crate::triangle::Diagonal;
use crate::vector::{Vector, VectorMut};
use crate::{Blas, address, address_mut};

/// Declares the products of a packed symmetric or Hermitian matrix and a vector.
macro_rules! product {
    ($(#[$doc:meta])* $name:ident for $element:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does not support the order and conjugation of
            /// the matrix.
            pub fn $name<T: $element, S: ScalarArgument<T>>(
                &mut self,
                alpha: S,
                a: Packed<'_, T>,
                x: Vector<'_, T>,
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
                let (mut alpha, mut a, mut x, mut beta) = (Aligned(alpha), a, x, Aligned(beta));
                let (factors, mode) = ((alpha.pointer(), beta.pointer()), mode_of(&alpha));
                let (fill, n) = (a.triangle.of(a.stored), a.stored.count);
                let (at, from, to, steps) = (a.address(), x.address(), y.address(), (x.stride(), y.stride()));
                self.enqueue($operation, mode, (&mut alpha, &mut beta, &mut a, &mut x, y), |api, raw| {
                    let (a, x, y) = (address(at), address(from), address_mut(to));
                    // SAFETY: the operands have these shapes in live memory, and the factors are where the mode requires.
                    unsafe { T::hpmv(api, raw, fill, n, factors.0, a, x, steps.0, factors.1, y, steps.1) }
                })
            }
        }
    };
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a packed Hermitian matrix, or a symmetric one of real elements.
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
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does not support the order of the matrix.
            pub fn $name<T: $element>(
                &mut self,
                alpha: impl ScalarArgument<T::Real>,
                x: Vector<'_, T>,
                a: &mut PackedMut<'_, T>,
            ) -> Result<()> {
                agree($operation, a.stored, x.len(), x.len())?;
                if T::IS_COMPLEX && !is_hermitian_as_stored(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if x.is_empty() {
                    return Ok(());
                }
                let (mut alpha, mut x) = (Aligned(alpha), x);
                let (factor, mode) = (alpha.pointer(), mode_of(&alpha));
                let (fill, n, at, from, step) =
                    (a.triangle.of(a.stored), x.len(), a.address(), x.address(), x.stride());
                self.enqueue($operation, mode, (&mut alpha, &mut x, a), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factor is where the mode requires.
                    unsafe { T::hpr(api, raw, fill, n, factor, address(from), step, address_mut(at)) }
                })
            }
        }
    };
}

update! {
    /// Adds `alpha` · `x` · adjoint(`x`) to a packed Hermitian matrix, or a symmetric one of real elements.
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
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does not support the order of the matrix.
            pub fn $name<T: $element>(
                &mut self,
                alpha: impl ScalarArgument<T>,
                x: Vector<'_, T>,
                y: Vector<'_, T>,
                a: &mut PackedMut<'_, T>,
            ) -> Result<()> {
                agree($operation, a.stored, x.len(), y.len())?;
                if T::IS_COMPLEX && !is_hermitian_as_stored(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if x.is_empty() {
                    return Ok(());
                }
                let (mut alpha, mut x, mut y) = (Aligned(alpha), x, y);
                let (factor, mode) = (alpha.pointer(), mode_of(&alpha));
                let (fill, n, at) = (a.triangle.of(a.stored), x.len(), a.address());
                let (one, other, steps) = (x.address(), y.address(), (x.stride(), y.stride()));
                self.enqueue($operation, mode, (&mut alpha, &mut x, &mut y, a), |api, raw| {
                    let (x, y, a) = (address(one), address(other), address_mut(at));
                    // SAFETY: the operands have these shapes in live memory, and the factor is where the mode requires.
                    unsafe { T::hpr2(api, raw, fill, n, factor, x, steps.0, y, steps.1, a) }
                })
            }
        }
    };
}

update_by_two! {
    /// Adds `alpha` · `x` · adjoint(`y`) + conj(`alpha`) · `y` · adjoint(`x`) to a packed Hermitian matrix, or a symmetric one of real
    /// elements.
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
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does not support the conjugation of the
            /// matrix.
            pub fn $name<T: Element>(
                &mut self,
                diagonal: Diagonal,
                a: Packed<'_, T>,
                x: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                agree($operation, a.stored, x.len(), x.len())?;
                let transform = operation_of($operation, a.stored)?;
                if x.is_empty() {
                    return Ok(());
                }
                let mut a = a;
                let (fill, diagonal, n) = (a.triangle.of(a.stored), diagonal.to_raw(), x.len());
                let (at, to, step) = (a.address(), x.address(), x.stride());
                let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
                self.enqueue($operation, mode, (&mut a, x), |api, raw| {
                    let (a, x) = (address(at), address_mut(to));
                    // SAFETY: the operands have these shapes in live memory.
                    unsafe { T::$name(api, raw, fill, transform, diagonal, n, a, x, step) }
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
