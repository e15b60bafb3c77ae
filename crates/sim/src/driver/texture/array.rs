//! Arrays and mipmapped arrays.
//!
//! A sparse array has all of its memory from the start. Mappings are checked as on hardware, and
//! textures return zeros for unmapped tiles.

use std::sync::Arc;

use curium_ptx::exec::Tiles;
use curium_sys::CUresult;

use crate::context::Context;
use crate::driver::texture::Textures;
use crate::handle::Id;
use crate::object::array::Array;
use crate::object::array::mipmapped::MipmappedArray;
use crate::result::Result;

impl Textures {
    /// Returns a live array.
    pub(crate) fn array(&self, id: Id<Array>) -> Result<&Array> {
        self.arrays
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    pub(crate) fn insert_array(&mut self, array: Array) -> Id<Array> {
        self.arrays.insert(array)
    }

    pub(crate) fn remove_array(&mut self, id: Id<Array>) -> Option<Array> {
        self.tiles.remove(&id);
        self.arrays.remove(id)
    }

    /// Returns a mipmapped array that was not destroyed.
    pub(crate) fn mipmapped_array(&self, id: Id<MipmappedArray>) -> Result<&MipmappedArray> {
        self.mipmapped_arrays
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    pub(crate) fn insert_mipmapped_array(&mut self, array: MipmappedArray) -> Id<MipmappedArray> {
        self.mipmapped_arrays.insert(array)
    }

    /// Removes a mipmapped array, and returns its levels.
    pub(crate) fn remove_mipmapped_array(&mut self, id: Id<MipmappedArray>) -> Vec<Array> {
        let levels = self.mipmapped_arrays.remove(id).map(|array| array.levels);
        levels
            .into_iter()
            .flatten()
            .filter_map(|level| self.remove_array(level))
            .collect()
    }

    /// Ends the arrays of a context that has ended.
    pub(crate) fn remove_context(&mut self, context: Id<Context>) {
        self.arrays
            .remove_dependents(|array| array.context == context);
        self.mipmapped_arrays
            .remove_dependents(|array| array.belongs_to(context));
    }

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
