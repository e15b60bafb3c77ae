//! Texture and surface objects over arrays and memory.

mod image;

use curium_sys::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES,
    CU_TRSF_READ_AS_INTEGER, CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUresourcetype, CUresult, CUsurfObject,
    CUtexObject,
};

use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, Result, State};
use crate::handle::{Id, Kind, Object};
use crate::schedule::Ticket;

/// A texture object.
pub(crate) struct Texture {
    resource: Resource,
    description: CUDA_TEXTURE_DESC,
    view: Option<CUDA_RESOURCE_VIEW_DESC>,
}

/// A surface object.
pub(crate) struct Surface {
    resource: Resource,
}

/// Destroyed textures or surfaces that launches which were enqueued before can still access, as on hardware.
pub(crate) struct Destroyed<T>(Vec<DestroyedObject<T>>);

struct DestroyedObject<T> {
    handle: u64,
    object: T,
    /// The work that was enqueued before.
    users: Vec<Ticket>,
}

/// The resource as the caller described it.
#[derive(Clone, Copy)]
struct Resource(CUDA_RESOURCE_DESC);

// SAFETY: the simulator treats the handles in a description as numbers and never follows them.
unsafe impl Send for Resource {}

impl Object for Texture {
    type Raw = u8;
    const KIND: Kind = Kind::Texture;
}

impl Object for Surface {
    type Raw = u8;
    const KIND: Kind = Kind::Surface;
}

/// The alignment of the addresses of linear textures; pitches are aligned to 32.
const LINEAR_ALIGNMENT: u64 = 512;
const PITCH_ALIGNMENT: usize = 32;
/// The maximum size of a linear texture.
const MAX_LINEAR_BYTES: usize = 1 << 32;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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
        self.check_resource(&state, &resource)?;
        const KNOWN_FLAGS: u32 = CU_TRSF_READ_AS_INTEGER
            | CU_TRSF_NORMALIZED_COORDINATES
            | CU_TRSF_SRGB
            | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
            | CU_TRSF_SEAMLESS_CUBEMAP;
        let has_unknown_flags = resource.flags != 0 || description.flags & !KNOWN_FLAGS != 0;
        let modes = description.addressMode.iter().all(|mode| mode.0 <= 3);
        if has_unknown_flags
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
        if view.is_some_and(|view| view.width == 0) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let texture = Texture {
            resource: Resource(resource),
            description,
            view,
        };
        output.write(state.textures.insert(texture).number())
    }

    pub(crate) fn cuTexObjectDestroy(&self, texture: CUtexObject) -> Result {
        if texture == 0 {
            return self.require_current();
        }
        let mut state = self.lock();
        let object = state
            .textures
            .remove(Id::from_number(texture))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let users = state.schedule.pending(|_| true);
        state.destroyed_textures.insert(texture, object, users);
        Ok(())
    }

    pub(crate) fn cuTexObjectGetResourceDesc(
        &self,
        resource: Pointer<CUDA_RESOURCE_DESC>,
        texture: CUtexObject,
    ) -> Result {
        self.require_current()?;
        resource
            .required()?
            .write(self.lock().texture(texture)?.resource.0)
    }

    pub(crate) fn cuTexObjectGetTextureDesc(
        &self,
        description: Pointer<CUDA_TEXTURE_DESC>,
        texture: CUtexObject,
    ) -> Result {
        self.require_current()?;
        description
            .required()?
            .write(self.lock().texture(texture)?.description)
    }

    pub(crate) fn cuTexObjectGetResourceViewDesc(
        &self,
        view: Pointer<CUDA_RESOURCE_VIEW_DESC>,
        texture: CUtexObject,
    ) -> Result {
        self.require_current()?;
        let output = view.required()?;
        // As on hardware, nothing is written for a texture without a view.
        match self.lock().texture(texture)?.view {
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
        state.array(array)?;
        output.write(
            state
                .surfaces
                .insert(Surface {
                    resource: Resource(resource),
                })
                .number(),
        )
    }

    pub(crate) fn cuSurfObjectDestroy(&self, surface: CUsurfObject) -> Result {
        if surface == 0 {
            return self.require_current();
        }
        let mut state = self.lock();
        let object = state
            .surfaces
            .remove(Id::from_number(surface))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let users = state.schedule.pending(|_| true);
        state.destroyed_surfaces.insert(surface, object, users);
        Ok(())
    }

    pub(crate) fn cuSurfObjectGetResourceDesc(
        &self,
        resource: Pointer<CUDA_RESOURCE_DESC>,
        surface: CUsurfObject,
    ) -> Result {
        self.require_current()?;
        let output = resource.required()?;
        let state = self.lock();
        let surface = state
            .surfaces
            .get(Id::from_number(surface))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        output.write(surface.resource.0)
    }
}

impl Driver {
    /// Checks that a texture can use this resource. As on hardware, memory only has to begin in an allocation, whatever its length and
    /// access rights. Kernels report the accesses that these forbid.
    fn check_resource(&self, state: &State, resource: &CUDA_RESOURCE_DESC) -> Result {
        let is_valid = match resource.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                return resource_array(resource)
                    .map_or(Err(CUresult::CUDA_ERROR_INVALID_VALUE), |id| {
                        state.array(id).map(|_| ())
                    });
            }
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let raw = unsafe { resource.res.mipmap }.hMipmappedArray;
                // SAFETY: an array is a handle, which is only compared.
                let array = unsafe { Pointer::from_raw(raw) }.required()?;
                return state.mipmapped_array(Id::from(array)).map(|_| ());
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let linear = unsafe { resource.res.linear };
                linear.devPtr.is_multiple_of(LINEAR_ALIGNMENT)
                    && linear.sizeInBytes <= MAX_LINEAR_BYTES
                    && self.memory().find(linear.devPtr).is_some()
            }
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let plane = unsafe { resource.res.pitch2D };
                plane.devPtr.is_multiple_of(LINEAR_ALIGNMENT)
                    && plane.pitchInBytes.is_multiple_of(PITCH_ALIGNMENT)
                    && plane.width != 0
                    && plane.height != 0
                    && self.memory().find(plane.devPtr).is_some()
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

impl<T> Destroyed<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an object, and drops those that no work can access any more. `pending` is all work that has not ended.
    fn insert(&mut self, handle: u64, object: T, pending: Vec<Ticket>) {
        self.0
            .retain(|destroyed| destroyed.users.iter().any(|user| pending.contains(user)));
        if !pending.is_empty() {
            self.0.push(DestroyedObject {
                handle,
                object,
                users: pending,
            });
        }
    }

    fn get(&self, handle: u64) -> Option<&T> {
        let destroyed = self.0.iter().find(|destroyed| destroyed.handle == handle)?;
        Some(&destroyed.object)
    }
}

impl State {
    fn texture(&self, raw: CUtexObject) -> Result<&Texture> {
        self.textures
            .get(Id::from_number(raw))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Returns the array of a description.
fn resource_array(resource: &CUDA_RESOURCE_DESC) -> Option<Id<crate::driver::Array>> {
    (resource.resType == CUresourcetype::CU_RESOURCE_TYPE_ARRAY).then(|| {
        // SAFETY: the type selects this member, which the caller has initialized.
        let raw = unsafe { resource.res.array }.hArray;
        // SAFETY: an array is a handle, which is only compared.
        Id::from(unsafe { Pointer::from_raw(raw) })
    })
}
