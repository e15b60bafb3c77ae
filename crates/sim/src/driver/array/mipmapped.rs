//! Mipmapped arrays: an image in decreasing sizes.

use curium_sys::CUresult;

use crate::driver::texture::Textures;
use crate::handle::Id;
use crate::object::array::mipmapped::MipmappedArray;
use crate::result::Result;

impl Textures {
    /// Returns a mipmapped array that was not destroyed.
    pub(crate) fn mipmapped_array(&self, id: Id<MipmappedArray>) -> Result<&MipmappedArray> {
        self.mipmapped_arrays
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}
