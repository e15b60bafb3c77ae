//! Level 2: operations on a matrix and vectors.

mod banded;
mod packed;

use crate::Blas;
use crate::element::Element;
use crate::error::{Error, Result, ShapeError};
use crate::level1::pointer_mode;
use crate::matrix::{Matrix, MatrixMut};
use crate::operand::sealed::Factor as _;
use crate::operand::{Aligned, ScalarArgument};
use crate::stored::Stored;
use crate::sys::{cublasOperation_t, cublasPointerMode_t};
use crate::triangle::{Diagonal, Triangle};
use crate::vector::{Vector, VectorMut};

impl Blas {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y`.
    ///
    /// CUDA: `cublas<t>gemv`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes do not agree.
    #[doc(alias = "cublasSgemv")]
    pub fn gemv<T: Element, S: ScalarArgument<T>>(
        &mut self,
        alpha: S,
        mut a: Matrix<'_, T>,
        mut x: Vector<'_, T>,
        beta: S,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::gemv";
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
                    T::gemv(
                        api, raw, transform, m, n, alpha_ptr, a_ptr, lda, x_ptr, incx, beta_ptr,
                        y_ptr, incy,
                    )
                }
            },
        )
    }

    /// Adds `alpha` · `x` · transposed(`y`) to `a`.
    ///
    /// CUDA: `cublas<t>ger`, `cublas<t>geru`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes do not agree.
    #[doc(alias = "cublasSger")]
    #[doc(alias = "cublasCgeru")]
    pub fn ger<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        x: Vector<'_, T>,
        y: Vector<'_, T>,
        a: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::ger";
        agree(OPERATION, a.stored, y.len(), x.len())?;
        if a.stored.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let (mut x, mut y) = if a.stored.is_transposed {
            (y, x)
        } else {
            (x, y)
        };
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let m = a.stored.length;
        let n = a.stored.count;
        let lda = a.stored.leading_dimension;
        let a_ptr = a.as_ptr();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut x, &mut y, a),
            |api, raw| {
                // SAFETY: the operands have these shapes in live memory, and the factor is where
                // the mode requires.
                unsafe {
                    T::ger(
                        api, raw, m, n, alpha_ptr, x_ptr, incx, y_ptr, incy, a_ptr, lda,
                    )
                }
            },
        )
    }

    /// Adds `alpha` · `x` · adjoint(`y`) to `a`.
    ///
    /// CUDA: `cublas<t>ger`, `cublas<t>gerc`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes do not agree, or if `a` is a complex matrix by rows, which
    /// cuBLAS does not support.
    #[doc(alias = "cublasCgerc")]
    pub fn ger_conjugated<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        mut x: Vector<'_, T>,
        mut y: Vector<'_, T>,
        a: &mut MatrixMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::ger_conjugated";
        if !T::IS_COMPLEX {
            return self.ger(alpha, x, y, a);
        }
        agree(OPERATION, a.stored, y.len(), x.len())?;
        if a.stored.is_transposed {
            return Err(unsupported(OPERATION, a.stored));
        }
        if a.stored.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let m = a.stored.length;
        let n = a.stored.count;
        let lda = a.stored.leading_dimension;
        let a_ptr = a.as_ptr();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        self.enqueue(
            OPERATION,
            mode,
            (&mut alpha, &mut x, &mut y, a),
            |api, raw| {
                // SAFETY: the operands have these shapes in live memory, and the factor is where
                // the mode requires.
                unsafe {
                    T::ger_conjugated(
                        api, raw, m, n, alpha_ptr, x_ptr, incx, y_ptr, incy, a_ptr, lda,
                    )
                }
            },
        )
    }
}

/// Declares the products of a symmetric or Hermitian matrix, of which one triangle is accessed, and
/// a vector.
macro_rules! product {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $is_expressible:ident) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of the matrix is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`] if the shapes do not agree, or if cuBLAS does not support the order
            /// and conjugation of the matrix.
            pub fn $name<T: Element, S: ScalarArgument<T>>(
                &mut self,
                alpha: S,
                triangle: Triangle,
                mut a: Matrix<'_, T>,
                mut x: Vector<'_, T>,
                beta: S,
                y: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), y.len())?;
                if T::IS_COMPLEX && !$is_expressible(a.stored) {
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
                let fill = triangle.fill_mode(a.stored);
                let n = a.stored.count;
                let lda = a.stored.leading_dimension;
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let y_ptr = y.as_ptr();
                let incx = x.stride();
                let incy = y.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut beta, &mut a, &mut x, y), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factors are
                    // where the mode requires.
                    unsafe { T::$name(api, raw, fill, n, alpha_ptr, a_ptr, lda, x_ptr, incx, beta_ptr, y_ptr, incy) }
                })
            }
        }
    };
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a symmetric matrix.
    ///
    /// CUDA: `cublas<t>symv`.
    #[doc(alias = "cublasSsymv")]
    symv, "Blas::symv", is_symmetric_as_stored
}

product! {
    /// Computes `y` = `alpha` · `a` · `x` + `beta` · `y` for a Hermitian matrix, or a symmetric one
    /// of real elements.
    ///
    /// CUDA: `cublas<t>hemv`, `cublas<t>symv`.
    #[doc(alias = "cublasChemv")]
    hemv, "Blas::hemv", is_hermitian_as_stored
}

/// Declares the updates of one triangle of a symmetric or Hermitian matrix by a vector.
macro_rules! update {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $factor:ty, $is_expressible:ident) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of the matrix is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`] if the shapes do not agree, or if cuBLAS does not support the order
            /// of the matrix.
            pub fn $name<T: Element>(
                &mut self,
                alpha: impl ScalarArgument<$factor>,
                mut x: Vector<'_, T>,
                triangle: Triangle,
                a: &mut MatrixMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), x.len())?;
                if T::IS_COMPLEX && !$is_expressible(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if x.is_empty() {
                    return Ok(());
                }
                let mut alpha = Aligned(alpha);
                let alpha_ptr = alpha.pointer();
                let mode = pointer_mode(&alpha);
                let fill = triangle.fill_mode(a.stored);
                let n = x.len();
                let lda = a.stored.leading_dimension;
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let incx = x.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut x, a), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factor is
                    // where the mode requires.
                    unsafe { T::$name(api, raw, fill, n, alpha_ptr, x_ptr, incx, a_ptr, lda) }
                })
            }
        }
    };
}

update! {
    /// Adds `alpha` · `x` · transposed(`x`) to a symmetric matrix.
    ///
    /// CUDA: `cublas<t>syr`.
    #[doc(alias = "cublasSsyr")]
    syr, "Blas::syr", T, is_symmetric_as_stored
}

update! {
    /// Adds `alpha` · `x` · adjoint(`x`) to a Hermitian matrix, or a symmetric one of real
    /// elements.
    ///
    /// CUDA: `cublas<t>her`, `cublas<t>syr`.
    #[doc(alias = "cublasCher")]
    her, "Blas::her", T::Real, is_hermitian_as_stored
}

/// Declares the updates of one triangle of a symmetric or Hermitian matrix by two vectors.
macro_rules! update_by_two {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $is_expressible:ident) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// Only one triangle of the matrix is accessed.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`] if the shapes do not agree, or if cuBLAS does not support the order
            /// of the matrix.
            pub fn $name<T: Element>(
                &mut self,
                alpha: impl ScalarArgument<T>,
                mut x: Vector<'_, T>,
                mut y: Vector<'_, T>,
                triangle: Triangle,
                a: &mut MatrixMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), y.len())?;
                if T::IS_COMPLEX && !$is_expressible(a.stored) {
                    return Err(unsupported($operation, a.stored));
                }
                if x.is_empty() {
                    return Ok(());
                }
                let mut alpha = Aligned(alpha);
                let alpha_ptr = alpha.pointer();
                let mode = pointer_mode(&alpha);
                let fill = triangle.fill_mode(a.stored);
                let n = x.len();
                let lda = a.stored.leading_dimension;
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let y_ptr = y.as_ptr();
                let incx = x.stride();
                let incy = y.stride();
                self.enqueue($operation, mode, (&mut alpha, &mut x, &mut y, a), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory, and the factor is
                    // where the mode requires.
                    unsafe { T::$name(api, raw, fill, n, alpha_ptr, x_ptr, incx, y_ptr, incy, a_ptr, lda) }
                })
            }
        }
    };
}

update_by_two! {
    /// Adds `alpha` · (`x` · transposed(`y`) + `y` · transposed(`x`)) to a symmetric matrix.
    ///
    /// CUDA: `cublas<t>syr2`.
    #[doc(alias = "cublasSsyr2")]
    syr2, "Blas::syr2", is_symmetric_as_stored
}

update_by_two! {
    /// Adds `alpha` · `x` · adjoint(`y`) + conj(`alpha`) · `y` · adjoint(`x`) to a Hermitian
    /// matrix, or a symmetric one of real elements.
    ///
    /// CUDA: `cublas<t>her2`, `cublas<t>syr2`.
    #[doc(alias = "cublasCher2")]
    her2, "Blas::her2", is_hermitian_as_stored
}

/// Declares the operations of a triangular matrix on a vector in place.
macro_rules! triangular {
    ($(#[$doc:meta])* $name:ident, $operation:literal) => {
        impl Blas {
            $(#[$doc])*
            ///
            /// `triangle` is that of `a` as the view shows it.
            ///
            /// # Errors
            ///
            /// [`Error::Shape`] if the shapes do not agree, or if cuBLAS does not support the
            /// conjugation of the matrix.
            pub fn $name<T: Element>(
                &mut self,
                triangle: Triangle,
                diagonal: Diagonal,
                mut a: Matrix<'_, T>,
                x: &mut VectorMut<'_, T>,
            ) -> Result<()> {
                square($operation, a.stored)?;
                agree($operation, a.stored, x.len(), x.len())?;
                let transform = transpose_operation($operation, a.stored)?;
                if x.is_empty() {
                    return Ok(());
                }
                let fill = triangle.fill_mode(a.stored);
                let diagonal = diagonal.to_raw();
                let n = x.len();
                let lda = a.stored.leading_dimension;
                let a_ptr = a.as_ptr();
                let x_ptr = x.as_ptr();
                let incx = x.stride();
                let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
                self.enqueue($operation, mode, (&mut a, x), |api, raw| {
                    // SAFETY: the operands have these shapes in live memory.
                    unsafe { T::$name(api, raw, fill, transform, diagonal, n, a_ptr, lda, x_ptr, incx) }
                })
            }
        }
    };
}

triangular! {
    /// Computes `x` = `a` · `x` for a triangular matrix.
    ///
    /// CUDA: `cublas<t>trmv`.
    #[doc(alias = "cublasStrmv")]
    trmv, "Blas::trmv"
}

triangular! {
    /// Solves `a` · `z` = `x` for a triangular matrix, and stores `z` in `x`.
    ///
    /// CUDA: `cublas<t>trsv`.
    #[doc(alias = "cublasStrsv")]
    trsv, "Blas::trsv"
}

/// Returns `true` if a symmetric matrix equals the stored one: transposition does not change it,
/// conjugation does.
pub(crate) fn is_symmetric_as_stored(stored: Stored) -> bool {
    !stored.is_conjugated
}

/// Returns `true` if a Hermitian matrix equals the stored one: transposition conjugates it.
pub(crate) fn is_hermitian_as_stored(stored: Stored) -> bool {
    stored.is_conjugated == stored.is_transposed
}

#[inline]
pub(crate) fn transpose_operation(
    operation: &'static str,
    stored: Stored,
) -> Result<cublasOperation_t> {
    stored
        .operation()
        .ok_or_else(|| unsupported(operation, stored))
}

#[cold]
pub(crate) fn unsupported(operation: &'static str, stored: Stored) -> Error {
    let is_adjoint = if stored.is_conjugated {
        "conjugated"
    } else {
        "not conjugated"
    };
    let order = if stored.is_transposed {
        "by rows or transposed"
    } else {
        "by columns"
    };
    let problem = format!(
        "unsupported by cuBLAS (a complex matrix of {stored}, {order} and {is_adjoint}); use the other order"
    );
    ShapeError::refused(operation, problem)
}

pub(crate) fn square(operation: &'static str, stored: Stored) -> Result<()> {
    if stored.length == stored.count {
        return Ok(());
    }
    Err(ShapeError::refused(
        operation,
        format!("the matrix is not square ({stored})"),
    ))
}

/// Checks the lengths of the factor and of the product of a matrix.
fn agree(operation: &'static str, a: Stored, columns: usize, rows: usize) -> Result<()> {
    if a.shape() == (rows, columns) {
        return Ok(());
    }
    let problem = format!(
        "the shapes do not agree (the matrix is {a}, its vectors have {rows} and {columns} elements)"
    );
    Err(ShapeError::refused(operation, problem))
}
