//! Products in tensor memory, and transfers from and to registers.

/// A product. The addresses of D and of A, or the descriptor of A, are in rows `a` and `b` of the
/// instruction, the descriptor of B in row `d`. The predicate `c`, which `e` may negate, adds the
/// product to D.
#[derive(Clone, Debug)]
pub(crate) struct TensorProduct {
    pub(crate) kind: TensorKind,
    /// `true` if A is in tensor memory.
    pub(crate) is_left_in_tensor_memory: bool,
    /// The row of the instruction descriptor.
    pub(crate) descriptor: u32,
    /// The rows of the mask of lanes that keep their values, if there is a mask.
    pub(crate) disabled_lanes: Option<[u32; 4]>,
    /// D is divided by two to this power before the product is added.
    pub(crate) scale: u32,
}

/// The kind of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorKind {
    /// `.kind::f16`: factors in f16 or bf16.
    F16,
    /// `.kind::tf32`.
    Tf32,
    /// `.kind::f8f6f4`: factors of 8 bits.
    F8f6f4,
    /// `.kind::i8`.
    I8,
}

/// The distribution of cells over the threads and registers of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferShape {
    Lanes32Bits32,
    Lanes16Bits64,
    Lanes16Bits128,
    Lanes16Bits256,
    /// Two halves of the warp access columns at this distance.
    Lanes16Bits32Twice {
        distance: i64,
    },
}

/// A load or a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorTransfer {
    pub(crate) shape: TransferShape,
    /// `true` if a register holds the lower halves of two neighboring cells.
    pub(crate) is_packed: bool,
    /// The list of the rows of the registers.
    pub(crate) rows: u32,
}

/// The position of a cell in a transfer. Columns are those of packed cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) lane: u32,
    pub(crate) column: u32,
}

impl TransferShape {
    /// Returns the number of registers of each thread for a repetition.
    pub(crate) const fn registers(self) -> u32 {
        match self {
            Self::Lanes32Bits32 | Self::Lanes16Bits64 | Self::Lanes16Bits32Twice { .. } => 1,
            Self::Lanes16Bits128 => 2,
            Self::Lanes16Bits256 => 4,
        }
    }

    pub(crate) const fn lanes(self) -> u32 {
        match self {
            Self::Lanes32Bits32 => 32,
            _ => 16,
        }
    }

    /// Returns the cell in a register of a thread.
    pub(crate) const fn cell(self, thread: u32, register: u32) -> Cell {
        match self {
            Self::Lanes32Bits32 => Cell {
                lane: thread,
                column: register,
            },
            Self::Lanes16Bits64 => Cell {
                lane: thread / 4 + thread % 2 * 8,
                column: register * 2 + thread / 2 % 2,
            },
            Self::Lanes16Bits128 => Cell {
                lane: thread / 4 + register % 2 * 8,
                column: register / 2 * 4 + thread % 4,
            },
            Self::Lanes16Bits256 => Cell {
                lane: thread / 4 + register / 2 % 2 * 8,
                column: register / 4 * 8 + thread % 4 * 2 + register % 2,
            },
            Self::Lanes16Bits32Twice { .. } => Cell {
                lane: thread % 16,
                column: register,
            },
        }
    }

    /// Returns the number of columns that a thread or several threads access with these registers.
    pub(crate) const fn columns(self, registers: u32) -> u32 {
        match self {
            Self::Lanes32Bits32 | Self::Lanes16Bits32Twice { .. } => registers,
            _ => registers * 2,
        }
    }
}
