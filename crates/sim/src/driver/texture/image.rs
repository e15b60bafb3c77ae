//! Textures and surfaces as kernels access them.

use curium_ptx::exec::{self, AddressMode, Channel, Element, Image};
use curium_sys::{
    CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER, CU_TRSF_SRGB, CUDA_RESOURCE_VIEW_DESC,
    CUaddress_mode, CUfilter_mode, CUresourceViewFormat, CUresourcetype,
};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::state::State;
use crate::driver::texture::resource_array;
use crate::handle::Id;
use crate::object::array::Array;
use crate::object::array::mipmapped::MipmappedArray;
use crate::object::texture::image::format_channel;
use crate::object::texture::{Resource, Texture};

impl Driver {
    /// Returns the texture of a handle that a kernel uses.
    pub(crate) fn texture_for_kernels(&self, handle: u64) -> Option<exec::Texture> {
        let mut state = self.lock();
        let texture = state
            .textures
            .textures
            .get(Id::from_number(handle))
            .or_else(|| state.textures.destroyed_textures.get(handle))?;
        let arrays = texture.resource.arrays(&state);
        let mut texture = texture.for_kernels(&state)?;
        texture.tiles = arrays
            .into_iter()
            .filter_map(|array| state.textures.sparse_tiles(array))
            .collect();
        Some(texture)
    }

    /// Returns the surface of a handle that a kernel uses.
    pub(crate) fn surface_for_kernels(&self, handle: u64) -> Option<exec::Surface> {
        let state = self.lock();
        let surface = state
            .textures
            .surfaces
            .get(Id::from_number(handle))
            .or_else(|| state.textures.destroyed_surfaces.get(handle))?;
        let array = state
            .textures
            .array(resource_array(&surface.resource.0)?)
            .ok()?;
        Some(exec::Surface {
            image: array.image(),
            element: array.shape.as_element()?,
        })
    }
}

impl Texture {
    fn for_kernels(&self, state: &State) -> Option<exec::Texture> {
        let (mut levels, mut element) = self.resource.images(state)?;
        let options = &self.description;
        let flags = options.flags;
        if let Some(view) = &self.view {
            levels = viewed(levels, view);
            element = view_element(view.format).unwrap_or(element);
        }
        Some(exec::Texture {
            levels,
            element,
            address_modes: options.addressMode.map(|mode| match mode {
                CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP => AddressMode::Wrap,
                CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR => AddressMode::Mirror,
                CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER => AddressMode::Border,
                _ => AddressMode::Clamp,
            }),
            is_linear: options.filterMode == CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
            is_linear_in_levels: options.mipmapFilterMode
                == CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
            has_normalized_coordinates: flags & CU_TRSF_NORMALIZED_COORDINATES != 0,
            reads_integers: flags & CU_TRSF_READ_AS_INTEGER != 0,
            is_srgb: flags & CU_TRSF_SRGB != 0,
            is_buffer: self.resource.0.resType == CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
            level_bias: options.mipmapLevelBias,
            level_range: [options.minMipmapLevelClamp, options.maxMipmapLevelClamp],
            border: options.borderColor,
            tiles: Vec::new(),
        })
    }
}

impl Resource {
    /// Returns the arrays, the largest first.
    fn arrays(&self, state: &State) -> Vec<Id<Array>> {
        if let Some(array) = resource_array(&self.0) {
            return vec![array];
        }
        self.mipmapped(state)
            .map_or_else(Vec::new, |whole| whole.levels().to_vec())
    }

    fn mipmapped<'s>(&self, state: &'s State) -> Option<&'s MipmappedArray> {
        if self.0.resType != CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY {
            return None;
        }
        // SAFETY: the type selects this member, which the caller has initialized.
        let raw = unsafe { self.0.res.mipmap }.hMipmappedArray;
        // SAFETY: an array is a handle, which is only compared.
        state
            .textures
            .mipmapped_array(Id::from(unsafe { Pointer::from_raw(raw) }))
            .ok()
    }

    /// Returns the images, the largest first, and the format of their elements.
    fn images(&self, state: &State) -> Option<(Vec<Image>, Element)> {
        match self.0.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                let array = state.textures.array(resource_array(&self.0)?).ok()?;
                Some((vec![array.image()], array.shape.as_element()?))
            }
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                let whole = self.mipmapped(state)?;
                let levels: Vec<&Array> = whole
                    .levels()
                    .iter()
                    .filter_map(|level| state.textures.array(*level).ok())
                    .collect();
                let element = levels.first()?.shape.as_element()?;
                Some((levels.into_iter().map(Array::image).collect(), element))
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                // SAFETY: the type selects this member, which the caller has initialized.
                let linear = unsafe { self.0.res.linear };
                let element = Element {
                    channel: format_channel(linear.format)?,
                    channels: linear.numChannels,
                };
                let width = (linear.sizeInBytes as u64 / element.bytes()) as u32;
                let image = Image {
                    base: linear.devPtr,
                    width,
                    height: 1,
                    depth: 1,
                    pitch: linear.sizeInBytes as u64,
                };
                Some((vec![image], element))
            }
            _ => {
                // SAFETY: a texture is of one of the four types, and this is the fourth.
                let plane = unsafe { self.0.res.pitch2D };
                let element = Element {
                    channel: format_channel(plane.format)?,
                    channels: plane.numChannels,
                };
                Some((
                    vec![Image {
                        base: plane.devPtr,
                        width: plane.width as u32,
                        height: plane.height as u32,
                        depth: 1,
                        pitch: plane.pitchInBytes as u64,
                    }],
                    element,
                ))
            }
        }
    }
}

/// Returns the levels and layers of a resource view.
fn viewed(levels: Vec<Image>, view: &CUDA_RESOURCE_VIEW_DESC) -> Vec<Image> {
    let last = (levels.len() - 1) as u32;
    let first = view.firstMipmapLevel.min(last);
    let end = view.lastMipmapLevel.min(last);
    let layers = (view.lastLayer + 1).saturating_sub(view.firstLayer);
    levels
        .into_iter()
        .map(|mut image| {
            if view.lastLayer > 0 && image.depth > view.firstLayer {
                image.base += u64::from(view.firstLayer) * u64::from(image.height) * image.pitch;
                image.depth = layers.min(image.depth - view.firstLayer);
            }
            image
        })
        .skip(first as usize)
        .take((end.max(first) - first + 1) as usize)
        .collect()
}

/// Returns the element of a view in another format of the same size.
fn view_element(format: CUresourceViewFormat) -> Option<Element> {
    // Formats are numbered in groups of one, two and four channels, followed by the compressed
    // ones.
    const CHANNELS: [Channel; 8] = [
        Channel::U8,
        Channel::I8,
        Channel::U16,
        Channel::I16,
        Channel::U32,
        Channel::I32,
        Channel::F16,
        Channel::F32,
    ];
    let number = format
        .0
        .checked_sub(CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_1X8.0)?;
    let channel = *CHANNELS.get((number / 3) as usize)?;
    Some(Element {
        channel,
        channels: 1 << (number % 3),
    })
}
