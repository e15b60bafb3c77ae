//! Views of banded matrices in device memory.

use std::ffi::c_void;
use std::fmt;

use curium_memory::{DeviceSlice, DeviceView};

use crate::error::Result;
use crate::layout::{MatrixLayout, Order};
use crate::operand::operand;
use crate::stored::Stored;
use crate::sys::cublasFillMode_t;
use crate::triangle::Triangle;
use crate::view::{conjugation, matrix_view};

/// The size of a banded matrix and the location of its elements in memory.
///
/// A banded matrix has elements on its main diagonal, on `lower` diagonals below it and on `upper`
/// diagonals above it. It is stored as in LAPACK: by columns of `lower + upper + 1` elements, in
/// which element (i, j) is at `upper + i - j` of column j. By rows, it is at `lower + j - i` of row
/// i. Elements of the memory that are outside of the matrix are not accessed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct BandLayout {
    /// The layout of the matrix, with the leading dimension of the stored diagonals.
    matrix: MatrixLayout,
    lower: usize,
    upper: usize,
}

impl BandLayout {
    /// Creates the layout of a matrix by columns, one after the other.
    #[must_use]
    pub const fn column_major(rows: usize, columns: usize, lower: usize, upper: usize) -> Self {
        Self::with_diagonals(MatrixLayout::column_major(rows, columns), lower, upper)
    }

    /// Creates the layout of a matrix by rows, one after the other.
    #[must_use]
    pub const fn row_major(rows: usize, columns: usize, lower: usize, upper: usize) -> Self {
        Self::with_diagonals(MatrixLayout::row_major(rows, columns), lower, upper)
    }

    const fn with_diagonals(matrix: MatrixLayout, lower: usize, upper: usize) -> Self {
        let layout = Self {
            matrix,
            lower,
            upper,
        };
        layout.with_leading_dimension(layout.diagonals())
    }

    /// Sets the distance in elements from one column to the next, or from one row to the next if
    /// the matrix is stored by rows.
    #[must_use]
    pub const fn with_leading_dimension(mut self, leading_dimension: usize) -> Self {
        self.matrix = self.matrix.with_leading_dimension(leading_dimension);
        self
    }

    /// Returns the number of stored diagonals.
    const fn diagonals(&self) -> usize {
        self.lower.saturating_add(self.upper).saturating_add(1)
    }

    /// Checks that a matrix of this layout fits into `available` elements.
    fn check(&self, operation: &'static str, available: usize) -> Result<()> {
        let storage = match self.matrix.order() {
            Order::ColumnMajor => {
                MatrixLayout::column_major(self.diagonals(), self.matrix.columns())
            }
            Order::RowMajor => MatrixLayout::row_major(self.matrix.rows(), self.diagonals()),
        };
        storage
            .with_leading_dimension(self.matrix.leading_dimension())
            .check(operation, available)
            .map(|_| ())
    }
}

/// A banded matrix in device memory that an operation reads.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let cublas = curium_sim_libraries::cublas();
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let mut blas = curium_blas::Blas::new(&cublas, &stream)?;
/// use curium_blas::{Banded, Vector, VectorMut};
/// use curium_memory::DeviceBuffer;
///
/// // The second difference of four numbers: -1 2 -1 in each row.
/// let bands = DeviceBuffer::from_slice(&stream, &[-1.0_f32, 2.0, -1.0].repeat(4))?;
/// let matrix = Banded::row_major(&bands, 4, 4, 1, 1)?;
/// let x = DeviceBuffer::from_slice(&stream, &[1.0, 4.0, 9.0, 16.0])?;
/// let mut y = DeviceBuffer::zeroed(&stream, 4)?;
/// blas.gbmv(1.0, matrix, Vector::new(&x), 0.0, &mut VectorMut::new(&mut y))?;
/// assert_eq!(y.to_vec()?, [-2.0, -2.0, -2.0, 23.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Banded<'a, T> {
    slice: DeviceView<'a, T>,
    pub(crate) stored: Stored,
    /// The numbers of diagonals below and above the main one in the stored matrix.
    pub(crate) diagonals: (usize, usize),
}

/// One triangle of a banded matrix, as cuBLAS takes it.
pub(crate) struct BandTriangle {
    pub(crate) fill: cublasFillMode_t,
    /// The number of diagonals beside the main one.
    pub(crate) diagonals: usize,
    /// The address of the first element as C's pointer.
    pub(crate) pointer: *mut c_void,
}

impl<'a, T> Banded<'a, T> {
    /// Creates a view of the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if columns overlap or the last element is out of
    /// bounds.
    pub fn new(memory: &'a DeviceSlice<T>, layout: BandLayout) -> Result<Self> {
        let slice = memory.view();
        layout.check("Banded::new", slice.len())?;
        let BandLayout {
            matrix,
            lower,
            upper,
        } = layout;
        let stored = Stored::new(matrix);
        let diagonals = if stored.is_transposed {
            (upper, lower)
        } else {
            (lower, upper)
        };
        Ok(Self {
            slice,
            stored,
            diagonals,
        })
    }

    /// Creates a view of a matrix by columns, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`Banded::new`].
    pub fn column_major(
        memory: &'a DeviceSlice<T>,
        rows: usize,
        columns: usize,
        lower: usize,
        upper: usize,
    ) -> Result<Self> {
        Self::new(
            memory,
            BandLayout::column_major(rows, columns, lower, upper),
        )
    }

    /// Creates a view of a matrix by rows, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`Banded::new`].
    pub fn row_major(
        memory: &'a DeviceSlice<T>,
        rows: usize,
        columns: usize,
        lower: usize,
        upper: usize,
    ) -> Result<Self> {
        Self::new(memory, BandLayout::row_major(rows, columns, lower, upper))
    }

    /// Returns the number of diagonals below the main one.
    #[must_use]
    pub fn lower(&self) -> usize {
        if self.stored.is_transposed {
            self.diagonals.1
        } else {
            self.diagonals.0
        }
    }

    /// Returns the number of diagonals above the main one.
    #[must_use]
    pub fn upper(&self) -> usize {
        if self.stored.is_transposed {
            self.diagonals.0
        } else {
            self.diagonals.1
        }
    }

    /// Returns one triangle of the matrix. In memory, the lower one begins after the diagonals
    /// above the main one.
    pub(crate) fn triangle(&self, triangle: Triangle) -> BandTriangle {
        let fill = triangle.fill_mode(self.stored);
        let (lower, upper) = self.diagonals;
        if fill == cublasFillMode_t::CUBLAS_FILL_MODE_UPPER {
            BandTriangle {
                fill,
                diagonals: upper,
                pointer: self.as_ptr(),
            }
        } else {
            BandTriangle {
                fill,
                diagonals: lower,
                pointer: self.as_ptr().cast::<T>().wrapping_add(upper).cast(),
            }
        }
    }
}

impl<T> Clone for Banded<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Banded<'_, T> {}

impl<T> fmt::Debug for Banded<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Banded({}, {} diagonals below, {} above)",
            self.stored,
            self.lower(),
            self.upper()
        )
    }
}

matrix_view!(Banded);
conjugation!(Banded);
operand!(Banded, &[T]);
