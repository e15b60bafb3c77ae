//! Arrays: memory with a device-specific layout. Here rows and layers are contiguous.

pub(crate) mod format;
pub(crate) mod mipmapped;
pub(crate) mod sparse;

use curium_sys::{
    CUDA_ARRAY3D_COLOR_ATTACHMENT, CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DEFERRED_MAPPING,
    CUDA_ARRAY3D_DEPTH_TEXTURE, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_SPARSE,
    CUDA_ARRAY3D_SURFACE_LDST, CUDA_ARRAY3D_TEXTURE_GATHER, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE,
    CUarray_format, CUarray_st, CUresult,
};

use crate::context::Context;
use crate::handle::{Id, Kind, Object};
use crate::result::Result;

/// An array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) context: Id<Context>,
    pub(crate) shape: Shape,
    /// The address of its first element, which is hidden from the program.
    pub(crate) base: u64,
    /// `true` if it is a level of a mipmapped array, which destroys it.
    pub(crate) is_level: bool,
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

impl Shape {
    /// Returns the bytes of an element; `None` for formats that are compressed or have several
    /// planes.
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
    pub(crate) fn checked(&self) -> Result<u64> {
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

    pub(crate) fn to_raw(self) -> CUDA_ARRAY3D_DESCRIPTOR {
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
