//! Views of packed triangles in device memory.

use std::fmt;

use curium_memory::{DeviceSlice, DeviceView, DeviceViewMut};

use crate::error::{Result, ShapeError};
use crate::layout::MatrixLayout;
use crate::operand::operand;
use crate::stored::Stored;
use crate::triangle::Triangle;
use crate::view::conjugation;

/// A packed triangle of a square matrix in device memory, which an operation reads: a triangular
/// matrix, or the stored part of a symmetric or Hermitian one.
///
/// The elements of each column, or of each row, follow those of the previous one. A matrix of
/// `size` rows has `size * (size + 1) / 2` elements.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let cublas = curium_sim_libraries::cublas();
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let mut blas = curium_blas::Blas::new(&cublas, &stream)?;
/// use curium_blas::{Packed, Triangle, Vector, VectorMut};
/// use curium_memory::DeviceBuffer;
///
/// // 1 2
/// // 2 3
/// let elements = DeviceBuffer::from_slice(&stream, &[1.0_f64, 2.0, 3.0])?;
/// let matrix = Packed::row_major(&elements, 2, Triangle::Upper)?;
/// let x = DeviceBuffer::from_slice(&stream, &[1.0, 10.0])?;
/// let mut y = DeviceBuffer::zeroed(&stream, 2)?;
/// blas.spmv(1.0, matrix, Vector::new(&x), 0.0, &mut VectorMut::new(&mut y))?;
/// assert_eq!(y.to_vec()?, [21.0, 32.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Packed<'a, T> {
    slice: DeviceView<'a, T>,
    pub(crate) stored: Stored,
    pub(crate) triangle: Triangle,
}

/// A packed triangle of a square matrix in device memory, which an operation writes.
pub struct PackedMut<'a, T> {
    slice: DeviceViewMut<'a, T>,
    pub(crate) stored: Stored,
    pub(crate) triangle: Triangle,
}

impl<'a, T> Packed<'a, T> {
    /// Creates a view of a triangle that is stored by columns in the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the last element is out of bounds.
    pub fn column_major(
        memory: &'a DeviceSlice<T>,
        size: usize,
        triangle: Triangle,
    ) -> Result<Self> {
        let slice = memory.view();
        let stored = stored("Packed::column_major", size, slice.len())?;
        Ok(Self {
            slice,
            stored,
            triangle,
        })
    }

    /// Creates a view of a triangle that is stored by rows in the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// As for [`Packed::column_major`].
    pub fn row_major(memory: &'a DeviceSlice<T>, size: usize, triangle: Triangle) -> Result<Self> {
        let slice = memory.view();
        let stored = stored("Packed::row_major", size, slice.len())?;
        // By columns, this memory contains the transpose, whose stored triangle is the other one.
        Ok(Self {
            slice,
            stored,
            triangle: triangle.flipped(),
        }
        .transposed())
    }
}

impl<'a, T> PackedMut<'a, T> {
    /// Creates a view of a triangle that is stored by columns in the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the last element is out of bounds.
    pub fn column_major(
        memory: &'a mut DeviceSlice<T>,
        size: usize,
        triangle: Triangle,
    ) -> Result<Self> {
        let slice = memory.view_mut();
        let stored = stored("PackedMut::column_major", size, slice.len())?;
        Ok(Self {
            slice,
            stored,
            triangle,
        })
    }

    /// Creates a view of a triangle that is stored by rows in the first elements of `memory`.
    ///
    /// # Errors
    ///
    /// As for [`PackedMut::column_major`].
    pub fn row_major(
        memory: &'a mut DeviceSlice<T>,
        size: usize,
        triangle: Triangle,
    ) -> Result<Self> {
        let slice = memory.view_mut();
        let stored = stored("PackedMut::row_major", size, slice.len())?;
        // By columns, this memory contains the transpose, whose stored triangle is the other one.
        Ok(Self {
            slice,
            stored,
            triangle: triangle.flipped(),
        }
        .transposed())
    }
}

/// Methods that both kinds of views have.
macro_rules! packed {
    ($view:ident, $slice:ty, $name:literal) => {
        impl<T> $view<'_, T> {
            /// Returns the number of rows, which is the number of columns.
            #[must_use]
            pub fn size(&self) -> usize {
                self.stored.count
            }

            /// Returns the triangle.
            #[must_use]
            pub fn triangle(&self) -> Triangle {
                self.triangle
            }

            /// Returns the transposition.
            #[must_use]
            pub fn transposed(mut self) -> Self {
                self.stored.is_transposed ^= true;
                self.triangle = self.triangle.flipped();
                self
            }
        }

        impl<T> fmt::Debug for $view<'_, T> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    formatter,
                    concat!($name, "({}, {:?})"),
                    self.stored, self.triangle
                )
            }
        }

        operand!($view, $slice);
    };
}

conjugation!(Packed);
packed!(Packed, &[T], "Packed");
packed!(PackedMut, &mut [T], "PackedMut");

impl<T> Clone for Packed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Packed<'_, T> {}

/// Returns the stored matrix of a packed triangle. Its leading dimension has no meaning.
fn stored(operation: &'static str, size: usize, available: usize) -> Result<Stored> {
    // `size * (size + 1) / 2`: the even factor is halved before the multiplication, which may
    // overflow.
    let required = if size.is_multiple_of(2) {
        (size / 2).checked_mul(size + 1)
    } else {
        size.checked_mul(size / 2 + 1)
    };
    if required.is_some_and(|required| required <= available) {
        return Ok(Stored::new(MatrixLayout::column_major(size, size)));
    }
    let required = required.map_or_else(|| "too many".to_owned(), |required| required.to_string());
    let problem = format!(
        "memory too small for the packed matrix ({size} × {size}: {required} elements, {available} available)"
    );
    Err(ShapeError::refused(operation, problem))
}
