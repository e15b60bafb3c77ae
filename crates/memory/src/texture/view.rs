//! Resource views of textures.

use std::ops::{Range, RangeInclusive};

use curium_driver::sys::{CUDA_RESOURCE_VIEW_DESC, CUresourceViewFormat};
use curium_driver::{Error, Result};

/// A resource view: the part of an array that a texture reads, and the format of its elements.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TextureView {
    /// The format; `CU_RES_VIEW_FORMAT_NONE` selects that of the array.
    pub format: CUresourceViewFormat,
    /// The width, height and depth in elements of that format.
    pub extent: [usize; 3],
    /// The mipmap levels.
    pub levels: Range<u32>,
    /// The layers.
    pub layers: Range<u32>,
}

impl TextureView {
    /// Creates a view of level 0 and layer 0 with this format and extent.
    #[must_use]
    pub const fn new(format: CUresourceViewFormat, extent: [usize; 3]) -> Self {
        Self {
            format,
            extent,
            levels: 0..1,
            layers: 0..1,
        }
    }

    /// Sets the mipmap levels.
    #[must_use]
    pub const fn with_levels(mut self, levels: Range<u32>) -> Self {
        self.levels = levels;
        self
    }

    /// Sets the layers.
    #[must_use]
    pub const fn with_layers(mut self, layers: Range<u32>) -> Self {
        self.layers = layers;
        self
    }

    pub(super) fn to_raw(&self) -> Result<CUDA_RESOURCE_VIEW_DESC> {
        let [width, height, depth] = self.extent;
        let levels = inclusive("levels", &self.levels)?;
        let layers = inclusive("layers", &self.layers)?;
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

/// Converts the range to an inclusive one, as the driver requires, which cannot express an empty
/// range.
fn inclusive(what: &str, range: &Range<u32>) -> Result<RangeInclusive<u32>> {
    if range.is_empty() {
        return Err(Error::argument(
            "TextureView",
            format!("empty range of {what} ({range:?})"),
        ));
    }
    Ok(range.start..=range.end - 1)
}
