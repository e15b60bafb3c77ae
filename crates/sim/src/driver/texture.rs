//! The driver's part in texture and surface objects.

pub(crate) mod array;
pub(crate) mod image;

use std::collections::HashMap;
use std::sync::Arc;

use curium_ptx::exec::Tiles;
use curium_sys::{CUDA_RESOURCE_DESC, CUresourcetype, CUresult, CUsurfObject, CUtexObject};

use crate::argument::Pointer;
use crate::context::ticket::Ticket;
use crate::handle::{Id, Table};
use crate::live::{LiveHandles, LiveObject};
use crate::object::array::Array;
use crate::object::array::mipmapped::MipmappedArray;
use crate::object::texture::{Destroyed, Surface, Texture};
use crate::result::Result;

/// The arrays of a driver, and the textures and surfaces.
pub(crate) struct Textures {
    arrays: Table<Array>,
    mipmapped_arrays: Table<MipmappedArray>,
    /// The tiles of sparse arrays, once they are mapped or read.
    tiles: HashMap<Id<Array>, Arc<Tiles>>,
    textures: Table<Texture>,
    surfaces: Table<Surface>,
    destroyed_textures: Destroyed<Texture>,
    destroyed_surfaces: Destroyed<Surface>,
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

    pub(crate) fn insert_texture(&mut self, texture: Texture) -> CUtexObject {
        self.textures.insert(texture).number()
    }

    /// Destroys a texture. `pending` is the work that may still use it.
    pub(crate) fn destroy_texture(&mut self, raw: CUtexObject, pending: Vec<Ticket>) -> Result {
        let texture = self.textures.remove(Id::from_number(raw));
        let texture = texture.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        self.destroyed_textures.insert(raw, texture, pending);
        Ok(())
    }

    pub(crate) fn surface(&self, raw: CUsurfObject) -> Result<&Surface> {
        self.surfaces
            .get(Id::from_number(raw))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    pub(crate) fn insert_surface(&mut self, surface: Surface) -> CUsurfObject {
        self.surfaces.insert(surface).number()
    }

    /// Destroys a surface. `pending` is the work that may still use it.
    pub(crate) fn destroy_surface(&mut self, raw: CUsurfObject, pending: Vec<Ticket>) -> Result {
        let surface = self.surfaces.remove(Id::from_number(raw));
        let surface = surface.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        self.destroyed_surfaces.insert(raw, surface, pending);
        Ok(())
    }

    pub(crate) fn count_live(&self, live: &mut LiveHandles) {
        live.textures = self.textures.iter().count() as u64;
        live.surfaces = self.surfaces.iter().count() as u64;
    }

    pub(crate) fn live_objects(&self) -> impl Iterator<Item = LiveObject> {
        let textures = self.textures.live_objects("texture", |_| true, |_| 0);
        let surfaces = self.surfaces.live_objects("surface", |_| true, |_| 0);
        textures.chain(surfaces)
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
