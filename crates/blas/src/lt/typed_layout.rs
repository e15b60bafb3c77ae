//! The layout of a matrix with the type of its elements.

use std::fmt;

use super::{ElementType, MatmulElement};
use crate::layout::MatrixLayout;
use crate::stored::Stored;

/// The layout of a matrix, the type of its elements, and the distance of the matrices of a batch.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TypedLayout {
    pub(super) element: ElementType,
    pub(super) layout: MatrixLayout,
    pub(super) stride: usize,
}

/// A matrix as cuBLASLt stores it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredMatrix {
    pub(super) element: ElementType,
    pub(super) stored: Stored,
    pub(super) stride: usize,
}

impl TypedLayout {
    /// Creates the layout of a matrix of `T`.
    #[must_use]
    pub const fn new<T: MatmulElement>(layout: MatrixLayout) -> Self {
        Self::with_element(T::TYPE, layout)
    }

    /// Creates the layout of a matrix of a type that is known at run time.
    #[must_use]
    pub const fn with_element(element: ElementType, layout: MatrixLayout) -> Self {
        Self {
            element,
            layout,
            stride: 0,
        }
    }

    /// Sets the distance in elements from one matrix of a batch to the next; 0, the default, for
    /// the same factor in each product.
    #[must_use]
    pub const fn with_stride(mut self, stride: usize) -> Self {
        self.stride = stride;
        self
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn element(&self) -> ElementType {
        self.element
    }

    /// Returns the layout.
    #[must_use]
    pub const fn layout(&self) -> MatrixLayout {
        self.layout
    }

    /// Returns the distance in elements from one matrix of a batch to the next.
    #[must_use]
    pub const fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the numbers of rows and columns.
    pub(super) fn shape(self) -> (usize, usize) {
        (self.layout.rows(), self.layout.columns())
    }

    pub(super) fn stored(self) -> StoredMatrix {
        StoredMatrix {
            element: self.element,
            stored: Stored::new(self.layout),
            stride: self.stride,
        }
    }
}

impl StoredMatrix {
    pub(super) fn transposed(mut self) -> Self {
        self.stored.is_transposed ^= true;
        self
    }
}

impl fmt::Display for TypedLayout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.element, self.layout)
    }
}
