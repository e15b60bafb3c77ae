//! Sparse arrays: their tiles, and the memory mapped to them. Here an array has all of its memory
//! from the start; mappings are checked as on hardware, and textures return zeros for unmapped
//! tiles.

use curium_sys::CUDA_ARRAY3D_SPARSE;

use crate::object::array::Shape;

impl Shape {
    pub(crate) fn is_sparse(&self) -> bool {
        self.flags & CUDA_ARRAY3D_SPARSE != 0
    }

    pub(crate) fn has_whole_tile(&self, tile: [u32; 3]) -> bool {
        self.bounds()
            .iter()
            .zip(tile)
            .all(|(bound, tile)| *bound >= tile as usize)
    }

    pub(crate) fn bounds(&self) -> [usize; 3] {
        [self.width, self.rows(), self.layers()]
    }

    /// Returns the elements, rows and layers of a tile of 64 KiB, in the standard block shape of
    /// sparse images.
    pub(crate) fn tile(&self) -> [u32; 3] {
        let is_volume = self.depth != 0 && !self.is_layered();
        match (self.element().unwrap_or(1), is_volume) {
            (1, false) => [256, 256, 1],
            (2, false) => [256, 128, 1],
            (4, false) => [128, 128, 1],
            (8, false) => [128, 64, 1],
            (_, false) => [64, 64, 1],
            (1, true) => [64, 32, 32],
            (2, true) => [32, 32, 32],
            (4, true) => [32, 32, 16],
            (8, true) => [32, 16, 16],
            (_, true) => [16, 16, 16],
        }
    }
}
