//! Mipmapped arrays: an image in decreasing sizes.

use curium_sys::{CUDA_ARRAY3D_CUBEMAP, CUmipmappedArray_st};

use crate::context::Context;
use crate::handle::{Id, Kind, Object};
use crate::object::array::{Array, Shape};

/// A mipmapped array.
pub(crate) struct MipmappedArray {
    pub(crate) context: Id<Context>,
    pub(crate) levels: Vec<Id<Array>>,
}

impl Object for MipmappedArray {
    type Raw = CUmipmappedArray_st;
    const KIND: Kind = Kind::MipmappedArray;
}

impl MipmappedArray {
    /// Returns the levels, the largest first.
    pub(crate) fn levels(&self) -> &[Id<Array>] {
        &self.levels
    }

    pub(crate) fn belongs_to(&self, context: Id<Context>) -> bool {
        self.context == context
    }
}

/// Returns the extent of the next level; an extent of 0 is an absent dimension.
fn half_extent(extent: usize) -> usize {
    match extent {
        0 => 0,
        extent => (extent / 2).max(1),
    }
}

impl Shape {
    /// Returns the shapes of all levels. Each extent is halved until all are one. The numbers of
    /// layers and of cube faces stay the same.
    pub(crate) fn levels(self) -> impl Iterator<Item = Self> {
        let is_layered = self.is_layered() || self.flags & CUDA_ARRAY3D_CUBEMAP != 0;
        std::iter::successors(Some(self), move |shape| {
            let depth = if is_layered {
                shape.depth
            } else {
                half_extent(shape.depth)
            };
            let next = Self {
                width: half_extent(shape.width),
                height: half_extent(shape.height),
                depth,
                ..*shape
            };
            (next != *shape).then_some(next)
        })
    }
}
