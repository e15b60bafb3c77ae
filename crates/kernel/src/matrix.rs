//! Matrices that a kernel reads.

use core::ops::Index;
use core::ptr::NonNull;

use bytemuck::AnyBitPattern;

use crate::launch::Launch;
use crate::parameter::{Description, Kind, Parameter, Word};

/// A matrix that nobody writes during the launch, stored row by row.
///
/// `matrix[(row, column)]` is an element, and panics if it is out of bounds. The compiler removes
/// the two comparisons if the code has made them. A launch passes a `RowMajor`.
pub struct Matrix<T> {
    // Not null, so that the compiler does not compare it where a `None` is excluded.
    start: NonNull<T>,
    rows: u32,
    columns: u32,
}

impl<T> Clone for Matrix<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<T> {}

// SAFETY: nobody writes the elements, which have no interior mutability.
unsafe impl<T: AnyBitPattern> Sync for Matrix<T> {}

// SAFETY: the launcher passes memory of `rows * columns` elements, which is borrowed, so that
// nobody writes it during the launch.
unsafe impl<T: AnyBitPattern> Parameter for Matrix<T> {
    type In<'k> = Matrix<T>;
    type First = *const T;
    type Second = u32;
    type Third = u32;

    const DESCRIPTION: Description = Description::new::<T>(
        Kind::Matrix,
        [
            Word::read_only::<T>(),
            Word::value::<u32>(),
            Word::value::<u32>(),
        ],
    );

    #[inline(always)]
    unsafe fn from_words(_: &Launch, start: *const T, rows: u32, columns: u32) -> Matrix<T> {
        Matrix {
            // SAFETY: the launcher passes no null.
            start: unsafe { NonNull::new_unchecked(start.cast_mut()) },
            rows,
            columns,
        }
    }
}

impl<T> Matrix<T> {
    /// Returns the number of rows.
    #[inline(always)]
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the number of columns.
    #[inline(always)]
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns as usize
    }

    /// Returns the address of the first element.
    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *const T {
        self.start.as_ptr()
    }

    /// Returns an element, unless it is out of bounds.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> Option<&T> {
        // A single branch, so that the compiler sees that the result of the comparisons is that of
        // a later comparison with `None`.
        if (row >= self.rows()) | (column >= self.columns()) {
            return None;
        }
        // The launcher checked that the product of the sizes is the number of elements, so the sum
        // does not overflow.
        // SAFETY: the element is in bounds.
        let element = unsafe { self.as_ptr().add(row * self.columns() + column) };
        // SAFETY: the element is in bounds, and nobody writes it.
        Some(unsafe { &*element })
    }

    /// Returns an element.
    ///
    /// # Safety
    ///
    /// The row and the column are in bounds.
    #[inline(always)]
    pub(crate) unsafe fn get_unchecked(&self, row: usize, column: usize) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller guarantees that the element is in bounds.
        let element = unsafe { self.start.add(row * self.columns() + column) };
        // SAFETY: the element is in bounds, and nobody writes it.
        unsafe { element.read() }
    }

    /// Returns the rows from `index * rows` on as a matrix of `rows` rows, unless some of them are
    /// out of bounds: a plane of a three-dimensional array, which is stored plane by plane.
    #[inline(always)]
    #[must_use]
    pub fn plane(&self, index: usize, rows: usize) -> Option<Self> {
        let first = index.checked_mul(rows)?;
        if rows > self.rows() || first > self.rows() - rows {
            return None;
        }
        Some(Self {
            // SAFETY: the row is in bounds, or the end of the matrix.
            start: unsafe { self.start.add(first * self.columns()) },
            rows: rows as u32,
            columns: self.columns,
        })
    }

    /// Returns a copy of an element, or `default` if it is out of bounds.
    #[inline(always)]
    #[must_use]
    pub fn get_or(&self, row: usize, column: usize, default: T) -> T
    where
        T: Copy,
    {
        // Not by `get`, because an `Option<&T>` becomes a comparison of addresses; and with one
        // condition, so that the load is predicated and several loads overlap.
        let is_inside = (row < self.rows()) & (column < self.columns());
        if is_inside {
            // SAFETY: the element is in bounds.
            unsafe { self.get_unchecked(row, column) }
        } else {
            default
        }
    }

    /// Returns a row, unless it is out of bounds.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, row: usize) -> Option<&[T]> {
        if row >= self.rows() {
            return None;
        }
        // SAFETY: the row is in bounds.
        let start = unsafe { self.as_ptr().add(row * self.columns()) };
        // SAFETY: the row is in bounds.
        Some(unsafe { core::slice::from_raw_parts(start, self.columns()) })
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, (row, column): (usize, usize)) -> &T {
        match self.get(row, column) {
            Some(element) => element,
            None => panic!("index out of bounds"),
        }
    }
}
