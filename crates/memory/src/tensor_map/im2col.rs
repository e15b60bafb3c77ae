//! What a copy takes of images.

use curium_driver::sys::CUtensorMapIm2ColWideMode;

/// Columns of pixels: which pixels of the images of a tensor of channels, widths, heights, depths and images are taken.
///
/// The corners are offsets from the first and from the last pixel, the width's first: one for tensors of rank 3, from -32768 to 32767, two
/// for rank 4, from -128 to 127, and three for rank 5, from -16 to 15. There are 1 to 256 channels in a pixel and 1 to 1024 pixels in a
/// column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Im2col<'a> {
    /// Where the box of base pixels begins, from the first pixel on.
    pub lower: &'a [i32],
    /// Where it ends, from the last pixel on.
    pub upper: &'a [i32],
    /// How many channels of each pixel are taken.
    pub channels_per_pixel: u32,
    /// How many pixels are taken.
    pub pixels_per_column: u32,
}

/// Columns of pixels along the width: as [`Im2col`], with one offset from the first and one from the last pixel of a row, each from -32768
/// to 32767.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Im2colWide {
    /// Where the box of base pixels begins, from the first pixel of a row on.
    pub lower: i32,
    /// Where it ends, from the last pixel of a row on.
    pub upper: i32,
    /// How many channels of each pixel are taken.
    pub channels_per_pixel: u32,
    /// How many pixels are taken.
    pub pixels_per_column: u32,
    /// How many of them lie along the width.
    pub mode: Im2colWideMode,
}

/// How many pixels of a column lie along the width.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Im2colWideMode {
    /// As many as the column has.
    #[default]
    Column,
    /// 128.
    Pixels128,
}

impl Im2colWideMode {
    #[inline]
    pub(super) const fn to_raw(self) -> CUtensorMapIm2ColWideMode {
        match self {
            Self::Column => CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
            Self::Pixels128 => CUtensorMapIm2ColWideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
        }
    }
}
