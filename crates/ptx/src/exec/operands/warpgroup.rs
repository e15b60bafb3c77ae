//! Products by warpgroups.

use crate::exec::matrix::multiply::ProductKind;
use crate::exec::matrix::sparsity::Sparsity;
use crate::exec::matrix::{Element, FragmentLayout};

/// A product by a warpgroup. Its descriptors are in rows `a` and `b` of the instruction. Its scale
/// is in predicate `c`, which `e` may negate.
#[derive(Clone, Debug)]
pub(crate) struct WarpgroupProduct {
    /// A warp's part of the result.
    pub(crate) to: FragmentLayout,
    /// The list of the rows of its registers, and those of A if A is in registers.
    pub(crate) rows: u32,
    pub(crate) left: Left,
    pub(crate) right: SharedFactor,
    /// The inner extent, including the zeros of a sparse matrix.
    pub(crate) inner: u32,
    pub(crate) kind: ProductKind,
    pub(crate) sparsity: Option<Sparsity>,
}

/// The location of A.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// Registers, and `true` if A is negated.
    Registers(FragmentLayout, bool),
    /// In shared memory.
    Shared(SharedFactor),
}

/// A factor in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedFactor {
    pub(crate) element: Element,
    /// `true` if the factor is negated.
    pub(crate) is_negative: bool,
    /// `true` if neighboring elements in memory are neighbors across the inner extent.
    pub(crate) is_transposed: bool,
}

impl Left {
    pub(crate) fn element(&self) -> Element {
        match self {
            Self::Registers(layout, _) => layout.fragment.element,
            Self::Shared(side) => side.element,
        }
    }
}
