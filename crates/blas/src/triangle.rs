//! Triangles, their diagonals, and sides of products.

use crate::stored::Stored;
use crate::sys::{cublasDiagType_t, cublasFillMode_t, cublasSideMode_t};

/// The triangle of a square matrix that an operation accesses.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Triangle {
    /// The elements on and above the diagonal.
    Upper,
    /// The elements on and below the diagonal.
    Lower,
}

/// The diagonal of a triangular matrix.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Diagonal {
    /// The diagonal is in memory.
    Stored,
    /// The diagonal consists of ones, and is not accessed.
    Unit,
}

/// The position of the triangular, symmetric or diagonal matrix in a product.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Side {
    /// It is the left factor.
    Left,
    /// It is the right factor.
    Right,
}

impl Triangle {
    /// Returns the triangle of the transposition.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Upper => Self::Lower,
            Self::Lower => Self::Upper,
        }
    }

    /// Returns the triangle of the stored matrix that is this one of the view.
    pub(crate) fn fill_mode(self, stored: Stored) -> cublasFillMode_t {
        match (self, stored.is_transposed) {
            (Self::Upper, false) | (Self::Lower, true) => cublasFillMode_t::CUBLAS_FILL_MODE_UPPER,
            (Self::Lower, false) | (Self::Upper, true) => cublasFillMode_t::CUBLAS_FILL_MODE_LOWER,
        }
    }
}

impl Diagonal {
    pub(crate) fn to_raw(self) -> cublasDiagType_t {
        match self {
            Self::Stored => cublasDiagType_t::CUBLAS_DIAG_NON_UNIT,
            Self::Unit => cublasDiagType_t::CUBLAS_DIAG_UNIT,
        }
    }
}

impl Side {
    /// Returns the side if the result is computed as it is stored: a transposed product has its
    /// factors in the other order.
    pub(crate) fn side_mode(self, result: Stored) -> cublasSideMode_t {
        match (self, result.is_transposed) {
            (Self::Left, false) | (Self::Right, true) => cublasSideMode_t::CUBLAS_SIDE_LEFT,
            (Self::Right, false) | (Self::Left, true) => cublasSideMode_t::CUBLAS_SIDE_RIGHT,
        }
    }
}
