//! The operands of an operation, and the places of their elements.

use super::{INVALID, Result, size};

/// A vector operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorOperand(pub(super) usize);

/// A matrix operand, with its sizes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixOperand {
    pub(super) index: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// An array of pointers as an operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointerOperand(pub(super) usize);

/// The place of the first element of an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum First {
    Address(u64),
    /// The address is this pointer of an array in device memory.
    Pointer(PointerOperand, usize),
}

/// One triangle of a square matrix as an operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct TriangleOperand {
    pub(super) index: usize,
    pub(super) size: usize,
    /// The number of diagonals beside the main one.
    pub(super) diagonals: usize,
    pub(super) is_upper: bool,
    pub(super) has_diagonal: bool,
}

/// The places of the elements of a triangle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Storage {
    /// A square matrix with this leading dimension.
    Full(i64),
    /// This number of diagonals beside the main one, with this leading dimension.
    Banded(i64, i64),
    /// The triangle without gaps.
    Packed,
}

/// A banded matrix as an operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandOperand {
    pub(super) index: usize,
    pub(super) sizes: (usize, usize),
    /// The numbers of diagonals below and above the main one.
    pub(super) diagonals: (usize, usize),
}

/// A factor: a number that the host has passed, or an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<T> {
    Host(T),
    Device(usize),
}

/// The contents of the triangle that an operand does not store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Other {
    Zero,
    Symmetric,
    Hermitian,
}

impl Storage {
    /// Checks the storage of a triangle of `n` rows, and returns the number of diagonals beside the main one.
    pub(super) fn diagonals(self, n: usize) -> Result<usize> {
        match self {
            Self::Full(leading) => leading_dimension(leading, n).map(|_| n),
            Self::Banded(diagonals, leading) => {
                let diagonals = size(diagonals)?;
                leading_dimension(leading, diagonals + 1).map(|_| diagonals)
            }
            Self::Packed => Ok(n),
        }
    }

    /// Returns the place of an element that is stored.
    pub(super) fn place(self, is_upper: bool, n: usize, row: usize, column: usize) -> usize {
        match self {
            Self::Full(leading) => column * leading as usize + row,
            Self::Banded(diagonals, leading) => {
                column * leading as usize + row + if is_upper { diagonals as usize } else { 0 }
                    - column
            }
            Self::Packed if is_upper => column * (column + 1) / 2 + row,
            Self::Packed => column * (2 * n - column - 1) / 2 + row,
        }
    }
}

impl BandOperand {
    /// Returns the rows of a column that are in the operand.
    pub(super) fn rows(&self, column: usize) -> std::ops::Range<usize> {
        let (lower, upper) = self.diagonals;
        let first = column.saturating_sub(upper);
        first..(column + lower + 1).min(self.sizes.0).max(first)
    }
}

impl TriangleOperand {
    /// Returns the rows of a column that are in the operand.
    pub(super) fn rows(&self, column: usize) -> std::ops::Range<usize> {
        let without = usize::from(!self.has_diagonal);
        if self.is_upper {
            column.saturating_sub(self.diagonals)..column + 1 - without
        } else {
            column + without..(column + self.diagonals + 1).min(self.size)
        }
    }
}

/// Checks the leading dimension of a matrix.
pub(super) fn leading_dimension(leading: i64, rows: usize) -> Result<usize> {
    let leading = size(leading)?;
    if leading < rows.max(1) {
        Err(INVALID)
    } else {
        Ok(leading)
    }
}
