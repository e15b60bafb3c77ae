//! The extents of an array.

use std::fmt;

use bitflags::bitflags;
use curium_driver::sys::{self, CUDA_ARRAY3D_DESCRIPTOR};
use curium_driver::{Error, Result};

use super::{ArrayFormat, Texel};

/// The extents of an array, in elements, rows and layers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ArrayShape {
    width: usize,
    /// 0 for lines.
    height: usize,
    /// 0 for lines and planes.
    depth: usize,
    kind: ArrayKind,
}

/// What the layers of an array are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ArrayKind {
    /// Parts of one line, plane or volume.
    Regular,
    /// Lines or planes for themselves.
    Layered,
    /// The six faces of a cube.
    Cubemap,
    /// The faces of several cubes.
    LayeredCubemap,
}

bitflags! {
    /// What an array is for, beyond plain textures.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct ArrayFlags: u32 {
        /// Surfaces can be made of it.
        const SURFACE = sys::CUDA_ARRAY3D_SURFACE_LDST;
        /// Textures of it can gather one component of four elements; planes only.
        const GATHER = sys::CUDA_ARRAY3D_TEXTURE_GATHER;
        /// It holds depths.
        const DEPTH = sys::CUDA_ARRAY3D_DEPTH_TEXTURE;
        /// A graphics library renders to it.
        const COLOR_ATTACHMENT = sys::CUDA_ARRAY3D_COLOR_ATTACHMENT;
        /// Memory is mapped behind its tiles later, as needed.
        const SPARSE = sys::CUDA_ARRAY3D_SPARSE;
        /// Memory is mapped behind all of it later.
        const DEFERRED_MAPPING = sys::CUDA_ARRAY3D_DEFERRED_MAPPING;
        /// A video engine uses it. Needs a driver for CUDA 13.0.
        const VIDEO = sys::CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
        /// Uses of newer drivers.
        const _ = !(sys::CUDA_ARRAY3D_LAYERED | sys::CUDA_ARRAY3D_CUBEMAP);
    }
}

impl ArrayShape {
    /// A line of `width` elements.
    #[must_use]
    #[inline]
    pub const fn new_1d(width: usize) -> Self {
        Self { width, height: 0, depth: 0, kind: ArrayKind::Regular }
    }

    /// A plane of `height` rows.
    #[must_use]
    #[inline]
    pub const fn new_2d(width: usize, height: usize) -> Self {
        Self { width, height, depth: 0, kind: ArrayKind::Regular }
    }

    /// A volume of `depth` planes.
    #[must_use]
    #[inline]
    pub const fn new_3d(width: usize, height: usize, depth: usize) -> Self {
        Self { width, height, depth, kind: ArrayKind::Regular }
    }

    /// `layers` lines for themselves.
    #[must_use]
    #[inline]
    pub const fn layered_1d(width: usize, layers: usize) -> Self {
        Self { width, height: 0, depth: layers, kind: ArrayKind::Layered }
    }

    /// `layers` planes for themselves.
    #[must_use]
    #[inline]
    pub const fn layered_2d(width: usize, height: usize, layers: usize) -> Self {
        Self { width, height, depth: layers, kind: ArrayKind::Layered }
    }

    /// The six faces of a cube.
    #[must_use]
    #[inline]
    pub const fn cubemap(width: usize) -> Self {
        Self { width, height: width, depth: 6, kind: ArrayKind::Cubemap }
    }

    /// The faces of several cubes.
    #[must_use]
    #[inline]
    pub const fn layered_cubemap(width: usize, cubemaps: usize) -> Self {
        Self { width, height: width, depth: cubemaps.saturating_mul(6), kind: ArrayKind::LayeredCubemap }
    }

    /// The elements of a row.
    #[must_use]
    #[inline]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Whether there are no rows but the one.
    #[inline]
    pub(crate) const fn is_line(&self) -> bool {
        self.height == 0
    }

    /// The rows of a layer: 1 for lines.
    #[must_use]
    #[inline]
    pub const fn rows(&self) -> usize {
        if self.is_line() { 1 } else { self.height }
    }

    /// The layers: 1 for lines and planes.
    #[must_use]
    #[inline]
    pub const fn layers(&self) -> usize {
        match self.kind {
            ArrayKind::Regular if self.depth == 0 => 1,
            _ => self.depth,
        }
    }

    /// What the layers are.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> ArrayKind {
        self.kind
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.width.saturating_mul(self.rows()).saturating_mul(self.layers())
    }

    /// Whether there is no element.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        let has_gap = self.kind == ArrayKind::Regular && self.depth != 0 && self.height == 0;
        let is_hollow = self.kind != ArrayKind::Regular && self.depth == 0;
        if self.width == 0 || has_gap || is_hollow {
            return Err(Error::argument(operation, format!("empty shape ({self})")));
        }
        let bytes = self.width.checked_mul(self.rows()).and_then(|plane| plane.checked_mul(self.layers()));
        if bytes.and_then(|elements| elements.checked_mul(16)).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(Error::argument(operation, format!("size overflow ({self})")));
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn to_raw<T: Texel>(self, flags: ArrayFlags) -> CUDA_ARRAY3D_DESCRIPTOR {
        let kind = match self.kind {
            ArrayKind::Regular => 0,
            ArrayKind::Layered => sys::CUDA_ARRAY3D_LAYERED,
            ArrayKind::Cubemap => sys::CUDA_ARRAY3D_CUBEMAP,
            ArrayKind::LayeredCubemap => sys::CUDA_ARRAY3D_CUBEMAP | sys::CUDA_ARRAY3D_LAYERED,
        };
        CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.width,
            Height: self.height,
            Depth: self.depth,
            Format: T::FORMAT.component,
            NumChannels: T::FORMAT.channels,
            Flags: flags.bits() | kind,
        }
    }

    /// What C describes.
    #[inline]
    pub(super) fn from_raw(raw: &CUDA_ARRAY3D_DESCRIPTOR) -> (Self, ArrayFlags, ArrayFormat) {
        let (layered, cube) = (sys::CUDA_ARRAY3D_LAYERED, sys::CUDA_ARRAY3D_CUBEMAP);
        let kind = match (raw.Flags & cube != 0, raw.Flags & layered != 0) {
            (false, false) => ArrayKind::Regular,
            (false, true) => ArrayKind::Layered,
            (true, false) => ArrayKind::Cubemap,
            (true, true) => ArrayKind::LayeredCubemap,
        };
        let shape = Self { width: raw.Width, height: raw.Height, depth: raw.Depth, kind };
        let flags = ArrayFlags::from_bits_retain(raw.Flags & !(layered | cube));
        (shape, flags, ArrayFormat { component: raw.Format, channels: raw.NumChannels })
    }

    /// The shape of a level of a mipmapped array: each extent is halved so often. Layers stay as many as they are.
    #[inline]
    pub(super) fn level(self, level: u32) -> Self {
        let half = |extent: usize| if extent == 0 { 0 } else { extent.checked_shr(level).unwrap_or(0).max(1) };
        let depth = if self.kind == ArrayKind::Regular { half(self.depth) } else { self.depth };
        Self { width: half(self.width), height: half(self.height), depth, ..self }
    }

    /// How many levels there can be.
    #[inline]
    pub(super) fn max_levels(self) -> u32 {
        let depth = if self.kind == ArrayKind::Regular { self.depth } else { 1 };
        usize::BITS - self.width.max(self.height).max(depth).leading_zeros()
    }
}

impl fmt::Display for ArrayShape {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, depth, kind } = self;
        match (kind, height, depth) {
            (ArrayKind::Regular, 0, 0) => write!(formatter, "a line of {width}"),
            (ArrayKind::Regular, _, 0) => write!(formatter, "a plane of {width} × {height}"),
            (ArrayKind::Regular, ..) => write!(formatter, "a volume of {width} × {height} × {depth}"),
            (ArrayKind::Layered, 0, _) => write!(formatter, "{depth} lines of {width}"),
            (ArrayKind::Layered, ..) => write!(formatter, "{depth} planes of {width} × {height}"),
            (ArrayKind::Cubemap, ..) => write!(formatter, "a cube of {width}"),
            (ArrayKind::LayeredCubemap, ..) => write!(formatter, "{} cubes of {width}", depth / 6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_count_their_elements() {
        let counts = [
            (ArrayShape::new_1d(5), 5, 1, 1),
            (ArrayShape::new_2d(5, 4), 20, 4, 1),
            (ArrayShape::new_3d(5, 4, 3), 60, 4, 3),
            (ArrayShape::layered_1d(5, 3), 15, 1, 3),
            (ArrayShape::cubemap(4), 96, 4, 6),
            (ArrayShape::layered_cubemap(4, 2), 192, 4, 12),
        ];
        for (shape, len, rows, layers) in counts {
            assert_eq!((shape.len(), shape.rows(), shape.layers()), (len, rows, layers), "{shape}");
            shape.check("test").expect("the shape has elements");
        }
        for shape in [
            ArrayShape::new_1d(0),
            ArrayShape::new_3d(4, 0, 4),
            ArrayShape::layered_1d(4, 0),
            ArrayShape::layered_cubemap(4, 0),
        ] {
            shape.check("test").expect_err("the shape has no element");
        }
        ArrayShape::new_2d(usize::MAX, 2).check("test").expect_err("the shape is too large");
    }

    #[test]
    fn levels_are_halved_until_one_element_is_left() {
        let volume = ArrayShape::new_3d(8, 5, 1);
        assert_eq!(volume.max_levels(), 4);
        assert_eq!(volume.level(1), ArrayShape::new_3d(4, 2, 1));
        assert_eq!(volume.level(3), ArrayShape::new_3d(1, 1, 1));
        assert_eq!(ArrayShape::layered_2d(8, 8, 5).level(2), ArrayShape::layered_2d(2, 2, 5));
    }
}
