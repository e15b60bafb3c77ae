//! What part of an array a texture is of, and as what it is seen.

use std::ops::{Range, RangeInclusive};

use curium_driver::sys::{CUDA_RESOURCE_VIEW_DESC, CUresourceViewFormat};
use curium_driver::{Error, Result};

/// What part of an array a texture is of, and as what its elements are seen.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TextureView {
    /// The format, as C names it; that of the array if it is `CU_RES_VIEW_FORMAT_NONE`.
    pub format: CUresourceViewFormat,
    /// The elements of a row, the rows, the depth, in that format.
    pub extent: [usize; 3],
    /// The levels of a mipmapped array.
    pub levels: Range<u32>,
    /// The layers of a layered array.
    pub layers: Range<u32>,
}

impl TextureView {
    /// Level 0 and layer 0, seen as `format`, of so many elements of a row, rows and depth.
    #[must_use]
    #[inline]
    pub const fn new(format: CUresourceViewFormat, extent: [usize; 3]) -> Self {
        Self { format, extent, levels: 0..1, layers: 0..1 }
    }

    /// Of these levels.
    #[must_use]
    #[inline]
    pub const fn with_levels(mut self, levels: Range<u32>) -> Self {
        self.levels = levels;
        self
    }

    /// Of these layers.
    #[must_use]
    #[inline]
    pub const fn with_layers(mut self, layers: Range<u32>) -> Self {
        self.layers = layers;
        self
    }

    #[inline]
    pub(super) fn to_raw(&self) -> Result<CUDA_RESOURCE_VIEW_DESC> {
        let [width, height, depth] = self.extent;
        let (levels, layers) = (inclusive("levels", &self.levels)?, inclusive("layers", &self.layers)?);
        Ok(CUDA_RESOURCE_VIEW_DESC {
            format: self.format,
            width,
            height,
            depth,
            firstMipmapLevel: *levels.start(),
            lastMipmapLevel: *levels.end(),
            firstLayer: *layers.start(),
            lastLayer: *layers.end(),
            ..CUDA_RESOURCE_VIEW_DESC::default()
        })
    }
}

/// The range with its last number counted in, as C has it, which cannot say that there is none.
#[inline]
fn inclusive(what: &str, range: &Range<u32>) -> Result<RangeInclusive<u32>> {
    if range.is_empty() {
        return Err(Error::argument("TextureView", format!("empty range of {what} ({range:?})")));
    }
    Ok(range.start..=range.end - 1)
}
