//! Textures and surfaces.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use curium_sys::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUarray_format,
    CUfilter_mode, CUresourceViewFormat, CUresourcetype, CUsurfObject, CUtexObject,
};

use crate::memory::{address, pointer};
use crate::state::{INVALID_VALUE, Out, Result, enter};
use crate::{cu, forward, runtime};

/// `cudaErrorInvalidChannelDescriptor`.
const INVALID_CHANNEL: c_int = 20;
/// `cudaReadModeNormalizedFloat`.
const NORMALIZED_FLOAT: c_uint = 1;
const READ_AS_INTEGER: c_uint = 0x01;
const NORMALIZED_COORDINATES: c_uint = 0x02;
const SRGB: c_uint = 0x10;
const WITHOUT_TRILINEAR: c_uint = 0x20;
const SEAMLESS: c_uint = 0x40;

/// `cudaChannelFormatDesc`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Channels {
    bits: [c_int; 4],
    kind: c_uint,
}

/// `cudaResourceDesc::res` of pitched memory, which begins with the fields of linear memory.
#[derive(Clone, Copy)]
#[repr(C)]
struct Memory {
    /// The address, or the handle of an array.
    start: *mut c_void,
    channels: Channels,
    /// The width, or the size of linear memory in bytes.
    width: usize,
    height: usize,
    pitch: usize,
}

/// The first fields of `cudaResourceDesc`, which are the same in all versions.
#[repr(C)]
pub(crate) struct Resource {
    kind: c_uint,
    memory: Memory,
}

/// `cudaTextureDesc`.
#[cfg_attr(test, derive(Debug, PartialEq))]
#[repr(C)]
pub(crate) struct Texture {
    address: [c_uint; 3],
    filter: c_uint,
    read: c_uint,
    srgb: c_int,
    border: [f32; 4],
    normalized: c_int,
    anisotropy: c_uint,
    mip_filter: c_uint,
    mip_bias: f32,
    mip_levels: [f32; 2],
    without_trilinear: c_int,
    seamless: c_int,
}

/// `cudaResourceViewDesc`, which lacks the reserved fields of the driver's structure.
#[repr(C)]
pub(crate) struct View {
    format: c_uint,
    size: [usize; 3],
    levels: [c_uint; 2],
    layers: [c_uint; 2],
}

impl View {
    fn from_driver(driver: &CUDA_RESOURCE_VIEW_DESC) -> Self {
        Self {
            format: driver.format.0,
            size: [driver.width, driver.height, driver.depth],
            levels: [driver.firstMipmapLevel, driver.lastMipmapLevel],
            layers: [driver.firstLayer, driver.lastLayer],
        }
    }

    fn to_driver(&self) -> CUDA_RESOURCE_VIEW_DESC {
        CUDA_RESOURCE_VIEW_DESC {
            format: CUresourceViewFormat(self.format),
            width: self.size[0],
            height: self.size[1],
            depth: self.size[2],
            firstMipmapLevel: self.levels[0],
            lastMipmapLevel: self.levels[1],
            firstLayer: self.layers[0],
            lastLayer: self.layers[1],
            ..CUDA_RESOURCE_VIEW_DESC::default()
        }
    }
}

impl Channels {
    #[cfg(test)]
    pub(crate) fn new(bits: [c_int; 4], kind: c_uint) -> Self {
        Self { bits, kind }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.iter().sum::<c_int>() as usize / 8
    }

    pub(crate) fn count(&self) -> usize {
        self.bits.iter().filter(|bits| **bits > 0).count()
    }

    pub(crate) fn format(&self) -> Result<CUarray_format> {
        Ok(match (self.kind, self.bits[0]) {
            (0, 8) => CUarray_format::CU_AD_FORMAT_SIGNED_INT8,
            (0, 16) => CUarray_format::CU_AD_FORMAT_SIGNED_INT16,
            (0, 32) => CUarray_format::CU_AD_FORMAT_SIGNED_INT32,
            (1, 8) => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
            (1, 16) => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16,
            (1, 32) => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
            (2, 16) => CUarray_format::CU_AD_FORMAT_HALF,
            (2, 32) => CUarray_format::CU_AD_FORMAT_FLOAT,
            _ => return Err(INVALID_CHANNEL),
        })
    }

    /// Returns the channels of a format of the driver.
    pub(crate) fn from_driver(format: CUarray_format, count: c_uint) -> Result<Self> {
        let (kind, bits) = match format {
            CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => (0, 8),
            CUarray_format::CU_AD_FORMAT_SIGNED_INT16 => (0, 16),
            CUarray_format::CU_AD_FORMAT_SIGNED_INT32 => (0, 32),
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 => (1, 8),
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16 => (1, 16),
            CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32 => (1, 32),
            CUarray_format::CU_AD_FORMAT_HALF => (2, 16),
            CUarray_format::CU_AD_FORMAT_FLOAT => (2, 32),
            _ => return Err(INVALID_CHANNEL),
        };
        Ok(Self {
            bits: [0, 1, 2, 3].map(|n| if n < count { bits } else { 0 }),
            kind,
        })
    }
}

impl Resource {
    fn from_driver(driver: &CUDA_RESOURCE_DESC) -> Result<Self> {
        let mut memory = Memory {
            start: ptr::null_mut(),
            channels: Channels::default(),
            width: 0,
            height: 0,
            pitch: 0,
        };
        match driver.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => {
                // SAFETY: the type selects the union field that the driver wrote.
                memory.start = unsafe { driver.res.array.hArray }.cast();
            }
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                // SAFETY: the type selects the union field that the driver wrote.
                memory.start = unsafe { driver.res.mipmap.hMipmappedArray }.cast();
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                // SAFETY: the type selects the union field that the driver wrote.
                let linear = unsafe { driver.res.linear };
                memory.start = pointer(linear.devPtr);
                memory.channels = Channels::from_driver(linear.format, linear.numChannels)?;
                memory.width = linear.sizeInBytes;
            }
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
                // SAFETY: the type selects the union field that the driver wrote.
                let pitched = unsafe { driver.res.pitch2D };
                memory.start = pointer(pitched.devPtr);
                memory.channels = Channels::from_driver(pitched.format, pitched.numChannels)?;
                memory.width = pitched.width;
                memory.height = pitched.height;
                memory.pitch = pitched.pitchInBytes;
            }
            _ => return Err(INVALID_VALUE),
        }
        Ok(Self {
            kind: driver.resType.0,
            memory,
        })
    }

    fn to_driver(&self) -> Result<CUDA_RESOURCE_DESC> {
        let mut driver = CUDA_RESOURCE_DESC {
            resType: CUresourcetype(self.kind),
            ..CUDA_RESOURCE_DESC::default()
        };
        let memory = &self.memory;
        match driver.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => driver.res.array.hArray = memory.start.cast(),
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                driver.res.mipmap.hMipmappedArray = memory.start.cast();
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                driver.res.linear.devPtr = address(memory.start);
                driver.res.linear.format = memory.channels.format()?;
                driver.res.linear.numChannels = memory.channels.count() as c_uint;
                driver.res.linear.sizeInBytes = memory.width;
            }
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
                driver.res.pitch2D.devPtr = address(memory.start);
                driver.res.pitch2D.format = memory.channels.format()?;
                driver.res.pitch2D.numChannels = memory.channels.count() as c_uint;
                driver.res.pitch2D.width = memory.width;
                driver.res.pitch2D.height = memory.height;
                driver.res.pitch2D.pitchInBytes = memory.pitch;
            }
            _ => return Err(INVALID_VALUE),
        }
        Ok(driver)
    }
}

impl Texture {
    fn from_driver(driver: &CUDA_TEXTURE_DESC) -> Self {
        let flags = driver.flags;
        Self {
            address: driver.addressMode.map(|mode| mode.0),
            filter: driver.filterMode.0,
            read: if flags & READ_AS_INTEGER != 0 {
                0
            } else {
                NORMALIZED_FLOAT
            },
            srgb: (flags & SRGB != 0).into(),
            border: driver.borderColor,
            normalized: (flags & NORMALIZED_COORDINATES != 0).into(),
            anisotropy: driver.maxAnisotropy,
            mip_filter: driver.mipmapFilterMode.0,
            mip_bias: driver.mipmapLevelBias,
            mip_levels: [driver.minMipmapLevelClamp, driver.maxMipmapLevelClamp],
            without_trilinear: (flags & WITHOUT_TRILINEAR != 0).into(),
            seamless: (flags & SEAMLESS != 0).into(),
        }
    }

    fn to_driver(&self) -> CUDA_TEXTURE_DESC {
        let flags = [
            (self.read != NORMALIZED_FLOAT, READ_AS_INTEGER),
            (self.normalized != 0, NORMALIZED_COORDINATES),
            (self.srgb != 0, SRGB),
            (self.without_trilinear != 0, WITHOUT_TRILINEAR),
            (self.seamless != 0, SEAMLESS),
        ];
        CUDA_TEXTURE_DESC {
            addressMode: self.address.map(CUaddress_mode),
            filterMode: CUfilter_mode(self.filter),
            flags: flags
                .iter()
                .filter(|(is_set, _)| *is_set)
                .map(|(_, flag)| flag)
                .sum(),
            maxAnisotropy: self.anisotropy,
            mipmapFilterMode: CUfilter_mode(self.mip_filter),
            mipmapLevelBias: self.mip_bias,
            minMipmapLevelClamp: self.mip_levels[0],
            maxMipmapLevelClamp: self.mip_levels[1],
            borderColor: self.border,
            ..CUDA_TEXTURE_DESC::default()
        }
    }
}

/// Describes the format of an element. C++ programs call it through a template.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_uint,
) -> Channels {
    Channels {
        bits: [x, y, z, w],
        kind,
    }
}

runtime! {
    fn cudaCreateTextureObject(
        object: *mut CUtexObject,
        resource: Option<&Resource>,
        texture: Option<&Texture>,
        view: Option<&View>,
    ) {
        enter()?;
        let resource = resource.ok_or(INVALID_VALUE)?.to_driver()?;
        let texture = texture.ok_or(INVALID_VALUE)?.to_driver();
        let view = view.map(View::to_driver);
        let view = view.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: `resource` and `texture` live during the call, and the caller of the runtime
        // function guarantees the other arguments.
        unsafe { cu!(cuTexObjectCreate(object, &raw const resource, &raw const texture, view)) }
    }

    fn cudaGetTextureObjectResourceDesc(resource: Out<Resource>, texture: CUtexObject) {
        enter()?;
        let mut driver = CUDA_RESOURCE_DESC::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuTexObjectGetResourceDesc(&raw mut driver, texture)) }?;
        resource.write(Resource::from_driver(&driver)?)
    }

    fn cudaGetTextureObjectTextureDesc(description: Out<Texture>, texture: CUtexObject) {
        enter()?;
        let mut driver = CUDA_TEXTURE_DESC::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuTexObjectGetTextureDesc(&raw mut driver, texture)) }?;
        description.write(Texture::from_driver(&driver))
    }

    fn cudaGetTextureObjectResourceViewDesc(view: Out<View>, texture: CUtexObject) {
        enter()?;
        let mut driver = CUDA_RESOURCE_VIEW_DESC::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuTexObjectGetResourceViewDesc(&raw mut driver, texture)) }?;
        view.write(View::from_driver(&driver))
    }

    fn cudaGetSurfaceObjectResourceDesc(resource: Out<Resource>, surface: CUsurfObject) {
        enter()?;
        let mut driver = CUDA_RESOURCE_DESC::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuSurfObjectGetResourceDesc(&raw mut driver, surface)) }?;
        resource.write(Resource::from_driver(&driver)?)
    }

    fn cudaCreateSurfaceObject(surface: *mut CUsurfObject, resource: Option<&Resource>) {
        enter()?;
        let resource = resource.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `resource` lives during the call, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe { cu!(cuSurfObjectCreate(surface, &raw const resource)) }
    }
}

forward! {
    unsafe fn cudaDestroyTextureObject(texture: CUtexObject) = cuTexObjectDestroy(texture);

    unsafe fn cudaDestroySurfaceObject(surface: CUsurfObject) = cuSurfObjectDestroy(surface);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{cudaFreeArray, cudaMallocArray};
    use crate::tests::{call, code, simulate};

    fn texture() -> Texture {
        Texture {
            address: [1, 2, 0],
            filter: 1,
            read: NORMALIZED_FLOAT,
            srgb: 0,
            border: [0.0, 0.25, 0.5, 1.0],
            normalized: 1,
            anisotropy: 4,
            mip_filter: 0,
            mip_bias: 0.5,
            mip_levels: [0.0, 2.0],
            without_trilinear: 0,
            seamless: 0,
        }
    }

    #[test]
    fn texture_descriptions_are_returned() {
        let _turn = simulate();
        let channels = cudaCreateChannelDesc(8, 8, 8, 8, 1);
        let mut array = Default::default();
        call!(cudaMallocArray(&raw mut array, Some(&channels), 16, 8, 0));
        let start = array.cast();
        let resource = Resource {
            kind: 0,
            memory: Memory {
                start,
                channels,
                width: 0,
                height: 0,
                pitch: 0,
            },
        };
        let described = texture();
        let mut object = 0;
        call!(cudaCreateTextureObject(
            &raw mut object,
            Some(&resource),
            Some(&described),
            None
        ));
        let mut returned = texture();
        returned.address = [9; 3];
        call!(cudaGetTextureObjectTextureDesc(
            (&mut returned).into(),
            object
        ));
        assert_eq!(returned, described);
        let mut array_resource = Resource {
            kind: 9,
            memory: Memory {
                start: ptr::null_mut(),
                ..resource.memory
            },
        };
        call!(cudaGetTextureObjectResourceDesc(
            (&mut array_resource).into(),
            object
        ));
        assert_eq!(
            (array_resource.kind, array_resource.memory.start),
            (0, start)
        );
        call!(cudaDestroyTextureObject(object));
        assert_ne!(
            code!(cudaDestroyTextureObject(object)),
            0,
            "it is destroyed"
        );
        call!(cudaFreeArray(array));
    }

    #[test]
    fn texture_without_a_description_is_refused() {
        let _turn = simulate();
        let mut object = 0;
        let described = texture();
        let code = code!(cudaCreateTextureObject(
            &raw mut object,
            None,
            Some(&described),
            None
        ));
        assert_eq!(code, INVALID_VALUE);
    }
}
