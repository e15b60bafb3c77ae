//! Images of textures and surfaces, as kernels access them.

mod axis;
mod cube;
mod element;
mod sample;
mod surface;
mod tiles;
mod warp;

pub use crate::exec::image::element::{Channel, Element};
pub(crate) use crate::exec::image::element::{Channels, Texel};
pub(crate) use crate::exec::image::sample::{Point, Query};
pub(crate) use crate::exec::image::surface::OutOfBounds;
pub use crate::exec::image::tiles::Tiles;
use std::sync::Arc;

use crate::exec::check::report::Trap;

/// A texture object: images and the sampling parameters.
#[derive(Clone, Debug)]
pub struct Texture {
    /// The levels, the largest first; at least one.
    pub levels: Vec<Image>,
    /// The format of an element.
    pub element: Element,
    /// The addressing mode in each direction.
    pub address_modes: [AddressMode; 3],
    /// `true` for linear filtering between elements.
    pub is_linear: bool,
    /// `true` for linear filtering between mipmap levels.
    pub is_linear_in_levels: bool,
    /// `true` if coordinates are normalized: from 0 to 1.
    pub has_normalized_coordinates: bool,
    /// `true` if integers are read as integers and not as fractions.
    pub reads_integers: bool,
    /// `true` if 8-bit channels hold sRGB colors.
    pub is_srgb: bool,
    /// `true` if the image is linear memory, which is read by integer coordinates and is zero
    /// beyond its end.
    pub is_buffer: bool,
    /// The bias of the mipmap level.
    pub level_bias: f32,
    /// The lowest and the highest mipmap level.
    pub level_range: [f32; 2],
    /// The border color of [`AddressMode::Border`].
    pub border: [f32; 4],
    /// The tiles of the levels of a sparse image.
    pub tiles: Vec<Arc<Tiles>>,
}

/// A surface object: an image with byte-wise reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// The image.
    pub image: Image,
    /// The format of an element.
    pub element: Element,
}

/// Elements in rows and layers.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// The device address of the first element.
    pub base: u64,
    /// The number of elements of a row.
    pub width: u32,
    /// The number of rows of a layer; at least 1.
    pub height: u32,
    /// The number of layers, or the extent in the third direction; at least 1.
    pub depth: u32,
    /// Bytes from one row to the next.
    pub pitch: u64,
}

/// The addressing mode of a texture beyond its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMode {
    /// The image repeats.
    Wrap,
    /// The element at the edge.
    Clamp,
    /// The image repeats, mirrored.
    Mirror,
    /// The border color.
    Border,
}

/// The meaning of the coordinates of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Geometry {
    Line,
    Plane,
    Volume,
    LineOfLayer,
    PlaneOfLayer,
    Cube,
    CubeOfLayer,
}

/// Reads at most eight bytes of device memory at an address.
pub(crate) trait Read: FnMut(u64, u64) -> Result<u64, Trap> {}

impl<F: FnMut(u64, u64) -> Result<u64, Trap>> Read for F {}

/// A texture instruction, with the rows of its operands.
#[derive(Clone, Debug)]
pub(crate) struct TextureAccess {
    pub(crate) coordinates: Coordinates,
    pub(crate) destinations: Vec<u32>,
    pub(crate) result: Channels,
    pub(crate) mode: CoordinateMode,
    pub(crate) detail: Detail,
    /// Offsets that are added to the coordinates.
    pub(crate) offset: Option<Offset>,
    /// The row of the sample number.
    pub(crate) sample: Option<u32>,
    /// The predicate that is true if the elements have physical memory.
    pub(crate) resident: Option<u32>,
}

/// Offsets, in elements, that an instruction adds to its coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    /// The rows of the offsets in each direction.
    pub(crate) steps: [u32; 3],
    /// The number of bits of an offset that hardware uses.
    pub(crate) bits: u32,
}

impl Offset {
    /// Returns an offset as hardware decodes it.
    #[inline]
    pub(crate) fn step(self, value: u32) -> i32 {
        let unused = u32::BITS - self.bits;
        (value << unused).cast_signed() >> unused
    }
}

/// The meaning of the coordinates of a texture instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoordinateMode {
    /// Positions in an image, which may be between elements.
    Positions,
    /// Elements, with zeros beyond the edges.
    Elements,
    /// Elements, with the nearest ones beyond the edges.
    NearestElements,
    /// The coordinates are ignored.
    Ignored,
}

/// Combines the value in memory and an operand.
pub(crate) type Change = fn(u64, u64) -> u64;

/// A surface instruction, with the rows of its operands.
#[derive(Clone, Debug)]
pub(crate) struct SurfaceAccess {
    pub(crate) coordinates: Coordinates,
    /// The rows of the data, in the 64-bit file if an element has eight bytes.
    pub(crate) registers: Vec<u32>,
    /// The number of bytes of each element.
    pub(crate) bytes: u64,
    /// `true` if the first coordinate counts elements, and written values are converted to the
    /// format of the surface.
    pub(crate) formatted: bool,
    pub(crate) out_of_bounds: OutOfBounds,
    /// The operation of a reduction on unsigned and on signed values. They differ if the surface's
    /// format determines the signedness.
    pub(crate) change: Option<[Change; 2]>,
}

/// The rows of the coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coordinates {
    pub(crate) geometry: Geometry,
    pub(crate) layer: u32,
    pub(crate) axes: [u32; 3],
}

/// The level of detail of a texture instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// The first level.
    Base,
    /// An explicit level, in a row of the coordinates' type.
    Level(u32),
    /// The gradients of the coordinates in both directions.
    Gradient([[u32; 3]; 2]),
    /// One channel of four elements of the first level.
    Gather(usize),
}

impl Texture {
    /// Returns `true` if an address has physical memory in one of the images.
    #[inline]
    pub(crate) fn has_memory(&self, address: u64) -> bool {
        self.tiles.iter().all(|tiles| tiles.has_memory(address))
    }
}

impl Geometry {
    /// Returns the number of coordinates, without the layer.
    #[inline]
    pub(crate) fn dimensions(self) -> usize {
        match self {
            Self::Line | Self::LineOfLayer => 1,
            Self::Plane | Self::PlaneOfLayer => 2,
            Self::Volume | Self::Cube | Self::CubeOfLayer => 3,
        }
    }

    #[inline]
    pub(crate) fn is_cube(self) -> bool {
        matches!(self, Self::Cube | Self::CubeOfLayer)
    }

    #[inline]
    pub(crate) fn has_layers(self) -> bool {
        matches!(
            self,
            Self::LineOfLayer | Self::PlaneOfLayer | Self::CubeOfLayer
        )
    }
}

impl Image {
    /// Returns the size in a direction.
    #[inline]
    fn extent(&self, direction: usize) -> u32 {
        [self.width, self.height, self.depth][direction]
    }

    /// Returns the address of an element, which must be in bounds.
    #[inline]
    fn address(&self, element_bytes: u64, coordinates: [u32; 3]) -> u64 {
        let [column, row, layer] = coordinates.map(u64::from);
        let row = layer * u64::from(self.height) + row;
        self.base + row * self.pitch + column * element_bytes
    }
}
