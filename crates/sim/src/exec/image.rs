//! Images: what textures and surfaces look at, as kernels see it.

mod axis;
mod cube;
mod element;
mod sample;
mod surface;
mod tiles;
mod together;

pub(crate) use self::element::{Channel, Element};
pub(crate) use self::element::{Channels, Texel};
pub(crate) use self::sample::{Point, Query};
pub(crate) use self::surface::Beyond;
pub(crate) use self::tiles::Tiles;
use std::sync::Arc;

use super::report::Trap;

/// A texture object: images, and how they are read.
#[derive(Clone, Debug)]
pub(crate) struct Texture {
    /// The levels, the largest first; at least one.
    pub(crate) levels: Vec<Image>,
    /// What an element is.
    pub(crate) element: Element,
    /// What is beyond the edges, in each direction.
    pub(crate) address_modes: [AddressMode; 3],
    /// `true` if the nearest elements are blended.
    pub(crate) is_linear: bool,
    /// `true` if the nearest levels are blended.
    pub(crate) is_linear_in_levels: bool,
    /// `true` if coordinates go from 0 to 1 instead of to the size.
    pub(crate) has_normalized_coordinates: bool,
    /// `true` if small integers are read as they are and not as fractions.
    pub(crate) reads_integers: bool,
    /// `true` if bytes hold colors in sRGB.
    pub(crate) is_srgb: bool,
    /// `true` if the image is plain memory, which is read by whole numbers and is zero beyond its end.
    pub(crate) is_buffer: bool,
    /// What is added to the level asked for.
    pub(crate) level_bias: f32,
    /// The least and the greatest level that is read.
    pub(crate) level_range: [f32; 2],
    /// What is beyond the edges with [`AddressMode::Border`].
    pub(crate) border: [f32; 4],
    /// The tiles of the levels, if they are sparse.
    pub(crate) tiles: Vec<Arc<Tiles>>,
}

/// A surface object: an image that is read and written byte by byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surface {
    /// The image.
    pub(crate) image: Image,
    /// What an element is.
    pub(crate) element: Element,
}

/// Elements in rows and layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image {
    /// The device address of the first element.
    pub(crate) base: u64,
    /// Elements of a row.
    pub(crate) width: u32,
    /// Rows of a layer; at least 1.
    pub(crate) height: u32,
    /// Layers, or the extent in the third direction; at least 1.
    pub(crate) depth: u32,
    /// Bytes from one row to the next.
    pub(crate) pitch: u64,
}

/// What is beyond the edges of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressMode {
    /// The image again.
    Wrap,
    /// The element at the edge.
    Clamp,
    /// The image again, turned around.
    Mirror,
    /// The border's color.
    Border,
}

/// How the coordinates of an access are to be understood.
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

/// Reads so many bytes of device memory, eight at most, at an address.
pub(crate) trait Read: FnMut(u64, u64) -> Result<u64, Trap> {}

impl<F: FnMut(u64, u64) -> Result<u64, Trap>> Read for F {}

/// A texture instruction, with the rows of its operands.
#[derive(Clone, Debug)]
pub(crate) struct TextureAccess {
    pub(crate) spot: Coordinates,
    pub(crate) destinations: Vec<u32>,
    pub(crate) result: Channels,
    pub(crate) places: Places,
    pub(crate) detail: Detail,
    /// Elements that are added to the coordinates.
    pub(crate) offset: Option<Offset>,
    /// The row of the number of a sample.
    pub(crate) sample: Option<u32>,
    /// The predicate that tells whether the elements that are read have memory.
    pub(crate) resident: Option<u32>,
}

/// Elements that an instruction adds to its coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    /// The rows of the steps in each direction.
    pub(crate) steps: [u32; 3],
    /// The bits of a step that hardware looks at.
    pub(crate) bits: u32,
}

impl Offset {
    /// Returns a step as hardware takes it.
    #[inline]
    pub(crate) fn step(self, value: u32) -> i32 {
        let unused = u32::BITS - self.bits;
        (value << unused).cast_signed() >> unused
    }
}

/// What the coordinates of a texture instruction are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// Places in an image, which may be between elements.
    Between,
    /// Elements, with zeroes beyond the edges.
    Elements,
    /// Elements, with the nearest ones beyond the edges.
    NearestElements,
    /// Nothing that hardware reads.
    Nowhere,
}

/// What becomes of what is there and of an operand.
pub(crate) type Change = fn(u64, u64) -> u64;

/// A surface instruction, with the rows of its operands.
#[derive(Clone, Debug)]
pub(crate) struct SurfaceAccess {
    pub(crate) spot: Coordinates,
    /// The rows of what is read or written; in the 64-bit file if a part has eight bytes.
    pub(crate) registers: Vec<u32>,
    /// The bytes of each part.
    pub(crate) bytes: u64,
    /// `true` if the first coordinate counts elements, and what is written becomes what they are.
    pub(crate) formatted: bool,
    pub(crate) beyond: Beyond,
    /// How a reduction changes what is there, without a sign and with one; these differ if the format of the surface tells.
    pub(crate) change: Option<[Change; 2]>,
}

/// The rows of coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coordinates {
    pub(crate) geometry: Geometry,
    pub(crate) layer: u32,
    pub(crate) at: [u32; 3],
}

/// What a texture instruction says of the level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// Nothing: it is the first.
    Base,
    /// A level, in a row of the coordinates' type.
    Level(u32),
    /// The steps from one element to the next in both directions.
    Gradient([[u32; 3]; 2]),
    /// Nothing, and one channel of four elements is read.
    Gather(usize),
}

impl Texture {
    /// Returns `true` if there is memory behind an address in one of the images.
    #[inline]
    pub(crate) fn has_memory(&self, address: u64) -> bool {
        self.tiles.iter().all(|tiles| tiles.has_memory(address))
    }
}

impl Geometry {
    /// Returns the coordinates besides the layer.
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
        matches!(self, Self::LineOfLayer | Self::PlaneOfLayer | Self::CubeOfLayer)
    }
}

impl Image {
    /// Returns the size in a direction.
    #[inline]
    fn extent(&self, direction: usize) -> u32 {
        [self.width, self.height, self.depth][direction]
    }

    /// Returns the address of an element, which must be inside.
    #[inline]
    fn address(&self, element: u64, at: [u32; 3]) -> u64 {
        let row = u64::from(at[2]) * u64::from(self.height) + u64::from(at[1]);
        self.base + row * self.pitch + u64::from(at[0]) * element
    }
}
