//! Arrays: memory with a device-specific layout. Here rows and layers are contiguous.

pub(crate) mod format;
mod mipmapped;
mod sparse;

use curium_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY3D_COLOR_ATTACHMENT,
    CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DEPTH_TEXTURE,
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_SURFACE_LDST,
    CUDA_ARRAY3D_TEXTURE_GATHER, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, CUarray, CUarray_format,
    CUarray_st, CUdevice, CUresult,
};

pub(crate) use self::mipmapped::MipmappedArray;
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Context, Driver, Result, State};
use crate::handle::{Id, Kind, Object};
use crate::memory::Purpose;

/// An array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) context: Id<Context>,
    pub(crate) shape: Shape,
    /// The address of its first element, which is hidden from the program.
    pub(crate) base: u64,
    /// `true` if it is a level of a mipmapped array, which destroys it.
    is_level: bool,
}

/// The parameters that an array was created with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) format: CUarray_format,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

impl Object for Array {
    type Raw = CUarray_st;
    const KIND: Kind = Kind::Array;
}

/// The flags that only arrays of two dimensions have. One is not documented, and has no effect.
const PLANE_FLAGS: u32 = CUDA_ARRAY3D_TEXTURE_GATHER | 0x8000_0000;

/// The flags of arrays that are simulated.
const KNOWN_FLAGS: u32 = CUDA_ARRAY3D_LAYERED
    | CUDA_ARRAY3D_CUBEMAP
    | CUDA_ARRAY3D_SURFACE_LDST
    | PLANE_FLAGS
    | CUDA_ARRAY3D_DEPTH_TEXTURE
    | CUDA_ARRAY3D_SPARSE;

/// The flags of arrays with special hardware requirements.
const UNSUPPORTED_FLAGS: u32 = CUDA_ARRAY3D_COLOR_ATTACHMENT
    | CUDA_ARRAY3D_DEFERRED_MAPPING
    | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuArrayCreate_v2(
        &self,
        array: Pointer<CUarray>,
        descriptor: ConstPointer<CUDA_ARRAY_DESCRIPTOR>,
    ) -> Result {
        self.require_current()?;
        let flat = descriptor.read()?;
        let shape = Shape {
            width: flat.Width,
            height: flat.Height,
            depth: 0,
            format: flat.Format,
            channels: flat.NumChannels,
            flags: 0,
        };
        self.create_array(array, shape)
    }

    pub(crate) fn cuArray3DCreate_v2(
        &self,
        array: Pointer<CUarray>,
        descriptor: ConstPointer<CUDA_ARRAY3D_DESCRIPTOR>,
    ) -> Result {
        self.require_current()?;
        self.create_array(array, Shape::from(descriptor.read()?))
    }

    /// Waits for the device, because the memory is freed.
    pub(crate) fn cuArrayDestroy(&self, array: Pointer<CUarray_st>) -> Result {
        let mut state = self.lock();
        let id = Id::from(array);
        let array = *state.array(id)?;
        if array.is_level {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let device = state.valid_context(array.context)?.device;
        state.arrays.remove(id);
        state.tiles.remove(&id);
        drop(self.wait_for_device(state, device)?);
        self.memory().free(array.base);
        Ok(())
    }

    pub(crate) fn cuArrayGetDescriptor_v2(
        &self,
        descriptor: Pointer<CUDA_ARRAY_DESCRIPTOR>,
        array: Pointer<CUarray_st>,
    ) -> Result {
        let shape = self.lock().array(Id::from(array))?.shape;
        descriptor.write(CUDA_ARRAY_DESCRIPTOR {
            Width: shape.width,
            Height: shape.height,
            Format: shape.format,
            NumChannels: shape.channels,
        })
    }

    pub(crate) fn cuArray3DGetDescriptor_v2(
        &self,
        descriptor: Pointer<CUDA_ARRAY3D_DESCRIPTOR>,
        array: Pointer<CUarray_st>,
    ) -> Result {
        let shape = self.lock().array(Id::from(array))?.shape;
        descriptor.write(shape.to_raw())
    }

    /// Fails for all arguments: only arrays with deferred mapping have requirements, and this driver has none.
    pub(crate) fn cuArrayGetMemoryRequirements(
        &self,
        requirements: Pointer<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
        _array: Pointer<CUarray_st>,
        _device: CUdevice,
    ) -> Result {
        requirements.required()?;
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Fails: arrays with several planes are not supported.
    pub(crate) fn cuArrayGetPlane(
        &self,
        plane: Pointer<CUarray>,
        array: Pointer<CUarray_st>,
        _: u32,
    ) -> Result {
        self.lock().array(Id::from(array))?;
        plane.required()?;
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

impl Driver {
    fn create_array(&self, array: Pointer<CUarray>, shape: Shape) -> Result {
        let output = array.required()?;
        let owner = self.current_owner()?;
        let base = self
            .memory()
            .allocate_on_device(shape.checked()?, owner, Purpose::Array)?;
        let array = Array {
            context: owner.context,
            shape,
            base,
            is_level: false,
        };
        output.write(self.lock().arrays.insert(array).as_raw())
    }
}

impl State {
    /// Returns a live array.
    pub(crate) fn array(&self, id: Id<Array>) -> Result<&Array> {
        self.arrays
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}

impl Shape {
    /// Returns the bytes of an element; `None` for formats that are compressed or have several planes.
    pub(crate) fn element(&self) -> Option<usize> {
        let size = format::channel_size(self.format)?;
        matches!(self.channels, 1 | 2 | 4).then_some(size * self.channels as usize)
    }

    /// Returns the bytes of a row.
    pub(crate) fn pitch(&self) -> usize {
        self.width * self.element().unwrap_or_default()
    }

    /// Returns the rows of a layer.
    pub(crate) fn rows(&self) -> usize {
        self.height.max(1)
    }

    /// Returns `true` if the third extent counts layers.
    pub(crate) fn is_layered(&self) -> bool {
        self.flags & CUDA_ARRAY3D_LAYERED != 0
    }

    /// Returns the layers.
    pub(crate) fn layers(&self) -> usize {
        self.depth.max(1)
    }

    /// Returns the size of all elements in bytes, if the shape is valid.
    fn checked(&self) -> Result<u64> {
        let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
        let is_layered = self.is_layered();
        let is_cube = self.flags & CUDA_ARRAY3D_CUBEMAP != 0;
        let has_gap = self.height == 0 && self.depth != 0 && !is_layered;
        let is_cube_shape = self.width == self.height
            && if is_layered {
                self.depth != 0 && self.depth.is_multiple_of(6)
            } else {
                self.depth == 6
            };
        let is_for_planes = self.flags & PLANE_FLAGS != 0;
        let is_plane = self.height != 0 && (self.depth == 0 || is_layered);
        if self.width == 0
            || has_gap
            || (is_for_planes && !is_plane)
            || !format::has_channels(self.format, self.channels)
            || (is_layered && self.depth == 0)
            || (is_cube && !is_cube_shape)
            || self.flags & !(KNOWN_FLAGS | UNSUPPORTED_FLAGS) != 0
        {
            return Err(invalid);
        }
        if self.flags & UNSUPPORTED_FLAGS != 0 || self.element().is_none() {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if self.width > 131_072 || self.height > 65_536 || self.depth > 16_384 {
            return Err(invalid);
        }
        Ok((self.pitch() as u64) * (self.rows() as u64) * (self.layers() as u64))
    }

    fn to_raw(self) -> CUDA_ARRAY3D_DESCRIPTOR {
        CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.width,
            Height: self.height,
            Depth: self.depth,
            Format: self.format,
            NumChannels: self.channels,
            Flags: self.flags,
        }
    }
}

impl From<CUDA_ARRAY3D_DESCRIPTOR> for Shape {
    fn from(raw: CUDA_ARRAY3D_DESCRIPTOR) -> Self {
        Self {
            width: raw.Width,
            height: raw.Height,
            depth: raw.Depth,
            format: raw.Format,
            channels: raw.NumChannels,
            flags: raw.Flags,
        }
    }
}
