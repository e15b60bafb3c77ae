//! The C functions for texture and surface objects.

use curium_sys::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES,
    CU_TRSF_READ_AS_INTEGER, CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUresourceViewFormat, CUresourcetype, CUresult,
    CUsurfObject, CUtexObject,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::locked::Locked;
use crate::driver::texture::resource_array;
use crate::handle::Id;
use crate::object::texture::{Resource, Surface, Texture};
use crate::result::Result;

/// The alignment of the addresses of linear textures; pitches are aligned to 32.
const LINEAR_ALIGNMENT: u64 = 512;

const PITCH_ALIGNMENT: usize = 32;

/// The maximum size of a linear texture.
const MAX_LINEAR_BYTES: usize = 1 << 32;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuTexObjectCreate(
        &self,
        texture: Pointer<CUtexObject>,
        resource: ConstPointer<CUDA_RESOURCE_DESC>,
        description: ConstPointer<CUDA_TEXTURE_DESC>,
        view: ConstPointer<CUDA_RESOURCE_VIEW_DESC>,
    ) -> Result {
        self.require_current()?;
        let output = texture.required()?;
        let resource = resource.read()?;
        let description = description.read()?;
        let mut state = self.lock();
        state.check_resource(&resource)?;
        const KNOWN_FLAGS: u32 = CU_TRSF_READ_AS_INTEGER
            | CU_TRSF_NORMALIZED_COORDINATES
            | CU_TRSF_SRGB
            | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
            | CU_TRSF_SEAMLESS_CUBEMAP;
        let has_unknown_flags = resource.flags != 0 || description.flags & !KNOWN_FLAGS != 0;
        let modes = description.addressMode.iter().all(|mode| mode.0 <= 3);
        let is_reserved_used = description.reserved.iter().any(|word| *word != 0);
        if has_unknown_flags
            || is_reserved_used
            || !modes
            || description.filterMode.0 > 1
            || description.mipmapFilterMode.0 > 1
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // Only arrays have views. As on hardware, those of other resources are ignored.
        let is_array = resource.resType.0 <= CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY.0;
        let view = if view.is_null() || !is_array {
            None
        } else {
            Some(view.read()?)
        };
        let last_format = CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC7;
        if view.is_some_and(|view| view.width == 0 || view.format.0 > last_format.0) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let texture = Texture {
            resource: Resource(resource),
            description,
            view,
        };
        output.write(state.textures.insert_texture(texture))
    }

    pub(crate) fn cuTexObjectDestroy(&self, texture: CUtexObject) -> Result {
        if texture == 0 {
            return self.require_current();
        }
        let mut state = self.lock();
        let pending = state.schedule.pending(|_| true);
        state.textures.destroy_texture(texture, pending)
    }

    pub(crate) fn cuTexObjectGetResourceDesc(
        &self,
        resource: Pointer<CUDA_RESOURCE_DESC>,
        texture: CUtexObject,
    ) -> Result {
        self.require_current()?;
        resource
            .required()?
            .write(self.lock().textures.texture(texture)?.resource.0)
    }

    pub(crate) fn cuTexObjectGetTextureDesc(
        &self,
        description: Pointer<CUDA_TEXTURE_DESC>,
        texture: CUtexObject,
    ) -> Result {
        self.require_current()?;
        description
            .required()?
            .write(self.lock().textures.texture(texture)?.description)
    }

    pub(crate) fn cuTexObjectGetResourceViewDesc(
        &self,
        view: Pointer<CUDA_RESOURCE_VIEW_DESC>,
        texture: CUtexObject,
    ) -> Result {
        self.require_current()?;
        let output = view.required()?;
        // As on hardware, nothing is written for a texture without a view.
        match self.lock().textures.texture(texture)?.view {
            Some(view) => output.write(view),
            None => Ok(()),
        }
    }

    pub(crate) fn cuSurfObjectCreate(
        &self,
        surface: Pointer<CUsurfObject>,
        resource: ConstPointer<CUDA_RESOURCE_DESC>,
    ) -> Result {
        self.require_current()?;
        let output = surface.required()?;
        let resource = resource.read()?;
        let mut state = self.lock();
        let array = resource_array(&resource).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // As on hardware, the array needs no flag for surfaces.
        state.textures.array(array)?;
        let resource = Resource(resource);
        output.write(state.textures.insert_surface(Surface { resource }))
    }

    pub(crate) fn cuSurfObjectDestroy(&self, surface: CUsurfObject) -> Result {
        if surface == 0 {
            return self.require_current();
        }
        let mut state = self.lock();
        let pending = state.schedule.pending(|_| true);
        state.textures.destroy_surface(surface, pending)
    }

    pub(crate) fn cuSurfObjectGetResourceDesc(
        &self,
        resource: Pointer<CUDA_RESOURCE_DESC>,
        surface: CUsurfObject,
    ) -> Result {
        self.require_current()?;
        let output = resource.required()?;
        let state = self.lock();
        output.write(state.textures.surface(surface)?.resource.0)
    }
}

impl Locked<'_> {
    /// Checks that a texture can use this resource. As on hardware, memory only has to begin in an
    /// allocation, whatever its length and access rights. Kernels report the accesses that these
    /// forbid.
    fn check_resource(&self, resource: &CUDA_RESOURCE_DESC) -> Result {
        let driver = self.driver();
        let is_valid = match resource.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                return resource_array(resource)
                    .and_then(|id| self.textures.array(id).ok())
                    .map(|_| ())
                    .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let raw = unsafe { resource.res.mipmap }.hMipmappedArray;
                // SAFETY: an array is a handle, which is only compared.
                let array = unsafe { Pointer::from_raw(raw) }.required()?;
                return self.textures.mipmapped_array(Id::from(array)).map(|_| ());
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let linear = unsafe { resource.res.linear };
                linear.devPtr.is_multiple_of(LINEAR_ALIGNMENT)
                    && linear.sizeInBytes <= MAX_LINEAR_BYTES
                    && driver.memory().find(linear.devPtr).is_some()
            }
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let plane = unsafe { resource.res.pitch2D };
                plane.devPtr.is_multiple_of(LINEAR_ALIGNMENT)
                    && plane.pitchInBytes.is_multiple_of(PITCH_ALIGNMENT)
                    && plane.width != 0
                    && plane.height != 0
                    && driver.memory().find(plane.devPtr).is_some()
            }
            _ => false,
        };
        if is_valid {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }
}
