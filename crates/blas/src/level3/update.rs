//! Products with symmetric matrices, and updates of them.

use super::same_order;
use super::triangular::{same_shape, side_agrees};
use crate::Blas;
use crate::element::Element;
use crate::error::{Result, ShapeError};
use crate::level1::pointer_mode;
use crate::level2::{is_hermitian_as_stored, is_symmetric_as_stored, square, unsupported};
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::stored::Stored;
use crate::sys::cublasOperation_t;
use crate::triangle::{Side, Triangle};

/// Declares the products of a symmetric or Hermitian matrix, of which one triangle is accessed, and
/// a general matrix.
macro_rules! product {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $is_expressible:ident) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of `a` is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the orders.
            #[expect(clippy::too_many_arguments, reason = "these are the operation's parameters")]
            pub fn $name<T: Element, S: ScalarArgument<T>>(
                &mut self,
                alpha: S,
                side: Side,
                triangle: Triangle,
                a: Matrix<'_, T>,
                mut b: Matrix<'_, T>,
                beta: S,
                c: &mut MatrixMut<'_, T>,
            ) -> Result<()> {
                side_agrees($operation, side, a.stored, b.stored)?;
                same_shape($operation, b.stored, c.stored)?;
                same_order($operation, b.stored, c.stored)?;
                let mut alpha = Aligned(alpha);
                let mut beta = Aligned(beta);
                let result = c.stored;
                let mut a = if result.is_transposed { a.transposed() } else { a };
                if T::IS_COMPLEX && !$is_expressible(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if result.is_empty() {
                    return Ok(());
                }
                let alpha_ptr = alpha.pointer();
                let beta_ptr = beta.pointer();
                let mode = pointer_mode(&alpha);
                let triangle = if result.is_transposed { triangle.flipped() } else { triangle };
                let side = side.side_mode(result);
                let fill = triangle.fill_mode(a.stored);
                let m = result.length;
                let n = result.count;
                let lda = a.stored.leading_dimension;
                let ldb = b.stored.leading_dimension;
                let ldc = result.leading_dimension;
                let a_ptr = a.as_ptr();
                let b_ptr = b.as_ptr();
                let c_ptr = c.as_ptr();
                self.enqueue($operation, mode, (&mut alpha, &mut beta, &mut a, &mut b, c), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factors are
                    // where the mode requires.
                    unsafe { T::$name(api, raw, side, fill, m, n, alpha_ptr, a_ptr, lda, b_ptr, ldb, beta_ptr, c_ptr, ldc) }
                })
            }
        }
    };
}

product! {
    /// Computes `c` = `alpha` · `a` · `b` + `beta` · `c` for a symmetric matrix `a`, or with `b` ·
    /// `a` if its side is the right one.
    ///
    /// CUDA: `cublas<t>symm`.
    #[doc(alias = "cublasSsymm")]
    symm, "Blas::symm", is_symmetric_as_stored
}

product! {
    /// Computes `c` = `alpha` · `a` · `b` + `beta` · `c` for a Hermitian matrix `a`, or with `b` ·
    /// `a` if its side is the right one.
    ///
    /// CUDA: `cublas<t>hemm`, `cublas<t>symm`.
    #[doc(alias = "cublasChemm")]
    hemm, "Blas::hemm", is_hermitian_as_stored
}

/// Declares the updates of one triangle of a symmetric or Hermitian matrix by a general matrix.
macro_rules! update {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $factor:ty, $transform:ident) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of `c` is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the orders.
            pub fn $name<T: Element, S: ScalarArgument<$factor>>(
                &mut self,
                alpha: S,
                mut a: Matrix<'_, T>,
                beta: S,
                triangle: Triangle,
                c: &mut MatrixMut<'_, T>,
            ) -> Result<()> {
                square($operation, c.stored)?;
                same_rows($operation, a.stored, c.stored)?;
                let transform = $transform($operation, a.stored, c.stored, T::IS_COMPLEX)?;
                if c.stored.is_empty() {
                    return Ok(());
                }
                let mut alpha = Aligned(alpha);
                let mut beta = Aligned(beta);
                let alpha_ptr = alpha.pointer();
                let beta_ptr = beta.pointer();
                let mode = pointer_mode(&alpha);
                let fill = triangle.fill_mode(c.stored);
                let n = c.stored.count;
                let k = a.stored.columns();
                let lda = a.stored.leading_dimension;
                let ldc = c.stored.leading_dimension;
                let a_ptr = a.as_ptr();
                let c_ptr = c.as_ptr();
                self.enqueue($operation, mode, (&mut alpha, &mut beta, &mut a, c), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factors are
                    // where the mode requires.
                    unsafe { T::$name(api, raw, fill, transform, n, k, alpha_ptr, a_ptr, lda, beta_ptr, c_ptr, ldc) }
                })
            }
        }
    };
}

update! {
    /// Computes `c` = `alpha` · `a` · transposed(`a`) + `beta` · `c` for a symmetric matrix.
    ///
    /// CUDA: `cublas<t>syrk`.
    #[doc(alias = "cublasSsyrk")]
    syrk, "Blas::syrk", T, symmetric
}

update! {
    /// Computes `c` = `alpha` · `a` · adjoint(`a`) + `beta` · `c` for a Hermitian matrix, or a
    /// symmetric one of real elements.
    ///
    /// CUDA: `cublas<t>herk`, `cublas<t>syrk`.
    #[doc(alias = "cublasCherk")]
    herk, "Blas::herk", T::Real, hermitian
}

/// Declares the updates of one triangle of a symmetric or Hermitian matrix by two general matrices.
macro_rules! update_by_two {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $factor:ty, $transform:ident, $is_hermitian:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of `c` is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) if the shapes do not agree, or if cuBLAS does
            /// not support the orders.
            pub fn $name<T: Element>(
                &mut self,
                alpha: T,
                mut a: Matrix<'_, T>,
                mut b: Matrix<'_, T>,
                beta: $factor,
                triangle: Triangle,
                c: &mut MatrixMut<'_, T>,
            ) -> Result<()> {
                square($operation, c.stored)?;
                same_rows($operation, a.stored, c.stored)?;
                same_shape($operation, b.stored, a.stored)?;
                let transform = $transform($operation, a.stored, c.stored, T::IS_COMPLEX)?;
                if $transform($operation, b.stored, c.stored, T::IS_COMPLEX)? != transform {
                    return Err(ShapeError::refused($operation, "unsupported by cuBLAS (a and b are stored in different orders)"));
                }
                // A transposed Hermitian update has the conjugated factor, which is not where the
                // caller has it.
                if $is_hermitian && T::IS_COMPLEX && c.stored.is_transposed {
                    return Err(unsupported($operation, c.stored));
                }
                if c.stored.is_empty() {
                    return Ok(());
                }
                let alpha_ptr = alpha.pointer();
                let beta_ptr = beta.pointer();
                let mode = pointer_mode(&alpha);
                let fill = triangle.fill_mode(c.stored);
                let n = c.stored.count;
                let k = a.stored.columns();
                let ldc = c.stored.leading_dimension;
                let lda = a.stored.leading_dimension;
                let ldb = b.stored.leading_dimension;
                let a_ptr = a.as_ptr();
                let b_ptr = b.as_ptr();
                let c_ptr = c.as_ptr();
                self.enqueue($operation, mode, (&mut a, &mut b, c), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factors are on
                    // the host.
                    unsafe { T::$name(api, raw, fill, transform, n, k, alpha_ptr, a_ptr, lda, b_ptr, ldb, beta_ptr, c_ptr, ldc) }
                })
            }
        }
    };
}

update_by_two! {
    /// Computes `c` = `alpha` · (`a` · transposed(`b`) + `b` · transposed(`a`)) + `beta` · `c` for
    /// a symmetric matrix.
    ///
    /// CUDA: `cublas<t>syr2k`.
    #[doc(alias = "cublasSsyr2k")]
    syr2k, "Blas::syr2k", T, symmetric, false
}

update_by_two! {
    /// Computes `c` = `alpha` · `a` · adjoint(`b`) + conj(`alpha`) · `b` · adjoint(`a`) + `beta` ·
    /// `c` for a Hermitian matrix, or a symmetric one of real elements.
    ///
    /// CUDA: `cublas<t>her2k`, `cublas<t>syr2k`.
    #[doc(alias = "cublasCher2k")]
    her2k, "Blas::her2k", T::Real, hermitian, true
}

/// Returns cuBLAS's operation for a · transposed(a), which is its own transposition.
fn symmetric(
    operation: &'static str,
    a: Stored,
    _c: Stored,
    _is_complex: bool,
) -> Result<cublasOperation_t> {
    match (a.is_transposed, a.is_conjugated) {
        (false, false) => Ok(cublasOperation_t::CUBLAS_OP_N),
        (true, false) => Ok(cublasOperation_t::CUBLAS_OP_T),
        (_, true) => Err(unsupported(operation, a)),
    }
}

/// Returns cuBLAS's operation for a · adjoint(a), whose transposition is that of the conjugates.
fn hermitian(
    operation: &'static str,
    a: Stored,
    c: Stored,
    is_complex: bool,
) -> Result<cublasOperation_t> {
    match (a.is_transposed, a.is_conjugated ^ c.is_transposed) {
        (false, _) if !is_complex => Ok(cublasOperation_t::CUBLAS_OP_N),
        (true, _) if !is_complex => Ok(cublasOperation_t::CUBLAS_OP_T),
        (false, false) => Ok(cublasOperation_t::CUBLAS_OP_N),
        (true, true) => Ok(cublasOperation_t::CUBLAS_OP_C),
        _ => Err(unsupported(operation, a)),
    }
}

fn same_rows(operation: &'static str, a: Stored, c: Stored) -> Result<()> {
    if a.rows() == c.rows() {
        return Ok(());
    }
    Err(ShapeError::refused(
        operation,
        format!("the shapes do not agree (a is {a}, c is {c})"),
    ))
}
