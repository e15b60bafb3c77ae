//! Views of matrices in device memory.

use std::fmt;

use curium_memory::{DeviceSlice, DeviceView, DeviceViewMut};

use crate::error::Result;
use crate::layout::MatrixLayout;
use crate::operand::operand;
use crate::stored::Stored;
use crate::sys::cublasOperation_t;
use crate::view::{conjugation, matrix_view};

/// A matrix in device memory that an operation reads.
///
/// Transposition and conjugation are properties of the view; no element moves.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// use curium_blas::{Matrix, MatrixLayout};
/// use curium_memory::DeviceBuffer;
///
/// let buffer = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let matrix = Matrix::column_major(&buffer, 2, 3)?;
/// assert_eq!((matrix.transposed().rows(), matrix.transposed().columns()), (3, 2));
/// assert!(Matrix::new(&buffer, MatrixLayout::column_major(3, 3)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Matrix<'a, T> {
    slice: DeviceView<'a, T>,
    pub(crate) stored: Stored,
}

/// A matrix in device memory that an operation writes.
pub struct MatrixMut<'a, T> {
    slice: DeviceViewMut<'a, T>,
    pub(crate) stored: Stored,
}

impl<'a, T> Matrix<'a, T> {
    /// Creates a view of the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if columns overlap or the last element is out of
    /// bounds.
    pub fn new(memory: &'a DeviceSlice<T>, layout: MatrixLayout) -> Result<Self> {
        Self::from_slice(memory.view(), layout)
    }

    /// Creates a view of a matrix by columns, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`Matrix::new`].
    pub fn column_major(memory: &'a DeviceSlice<T>, rows: usize, columns: usize) -> Result<Self> {
        Self::new(memory, MatrixLayout::column_major(rows, columns))
    }

    /// Creates a view of a matrix by rows, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`Matrix::new`].
    pub fn row_major(memory: &'a DeviceSlice<T>, rows: usize, columns: usize) -> Result<Self> {
        Self::new(memory, MatrixLayout::row_major(rows, columns))
    }

    fn from_slice(slice: DeviceView<'a, T>, layout: MatrixLayout) -> Result<Self> {
        layout.check("Matrix::new", slice.len())?;
        Ok(Self {
            slice,
            stored: Stored::new(layout),
        })
    }

    /// Returns the number of elements of the memory.
    pub(crate) fn available(&self) -> usize {
        self.slice.len()
    }
}

impl<'a, T> MatrixMut<'a, T> {
    /// Creates a view of the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if columns overlap or the last element is out of
    /// bounds.
    pub fn new(memory: &'a mut DeviceSlice<T>, layout: MatrixLayout) -> Result<Self> {
        let slice = memory.view_mut();
        layout.check("MatrixMut::new", slice.len())?;
        Ok(Self {
            slice,
            stored: Stored::new(layout),
        })
    }

    /// Creates a view of a matrix by columns, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`MatrixMut::new`].
    pub fn column_major(
        memory: &'a mut DeviceSlice<T>,
        rows: usize,
        columns: usize,
    ) -> Result<Self> {
        Self::new(memory, MatrixLayout::column_major(rows, columns))
    }

    /// Creates a view of a matrix by rows, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`MatrixMut::new`].
    pub fn row_major(memory: &'a mut DeviceSlice<T>, rows: usize, columns: usize) -> Result<Self> {
        Self::new(memory, MatrixLayout::row_major(rows, columns))
    }

    /// Returns the number of elements of the memory.
    pub(crate) fn available(&self) -> usize {
        self.slice.len()
    }
}

impl<T> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<'_, T> {}

impl<T> fmt::Debug for Matrix<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Matrix({})", self.stored)
    }
}

impl<T> fmt::Debug for MatrixMut<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MatrixMut({})", self.stored)
    }
}

matrix_view!(Matrix);
matrix_view!(MatrixMut);
conjugation!(Matrix);
operand!(Matrix, &[T]);
operand!(MatrixMut, &mut [T]);

impl Stored {
    /// Returns cuBLAS's name of the operation on the stored matrix; `None` for conjugation without
    /// transposition, which it lacks.
    #[inline]
    pub(crate) fn operation(self) -> Option<cublasOperation_t> {
        match (self.is_transposed, self.is_conjugated) {
            (false, false) => Some(cublasOperation_t::CUBLAS_OP_N),
            (true, false) => Some(cublasOperation_t::CUBLAS_OP_T),
            (true, true) => Some(cublasOperation_t::CUBLAS_OP_C),
            (false, true) => None,
        }
    }
}
