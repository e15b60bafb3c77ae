//! Sparse arrays: their tiles, and the memory mapped to them. Here an array has all of its memory from the start; mappings are checked as
//! on hardware, and textures return zeros for unmapped tiles.

use std::sync::Arc;

use curium_ptx::exec::Tiles;

use crate::driver::texture::Textures;
use crate::handle::Id;
use crate::object::array::Array;

impl Textures {
    /// Returns the tiles of an array, if it is sparse.
    pub(crate) fn sparse_tiles(&mut self, id: Id<Array>) -> Option<Arc<Tiles>> {
        let array = *self.array(id).ok()?;
        let element = array.shape.element().filter(|_| array.shape.is_sparse())?;
        let tiles = self.tiles.entry(id).or_insert_with(|| {
            Arc::new(Tiles::new(
                array.image(),
                element as u64,
                array.shape.tile(),
            ))
        });
        Some(Arc::clone(tiles))
    }
}
