//! The driver's part in texture and surface objects.

pub(crate) mod image;

use std::collections::HashMap;
use std::sync::Arc;

use curium_ptx::exec::Tiles;
use curium_sys::{CUDA_RESOURCE_DESC, CUresourcetype, CUresult, CUtexObject};

use crate::argument::Pointer;
use crate::handle::{Id, Table};
use crate::object::array::Array;
use crate::object::array::mipmapped::MipmappedArray;
use crate::object::texture::{Destroyed, Surface, Texture};
use crate::result::Result;

/// The arrays of a driver, and the textures and surfaces.
pub(crate) struct Textures {
    pub(crate) arrays: Table<Array>,
    pub(crate) mipmapped_arrays: Table<MipmappedArray>,
    /// The tiles of sparse arrays, once they are mapped or read.
    pub(crate) tiles: HashMap<Id<Array>, Arc<Tiles>>,
    pub(crate) textures: Table<Texture>,
    pub(crate) surfaces: Table<Surface>,
    pub(crate) destroyed_textures: Destroyed<Texture>,
    pub(crate) destroyed_surfaces: Destroyed<Surface>,
}

impl Textures {
    pub(crate) fn new() -> Self {
        Self {
            arrays: Table::new(),
            mipmapped_arrays: Table::new(),
            tiles: HashMap::new(),
            textures: Table::new(),
            surfaces: Table::new(),
            destroyed_textures: Destroyed::new(),
            destroyed_surfaces: Destroyed::new(),
        }
    }

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
