//! The layout of a matrix in memory.

use std::fmt;

use crate::error::{Error, Result, ShapeError};

/// The size of a matrix and the location of its elements in memory.
///
/// cuBLAS stores matrices by columns. Operations pass a matrix that is stored by rows as the
/// transposition of one stored by columns, so either order is equally fast.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct MatrixLayout {
    rows: usize,
    columns: usize,
    leading_dimension: usize,
    order: Order,
}

/// The order of the elements of a matrix.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Order {
    /// The elements of a column are consecutive, as in Fortran and cuBLAS.
    ColumnMajor,
    /// The elements of a row are consecutive, as in C.
    RowMajor,
}

impl MatrixLayout {
    /// Creates the layout of a matrix by columns, one after the other.
    #[must_use]
    #[inline]
    pub const fn column_major(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            leading_dimension: if rows == 0 { 1 } else { rows },
            order: Order::ColumnMajor,
        }
    }

    /// Creates the layout of a matrix by rows, one after the other.
    #[must_use]
    #[inline]
    pub const fn row_major(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            leading_dimension: if columns == 0 { 1 } else { columns },
            order: Order::RowMajor,
        }
    }

    /// Sets the distance in elements from one column to the next, or from one row to the next if
    /// the matrix is stored by rows.
    #[must_use]
    pub const fn with_leading_dimension(mut self, leading_dimension: usize) -> Self {
        self.leading_dimension = leading_dimension;
        self
    }

    /// Returns the layout of the transposition, which consists of the same elements.
    #[must_use]
    pub const fn transposed(self) -> Self {
        let Self {
            rows,
            columns,
            leading_dimension,
            order,
        } = self;
        let order = match order {
            Order::ColumnMajor => Order::RowMajor,
            Order::RowMajor => Order::ColumnMajor,
        };
        Self {
            rows: columns,
            columns: rows,
            leading_dimension,
            order,
        }
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the distance in elements from one column to the next, or from one row to the next if
    /// the matrix is stored by rows.
    #[must_use]
    pub const fn leading_dimension(&self) -> usize {
        self.leading_dimension
    }

    /// Returns the order of the elements.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Returns the rows and columns of the column-major matrix with the same elements in memory.
    #[inline]
    pub(crate) const fn stored(&self) -> (usize, usize) {
        match self.order {
            Order::ColumnMajor => (self.rows, self.columns),
            Order::RowMajor => (self.columns, self.rows),
        }
    }

    /// Returns the number of elements from the first to the last, 0 for an empty matrix; `None` if
    /// that exceeds `usize`.
    #[must_use]
    #[inline]
    pub const fn span(&self) -> Option<usize> {
        let (length, count) = self.stored();
        if length == 0 || count == 0 {
            return Some(0);
        }
        match self.leading_dimension.checked_mul(count - 1) {
            Some(last) => last.checked_add(length),
            None => None,
        }
    }

    /// Checks that a matrix of this layout fits into `available` elements, and returns its span.
    #[inline]
    pub(crate) fn check(&self, operation: &'static str, available: usize) -> Result<usize> {
        let least = self.stored().0.max(1);
        match self.span() {
            Some(span) if span <= available && self.leading_dimension >= least => Ok(span),
            span => Err(self.refused(operation, span, available)),
        }
    }

    #[cold]
    fn refused(&self, operation: &'static str, span: Option<usize>, available: usize) -> Error {
        let least = self.stored().0.max(1);
        if self.leading_dimension < least {
            let problem =
                format!("leading dimension too small ({self}); it must be at least {least}");
            return ShapeError::refused(operation, problem);
        }
        let required = span.map_or_else(|| "too many".to_owned(), |span| span.to_string());
        let problem = format!(
            "memory too small for the matrix ({self}: {required} elements, {available} available)"
        );
        ShapeError::refused(operation, problem)
    }
}

impl fmt::Display for MatrixLayout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rows,
            columns,
            leading_dimension,
            order,
        } = self;
        let order = match order {
            Order::ColumnMajor => "column-major",
            Order::RowMajor => "row-major",
        };
        write!(
            formatter,
            "{rows} × {columns} {order}, leading dimension {leading_dimension}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_ends_with_the_last_element() {
        assert_eq!(
            MatrixLayout::column_major(3, 4)
                .with_leading_dimension(10)
                .span(),
            Some(33)
        );
        assert_eq!(
            MatrixLayout::row_major(3, 4)
                .with_leading_dimension(10)
                .span(),
            Some(24)
        );
        assert_eq!(MatrixLayout::column_major(0, 4).span(), Some(0));
        assert_eq!(MatrixLayout::column_major(3, 0).span(), Some(0));
        assert_eq!(
            MatrixLayout::column_major(2, 3)
                .with_leading_dimension(usize::MAX)
                .span(),
            None
        );
    }

    #[test]
    fn matrix_larger_than_its_memory_is_an_error() {
        let layout = MatrixLayout::column_major(3, 4);
        assert_eq!(layout.check("test", 12).expect("it fits exactly"), 12);
        let text = layout
            .check("test", 11)
            .expect_err("an element is missing")
            .to_string();
        assert_eq!(
            text,
            "test: memory too small for the matrix (3 × 4 column-major, leading dimension 3: 12 elements, 11 available)"
        );
        let text = layout
            .with_leading_dimension(2)
            .check("test", 100)
            .expect_err("columns overlap")
            .to_string();
        assert!(
            text.contains("leading dimension too small") && text.contains("at least 3"),
            "{text}"
        );
    }
}
