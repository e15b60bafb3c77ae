//! Array shapes.

use std::fmt;

use bitflags::bitflags;
use curium_driver::sys::{self, CUDA_ARRAY3D_DESCRIPTOR};
use curium_driver::{Error, Result};

use super::{ArrayFormat, Texel};

/// The shape of an array in elements, rows and layers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ArrayShape {
    width: usize,
    /// 0 for one-dimensional arrays.
    height: usize,
    /// 0 for one- and two-dimensional arrays.
    depth: usize,
    kind: ArrayKind,
}

/// The kind of an array.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ArrayKind {
    /// A one-, two- or three-dimensional array.
    Regular,
    /// A layered one- or two-dimensional array.
    Layered,
    /// A cubemap of six faces.
    Cubemap,
    /// A layered cubemap.
    LayeredCubemap,
}

bitflags! {
    /// Flags of an array (`CUDA_ARRAY3D_…`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct ArrayFlags: u32 {
        /// Surfaces can be bound to the array.
        const SURFACE = sys::CUDA_ARRAY3D_SURFACE_LDST;
        /// Textures of the array support gather. Two-dimensional arrays only.
        const GATHER = sys::CUDA_ARRAY3D_TEXTURE_GATHER;
        /// A depth texture.
        const DEPTH = sys::CUDA_ARRAY3D_DEPTH_TEXTURE;
        /// A color attachment of a graphics API.
        const COLOR_ATTACHMENT = sys::CUDA_ARRAY3D_COLOR_ATTACHMENT;
        /// A sparse array: memory is mapped to individual tiles.
        const SPARSE = sys::CUDA_ARRAY3D_SPARSE;
        /// A deferred mapping: memory is mapped later, for the whole array.
        const DEFERRED_MAPPING = sys::CUDA_ARRAY3D_DEFERRED_MAPPING;
        /// For the video encoder and decoder. Requires a driver for CUDA 13.0.
        const VIDEO = sys::CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
        /// Flags defined by newer drivers.
        const _ = !(sys::CUDA_ARRAY3D_LAYERED | sys::CUDA_ARRAY3D_CUBEMAP);
    }
}

impl ArrayShape {
    /// Creates a one-dimensional shape.
    #[must_use]
    pub const fn new_1d(width: usize) -> Self {
        Self {
            width,
            height: 0,
            depth: 0,
            kind: ArrayKind::Regular,
        }
    }

    /// Creates a two-dimensional shape.
    #[must_use]
    pub const fn new_2d(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            depth: 0,
            kind: ArrayKind::Regular,
        }
    }

    /// Creates a three-dimensional shape.
    #[must_use]
    pub const fn new_3d(width: usize, height: usize, depth: usize) -> Self {
        Self {
            width,
            height,
            depth,
            kind: ArrayKind::Regular,
        }
    }

    /// Creates a layered one-dimensional shape.
    #[must_use]
    pub const fn layered_1d(width: usize, layers: usize) -> Self {
        Self {
            width,
            height: 0,
            depth: layers,
            kind: ArrayKind::Layered,
        }
    }

    /// Creates a layered two-dimensional shape.
    #[must_use]
    pub const fn layered_2d(width: usize, height: usize, layers: usize) -> Self {
        Self {
            width,
            height,
            depth: layers,
            kind: ArrayKind::Layered,
        }
    }

    /// Creates a cubemap of six faces.
    #[must_use]
    pub const fn cubemap(width: usize) -> Self {
        Self {
            width,
            height: width,
            depth: 6,
            kind: ArrayKind::Cubemap,
        }
    }

    /// Creates a layered cubemap.
    #[must_use]
    pub const fn layered_cubemap(width: usize, cubemaps: usize) -> Self {
        Self {
            width,
            height: width,
            depth: cubemaps.saturating_mul(6),
            kind: ArrayKind::LayeredCubemap,
        }
    }

    /// Returns the number of elements per row.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Returns `true` for one-dimensional shapes, layered or not.
    pub(crate) const fn is_line(&self) -> bool {
        self.height == 0
    }

    /// Returns the number of rows per layer: 1 for one-dimensional arrays.
    #[must_use]
    pub const fn rows(&self) -> usize {
        if self.is_line() { 1 } else { self.height }
    }

    /// Returns the number of layers: 1 for one- and two-dimensional arrays.
    #[must_use]
    pub const fn layers(&self) -> usize {
        match self.kind {
            ArrayKind::Regular if self.depth == 0 => 1,
            _ => self.depth,
        }
    }

    /// Returns the number of dimensions, without that of layers: 1, 2 or 3.
    #[must_use]
    pub const fn dimensions(&self) -> u32 {
        match self.kind {
            _ if self.is_line() => 1,
            ArrayKind::Regular if self.depth > 0 => 3,
            _ => 2,
        }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> ArrayKind {
        self.kind
    }

    /// Returns the number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.width
            .saturating_mul(self.rows())
            .saturating_mul(self.layers())
    }

    /// Returns `true` if the shape is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        let has_gap = self.kind == ArrayKind::Regular && self.depth != 0 && self.height == 0;
        let is_hollow = self.kind != ArrayKind::Regular && self.depth == 0;
        if self.width == 0 || has_gap || is_hollow {
            return Err(Error::argument(operation, format!("empty shape ({self})")));
        }
        let bytes = self
            .width
            .checked_mul(self.rows())
            .and_then(|plane| plane.checked_mul(self.layers()));
        if bytes
            .and_then(|elements| elements.checked_mul(16))
            .is_none_or(|bytes| isize::try_from(bytes).is_err())
        {
            return Err(Error::argument(
                operation,
                format!("size overflow ({self})"),
            ));
        }
        Ok(())
    }

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

    /// Converts a raw CUDA descriptor.
    pub(super) fn from_raw(raw: &CUDA_ARRAY3D_DESCRIPTOR) -> (Self, ArrayFlags, ArrayFormat) {
        let layered = sys::CUDA_ARRAY3D_LAYERED;
        let cube = sys::CUDA_ARRAY3D_CUBEMAP;
        let kind = match (raw.Flags & cube != 0, raw.Flags & layered != 0) {
            (false, false) => ArrayKind::Regular,
            (false, true) => ArrayKind::Layered,
            (true, false) => ArrayKind::Cubemap,
            (true, true) => ArrayKind::LayeredCubemap,
        };
        let shape = Self {
            width: raw.Width,
            height: raw.Height,
            depth: raw.Depth,
            kind,
        };
        let flags = ArrayFlags::from_bits_retain(raw.Flags & !(layered | cube));
        (
            shape,
            flags,
            ArrayFormat {
                component: raw.Format,
                channels: raw.NumChannels,
            },
        )
    }

    /// Returns the shape of a mipmap level: each extent is halved `level` times, and the number of
    /// layers stays the same.
    pub(super) fn level(self, level: u32) -> Self {
        let depth = if self.kind == ArrayKind::Regular {
            halve(self.depth, level)
        } else {
            self.depth
        };
        Self {
            width: halve(self.width, level),
            height: halve(self.height, level),
            depth,
            ..self
        }
    }

    /// Returns the maximum number of mipmap levels.
    pub(super) fn max_levels(self) -> u32 {
        let depth = if self.kind == ArrayKind::Regular {
            self.depth
        } else {
            1
        };
        usize::BITS - self.width.max(self.height).max(depth).leading_zeros()
    }
}

impl fmt::Display for ArrayShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            width,
            height,
            depth,
            kind,
        } = self;
        match (kind, height, depth) {
            (ArrayKind::Regular, 0, 0) => write!(formatter, "1D array of {width}"),
            (ArrayKind::Regular, _, 0) => write!(formatter, "2D array of {width} × {height}"),
            (ArrayKind::Regular, ..) => {
                write!(formatter, "3D array of {width} × {height} × {depth}")
            }
            (ArrayKind::Layered, 0, _) => {
                write!(formatter, "layered 1D array of {width}, {depth} layers")
            }
            (ArrayKind::Layered, ..) => write!(
                formatter,
                "layered 2D array of {width} × {height}, {depth} layers"
            ),
            (ArrayKind::Cubemap, ..) => write!(formatter, "cubemap of {width}"),
            (ArrayKind::LayeredCubemap, ..) => write!(
                formatter,
                "layered cubemap of {width}, {} cubemaps",
                depth / 6
            ),
        }
    }
}

/// Halves an extent `times` times; an extent that is not 0 stays at least 1.
fn halve(extent: usize, times: u32) -> usize {
    if extent == 0 {
        0
    } else {
        extent.checked_shr(times).unwrap_or(0).max(1)
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
            assert_eq!(
                (shape.len(), shape.rows(), shape.layers()),
                (len, rows, layers),
                "{shape}"
            );
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
        ArrayShape::new_2d(usize::MAX, 2)
            .check("test")
            .expect_err("the shape is too large");
    }

    #[test]
    fn levels_are_halved_until_one_element_is_left() {
        let volume = ArrayShape::new_3d(8, 5, 1);
        assert_eq!(volume.max_levels(), 4);
        assert_eq!(volume.level(1), ArrayShape::new_3d(4, 2, 1));
        assert_eq!(volume.level(3), ArrayShape::new_3d(1, 1, 1));
        assert_eq!(
            ArrayShape::layered_2d(8, 8, 5).level(2),
            ArrayShape::layered_2d(2, 2, 5)
        );
    }
}
