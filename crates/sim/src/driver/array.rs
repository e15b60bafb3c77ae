//! The driver's part in arrays.

pub(crate) mod mipmapped;
pub(crate) mod sparse;

use curium_sys::CUresult;

use crate::driver::texture::Textures;
use crate::handle::Id;
use crate::object::array::Array;
use crate::result::Result;

impl Textures {
    /// Returns a live array.
    pub(crate) fn array(&self, id: Id<Array>) -> Result<&Array> {
        self.arrays
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}
