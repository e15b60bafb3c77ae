//! Texture and surface objects over arrays and memory.

pub(crate) mod image;

use curium_sys::{CUDA_RESOURCE_DESC, CUresourcetype, CUresult, CUtexObject};

use crate::argument::Pointer;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::array::Array;
use crate::object::texture::Texture;
use crate::result::Result;

impl State {
    pub(crate) fn texture(&self, raw: CUtexObject) -> Result<&Texture> {
        self.textures
            .get(Id::from_number(raw))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Returns the array of a description.
pub(crate) fn resource_array(resource: &CUDA_RESOURCE_DESC) -> Option<Id<Array>> {
    (resource.resType == CUresourcetype::CU_RESOURCE_TYPE_ARRAY).then(|| {
        // SAFETY: the type selects this member, which the caller has initialized.
        let raw = unsafe { resource.res.array }.hArray;
        // SAFETY: an array is a handle, which is only compared.
        Id::from(unsafe { Pointer::from_raw(raw) })
    })
}
