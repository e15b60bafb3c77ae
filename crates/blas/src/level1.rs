//! Level 1: operations on vectors.

mod rotation;

use std::ffi::c_void;

use crate::Blas;
use crate::element::Element;
use crate::error::{Error, Result, ShapeError};
use crate::operand::sealed::Factor;
use crate::operand::{Aligned, ScalarArgument};
use crate::sys::{Api, cublasHandle_t, cublasPointerMode_t};
use crate::vector::{Vector, VectorMut};

pub use self::rotation::{ModifiedRotation, Rotation};

const HOST: cublasPointerMode_t = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;

impl Blas {
    /// Adds `alpha` · `x` to `y`.
    ///
    /// CUDA: `cublas<t>axpy`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ.
    #[doc(alias = "cublasSaxpy")]
    // As for `Blas::gemm`.
    #[inline(always)]
    pub fn axpy<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        mut x: Vector<'_, T>,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::axpy";
        same_len(OPERATION, x.len(), y.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        self.enqueue(OPERATION, mode, (&mut alpha, &mut x, y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory, and the factor is where the
            // mode requires.
            unsafe { T::axpy(api, raw, n, alpha_ptr, x_ptr, incx, y_ptr, incy) }
        })
    }

    /// Multiplies `x` by `alpha`.
    ///
    /// CUDA: `cublas<t>scal`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "cublasSscal")]
    pub fn scal<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T>,
        x: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        if x.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let n = x.len();
        let x_ptr = x.as_ptr();
        let incx = x.stride();
        self.enqueue("Blas::scal", mode, (&mut alpha, x), |api, raw| {
            // SAFETY: the vector has `n` elements in live memory, and the factor is where the mode
            // requires.
            unsafe { T::scal(api, raw, n, alpha_ptr, x_ptr, incx) }
        })
    }

    /// Multiplies `x` by a real number.
    ///
    /// CUDA: `cublas<t>scal`, `cublasCsscal`, `cublasZdscal`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "cublasCsscal")]
    pub fn scal_real<T: Element>(
        &mut self,
        alpha: impl ScalarArgument<T::Real>,
        x: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        if x.is_empty() {
            return Ok(());
        }
        let mut alpha = Aligned(alpha);
        let alpha_ptr = alpha.pointer();
        let mode = pointer_mode(&alpha);
        let n = x.len();
        let x_ptr = x.as_ptr();
        let incx = x.stride();
        self.enqueue("Blas::scal_real", mode, (&mut alpha, x), |api, raw| {
            // SAFETY: the vector has `n` elements in live memory, and the factor is where the mode
            // requires.
            unsafe { T::scal_real(api, raw, n, alpha_ptr, x_ptr, incx) }
        })
    }

    /// Copies `x` to `y`.
    ///
    /// CUDA: `cublas<t>copy`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ.
    #[doc(alias = "cublasScopy")]
    pub fn copy<T: Element>(
        &mut self,
        mut x: Vector<'_, T>,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::copy";
        same_len(OPERATION, x.len(), y.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        self.enqueue(OPERATION, HOST, (&mut x, y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory.
            unsafe { T::copy(api, raw, n, x_ptr, incx, y_ptr, incy) }
        })
    }

    /// Exchanges the elements of `x` and `y`.
    ///
    /// CUDA: `cublas<t>swap`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ.
    #[doc(alias = "cublasSswap")]
    pub fn swap<T: Element>(
        &mut self,
        x: &mut VectorMut<'_, T>,
        y: &mut VectorMut<'_, T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::swap";
        same_len(OPERATION, x.len(), y.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        self.enqueue(OPERATION, HOST, (x, y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory.
            unsafe { T::swap(api, raw, n, x_ptr, incx, y_ptr, incy) }
        })
    }

    /// Returns the sum of the products of the elements of `x` and `y`. Waits for it.
    ///
    /// CUDA: `cublas<t>dot`, `cublas<t>dotu`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ; an argument error while the
    /// thread captures.
    #[doc(alias = "cublasSdot")]
    #[doc(alias = "cublasCdotu")]
    pub fn dot<T: Element>(&mut self, mut x: Vector<'_, T>, mut y: Vector<'_, T>) -> Result<T> {
        const OPERATION: &str = "Blas::dot";
        same_len(OPERATION, x.len(), y.len())?;
        let mut result = Aligned(T::ZERO);
        if x.is_empty() {
            return Ok(result.0);
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        let result_ptr = (&raw mut result.0).cast();
        self.compute(OPERATION, (&mut x, &mut y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory, and the call waits for the
            // result.
            unsafe { T::dot(api, raw, n, x_ptr, incx, y_ptr, incy, result_ptr) }
        })?;
        Ok(result.0)
    }

    /// Returns the sum of the products of the conjugated elements of `x` and those of `y`. Waits
    /// for it.
    ///
    /// CUDA: `cublas<t>dot`, `cublas<t>dotc`.
    ///
    /// # Errors
    ///
    /// As for [`Blas::dot`].
    #[doc(alias = "cublasCdotc")]
    pub fn dot_conjugated<T: Element>(
        &mut self,
        mut x: Vector<'_, T>,
        mut y: Vector<'_, T>,
    ) -> Result<T> {
        const OPERATION: &str = "Blas::dot_conjugated";
        same_len(OPERATION, x.len(), y.len())?;
        let mut result = Aligned(T::ZERO);
        if x.is_empty() {
            return Ok(result.0);
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        let result_ptr = (&raw mut result.0).cast();
        self.compute(OPERATION, (&mut x, &mut y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory, and the call waits for the
            // result.
            unsafe { T::dot_conjugated(api, raw, n, x_ptr, incx, y_ptr, incy, result_ptr) }
        })?;
        Ok(result.0)
    }

    /// Returns the Euclidean norm of `x`. Waits for it.
    ///
    /// CUDA: `cublas<t>nrm2`.
    ///
    /// # Errors
    ///
    /// An argument error while the thread captures.
    #[doc(alias = "cublasSnrm2")]
    pub fn nrm2<T: Element>(&mut self, mut x: Vector<'_, T>) -> Result<T::Real> {
        let mut result = T::Real::ZERO;
        if x.is_empty() {
            return Ok(result);
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let incx = x.stride();
        let result_ptr = (&raw mut result).cast();
        self.compute("Blas::nrm2", (&mut x,), |api, raw| {
            // SAFETY: the vector has `n` elements in live memory, and the call waits for the
            // result.
            unsafe { T::nrm2(api, raw, n, x_ptr, incx, result_ptr) }
        })?;
        Ok(result)
    }

    /// Returns the sum of the absolute values of `x`: of |re| + |im| for complex elements. Waits
    /// for it.
    ///
    /// CUDA: `cublas<t>asum`.
    ///
    /// # Errors
    ///
    /// An argument error while the thread captures.
    #[doc(alias = "cublasSasum")]
    pub fn asum<T: Element>(&mut self, mut x: Vector<'_, T>) -> Result<T::Real> {
        let mut result = T::Real::ZERO;
        if x.is_empty() {
            return Ok(result);
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let incx = x.stride();
        let result_ptr = (&raw mut result).cast();
        self.compute("Blas::asum", (&mut x,), |api, raw| {
            // SAFETY: the vector has `n` elements in live memory, and the call waits for the
            // result.
            unsafe { T::asum(api, raw, n, x_ptr, incx, result_ptr) }
        })?;
        Ok(result)
    }

    /// Returns the index, counted from 0, of the first element with the greatest absolute value, |re| + |im|
    /// for complex elements; `None` for an empty vector. Waits for it.
    ///
    /// CUDA: `cublasI<t>amax`.
    ///
    /// # Errors
    ///
    /// An argument error while the thread captures.
    #[doc(alias = "cublasIsamax")]
    pub fn index_of_max<T: Element>(&mut self, x: Vector<'_, T>) -> Result<Option<usize>> {
        self.extreme_index("Blas::index_of_max", x, T::amax)
    }

    /// Returns the index, counted from 0, of the first element with the least absolute value, |re| + |im|
    /// for complex elements; `None` for an empty vector. Waits for it.
    ///
    /// CUDA: `cublasI<t>amin`.
    ///
    /// # Errors
    ///
    /// An argument error while the thread captures.
    #[doc(alias = "cublasIsamin")]
    pub fn index_of_min<T: Element>(&mut self, x: Vector<'_, T>) -> Result<Option<usize>> {
        self.extreme_index("Blas::index_of_min", x, T::amin)
    }

    /// Returns the index that an `amax` or `amin` function computes. The library counts it from 1,
    /// as 32 or 64 bits.
    fn extreme_index<T: Element>(
        &mut self,
        operation: &'static str,
        mut x: Vector<'_, T>,
        function: IndexFunction,
    ) -> Result<Option<usize>> {
        if x.is_empty() {
            return Ok(None);
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let incx = x.stride();
        // A result of 32 bits leaves the upper half, the second on every platform of CUDA, at 0.
        let mut index = 0_u64;
        let result_ptr = (&raw mut index).cast();
        self.compute(operation, (&mut x,), |api, raw| {
            // SAFETY: the vector has `n` elements in live memory, and the call waits for the
            // result.
            unsafe { function(api, raw, n, x_ptr, incx, result_ptr) }
        })?;
        Ok(usize::try_from(index)
            .ok()
            .and_then(|index| index.checked_sub(1)))
    }
}

/// The signature of `Routines::amax` and `Routines::amin`.
type IndexFunction =
    unsafe fn(&Api, cublasHandle_t, usize, *const c_void, usize, *mut c_void) -> Result<()>;

/// Returns the pointer mode in which cuBLAS reads a scalar.
pub(crate) fn pointer_mode<S: Factor>(_: &S) -> cublasPointerMode_t {
    S::MODE
}

#[inline]
pub(crate) fn same_len(operation: &'static str, x: usize, y: usize) -> Result<()> {
    if x == y {
        Ok(())
    } else {
        Err(lengths_differ(operation, x, y))
    }
}

#[cold]
fn lengths_differ(operation: &'static str, x: usize, y: usize) -> Error {
    ShapeError::refused(
        operation,
        format!("the lengths differ (x has {x} elements, y has {y})"),
    )
}
