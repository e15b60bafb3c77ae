//! Accesses to tensors.

use crate::syntax::Operation;

/// An access to a tensor, as its instruction specifies it.
#[derive(Clone, Debug)]
pub(crate) struct TensorAccess {
    pub(crate) direction: Direction,
    pub(crate) mode: Mode,
    pub(crate) rank: usize,
    /// The rows of the coordinates, the innermost first.
    pub(crate) coordinates: Vec<u32>,
    /// The rows of the im2col offsets.
    pub(crate) offsets: Vec<u32>,
    /// `true` if the mbarrier object may be in the other block of a pair.
    pub(crate) is_paired: bool,
}

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Load,
    Store,
    Reduce(Operation),
    Prefetch,
}

/// The mode of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Tile,
    /// Four rows of a matrix, each by its index.
    FourRows,
    Pixels,
}
