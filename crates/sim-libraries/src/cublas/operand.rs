//! The pointer arguments of a function, and the operands of an operation with the offsets of their
//! elements.

use curium_sys::cublas::cublasPointerMode_t;

use super::{INVALID, Result, size};

/// An argument that is a pointer in C.
pub(super) trait PointerArgument: Copy {
    /// The type of the elements.
    type Element;
    /// The pointer in C.
    type Raw;

    /// Creates an argument.
    ///
    /// # Safety
    ///
    /// The pointer is null or valid for the accesses that the type stands for. The contract of a C
    /// function guarantees this of its arguments.
    unsafe fn from_raw(raw: Self::Raw) -> Self;

    fn address(self) -> u64;

    fn is_null(self) -> bool {
        self.address() == 0
    }
}

macro_rules! pointer_arguments {
    ($($(#[$attribute:meta])* $name:ident($($pointer:tt)+);)*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug)]
            pub(super) struct $name<T>($($pointer)+ T);

            impl<T> Clone for $name<T> {
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<T> Copy for $name<T> {}

            impl<T> PointerArgument for $name<T> {
                type Element = T;
                type Raw = $($pointer)+ T;

                unsafe fn from_raw(raw: Self::Raw) -> Self {
                    Self(raw)
                }

                fn address(self) -> u64 {
                    self.0.addr() as u64
                }
            }
        )*
    };
}

pointer_arguments! {
    /// Device memory that an operation reads: a vector, a matrix, or an array of pointers.
    Input(*const);
    /// Device memory that an operation writes.
    Output(*mut);
    /// A scalar that an operation reads, in the memory that the pointer mode of the handle selects.
    ScalarInput(*const);
    /// A scalar that an operation writes, or reads and writes, in the memory that the pointer mode
    /// of the handle selects.
    ScalarOutput(*mut);
}

/// Proof that the pointer mode of the handle is that of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostMode(());

impl HostMode {
    pub(super) fn new(mode: cublasPointerMode_t) -> Option<Self> {
        (mode == cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST).then_some(Self(()))
    }
}

impl<T> Input<T> {
    /// Converts to elements of another type. The operation's data types determine those of memory
    /// that is `void` in C.
    pub(super) fn cast<U>(self) -> Input<U> {
        Input(self.0.cast())
    }

    /// Returns the memory as one that an operation writes. The pointer was mutable in C.
    pub(super) fn as_output(self) -> Output<T> {
        Output(self.0.cast_mut())
    }

    /// Returns the memory `bytes` bytes after this.
    pub(super) fn byte_offset(self, bytes: i64) -> Self {
        Self(self.0.wrapping_byte_offset(bytes as isize))
    }
}

impl<T> ScalarInput<T> {
    /// Converts to a scalar of another type. The operation's data type determines the type of a
    /// scalar that is `void` in C.
    pub(super) fn cast<U>(self) -> ScalarInput<U> {
        ScalarInput(self.0.cast())
    }

    /// Returns the device memory of a scalar, for the pointer mode of the device.
    pub(super) fn on_device(self) -> Input<T> {
        Input(self.0)
    }

    pub(super) fn read(self, _mode: HostMode) -> Result<T> {
        if self.is_null() {
            return Err(INVALID);
        }
        // SAFETY: in this pointer mode, a scalar that is not null is valid for reads.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl<T> ScalarOutput<T> {
    /// Converts to a scalar of another type, such as an array of numbers.
    pub(super) fn cast<U>(self) -> ScalarOutput<U> {
        ScalarOutput(self.0.cast())
    }

    /// Returns the device memory of a scalar, for the pointer mode of the device.
    pub(super) fn on_device(self) -> Output<T> {
        Output(self.0)
    }

    pub(super) fn read(self, mode: HostMode) -> Result<T> {
        ScalarInput(self.0.cast_const()).read(mode)
    }

    pub(super) fn write(self, _mode: HostMode, value: T) -> Result {
        if self.is_null() {
            return Err(INVALID);
        }
        // SAFETY: in this pointer mode, a scalar that is not null is valid for writes.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }
}

/// A vector in device memory, but for its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorArgument<P> {
    pub(super) pointer: P,
    pub(super) increment: i64,
}

/// A matrix in device memory, but for its shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixArgument<P> {
    pub(super) pointer: P,
    pub(super) leading_dimension: i64,
}

/// The numbers of rows and columns of a matrix.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Shape {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns }
    }

    /// Checks the sizes that a function got.
    pub(super) fn checked(rows: i64, columns: i64) -> Result<Self> {
        Ok(Self::new(size(rows)?, size(columns)?))
    }

    pub(super) fn is_empty(self) -> bool {
        self.rows == 0 || self.columns == 0
    }
}

/// The numbers of diagonals below and above the main one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Diagonals {
    pub(super) lower: usize,
    pub(super) upper: usize,
}

/// A vector operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorOperand(pub(super) usize);

/// A matrix operand, with its sizes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixOperand {
    pub(super) index: usize,
    pub(super) shape: Shape,
}

/// An array of pointers as an operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointerOperand(pub(super) usize);

/// The location of the first element of an operand.
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

/// The storage of a triangle.
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
    pub(super) shape: Shape,
    pub(super) diagonals: Diagonals,
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
    /// Checks the storage of a triangle of `n` rows, and returns the number of diagonals beside the
    /// main one.
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

    /// Returns the offset of a stored element, in elements.
    pub(super) fn offset(self, is_upper: bool, n: usize, row: usize, column: usize) -> usize {
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
        let Diagonals { lower, upper } = self.diagonals;
        let first = column.saturating_sub(upper);
        first..(column + lower + 1).min(self.shape.rows).max(first)
    }
}

impl TriangleOperand {
    /// Returns the row and the column of each element of the operand, in the order in memory.
    pub(super) fn positions(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.size).flat_map(move |column| self.rows(column).map(move |row| (row, column)))
    }

    /// Returns the rows of a column that are in the operand.
    pub(super) fn rows(&self, column: usize) -> std::ops::Range<usize> {
        let omitted = usize::from(!self.has_diagonal);
        if self.is_upper {
            column.saturating_sub(self.diagonals)..column + 1 - omitted
        } else {
            column + omitted..(column + self.diagonals + 1).min(self.size)
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
