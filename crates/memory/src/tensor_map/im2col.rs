//! Parameters of im2col tensor maps.

use curium_driver::sys::CUtensorMapIm2ColWideMode;

/// An im2col column: the pixels of a tensor (channels, width, height, depth, images) that one copy
/// transfers.
///
/// The corners are offsets from the first and from the last pixel, width first. Tensors of rank 3
/// have one offset from -32768 to 32767, rank 4 two from -128 to 127, and rank 5 three from -16 to 15.
/// A copy transfers 1 to 256 channels per pixel and 1 to 1024 pixels per column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Im2col<'a> {
    /// The lower corner of the bounding box, relative to the first pixel.
    pub lower: &'a [i32],
    /// The upper corner of the bounding box, relative to the last pixel.
    pub upper: &'a [i32],
    /// The number of channels per pixel.
    pub channels_per_pixel: u32,
    /// The number of pixels per column.
    pub pixels_per_column: u32,
}

/// An im2col column along the width. It differs from [`Im2col`] in having one offset from the first
/// and one from the last pixel of a row, each from -32768 to 32767.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Im2colWide {
    /// The lower corner of the bounding box, relative to the first pixel of a row.
    pub lower: i32,
    /// The upper corner of the bounding box, relative to the last pixel of a row.
    pub upper: i32,
    /// The number of channels per pixel.
    pub channels_per_pixel: u32,
    /// The number of pixels per column.
    pub pixels_per_column: u32,
    /// The distribution of a column's pixels along the width.
    pub mode: Im2colWideMode,
}

/// The number of pixels of a column along the width.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Im2colWideMode {
    /// All pixels of the column.
    #[default]
    Column,
    /// 128 pixels.
    Pixels128,
}

impl Im2colWideMode {
    pub(super) const fn to_raw(self) -> CUtensorMapIm2ColWideMode {
        match self {
            Self::Column => CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
            Self::Pixels128 => CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
        }
    }
}
