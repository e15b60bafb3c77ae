//! A matrix as cuBLAS stores it: by columns, and transposed and conjugated when it is used.

use std::fmt;

use crate::layout::{MatrixLayout, Order};

/// A matrix by columns, and the operation that turns it into the matrix of a view.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stored {
    /// The length of a column.
    pub(crate) length: usize,
    /// The number of columns.
    pub(crate) count: usize,
    pub(crate) leading_dimension: usize,
    pub(crate) is_transposed: bool,
    pub(crate) is_conjugated: bool,
}

impl Stored {
    #[inline]
    pub(crate) fn new(layout: MatrixLayout) -> Self {
        let (length, count) = layout.stored();
        let is_transposed = layout.order() == Order::RowMajor;
        Self {
            length,
            count,
            leading_dimension: layout.leading_dimension(),
            is_transposed,
            is_conjugated: false,
        }
    }

    /// Returns the number of rows of the view.
    #[inline]
    pub(crate) fn rows(self) -> usize {
        if self.is_transposed {
            self.count
        } else {
            self.length
        }
    }

    /// Returns the number of columns of the view.
    #[inline]
    pub(crate) fn columns(self) -> usize {
        if self.is_transposed {
            self.length
        } else {
            self.count
        }
    }

    /// Returns the numbers of rows and columns of the view.
    pub(crate) fn shape(self) -> (usize, usize) {
        (self.rows(), self.columns())
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0 || self.count == 0
    }

    /// Returns the number of elements from the first to the last.
    #[inline]
    pub(crate) fn span(self) -> usize {
        if self.is_empty() {
            0
        } else {
            self.leading_dimension * (self.count - 1) + self.length
        }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} × {}", self.rows(), self.columns())
    }
}
