//! Texture options.

use bitflags::bitflags;
use curium_driver::sys::{self, CUDA_TEXTURE_DESC, CUaddress_mode, CUfilter_mode};

use crate::ArrayShape;

/// Texture options.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TextureOptions {
    /// The address mode of each dimension. One-dimensional textures use the first only.
    pub address_modes: [AddressMode; 3],
    /// The filter mode.
    pub filter: FilterMode,
    /// Further flags.
    pub flags: TextureFlags,
    /// The maximum anisotropy: 0 or 1 disables it, and the limit is 16.
    pub max_anisotropy: u32,
    /// The filter mode between mipmap levels.
    pub mipmap_filter: FilterMode,
    /// The mipmap level bias.
    pub mipmap_level_bias: f32,
    /// The minimum mipmap level.
    pub min_mipmap_level: f32,
    /// The maximum mipmap level.
    pub max_mipmap_level: f32,
    /// The border color for [`AddressMode::Border`].
    pub border_color: [f32; 4],
}

/// The treatment of out-of-range coordinates (`CUaddress_mode`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AddressMode {
    /// Repeats the texture. Requires normalized coordinates.
    Wrap,
    /// Clamps to the nearest element.
    #[default]
    Clamp,
    /// Repeats the texture mirrored. Requires normalized coordinates.
    Mirror,
    /// Returns the border color.
    Border,
}

/// The filter mode.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FilterMode {
    /// Returns the nearest element.
    #[default]
    Point,
    /// Interpolates linearly. Requires floating-point results.
    Linear,
}

bitflags! {
    /// Flags of a texture (`CU_TRSF_…`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct TextureFlags: u32 {
        /// Integers are returned as integers, instead of being converted to [0, 1] or [-1, 1].
        const READ_AS_INTEGER = sys::CU_TRSF_READ_AS_INTEGER;
        /// Coordinates are normalized to [0, 1).
        const NORMALIZED_COORDINATES = sys::CU_TRSF_NORMALIZED_COORDINATES;
        /// Elements are sRGB colors, which are converted to linear before filtering.
        const SRGB = sys::CU_TRSF_SRGB;
        /// Disables the trilinear filtering optimization.
        const DISABLE_TRILINEAR_OPTIMIZATION = sys::CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
        /// Enables seamless cubemap filtering across the edges of faces.
        const SEAMLESS_CUBEMAP = sys::CU_TRSF_SEAMLESS_CUBEMAP;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

impl FilterMode {
    fn from_raw(raw: CUfilter_mode) -> Self {
        match raw {
            CUfilter_mode::CU_TR_FILTER_MODE_LINEAR => Self::Linear,
            _ => Self::Point,
        }
    }
}

impl TextureOptions {
    /// Returns the default options: point filtering without conversion, and clamped coordinates.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            address_modes: [AddressMode::Clamp; 3],
            filter: FilterMode::Point,
            flags: TextureFlags::READ_AS_INTEGER,
            max_anisotropy: 0,
            mipmap_filter: FilterMode::Point,
            mipmap_level_bias: 0.0,
            min_mipmap_level: 0.0,
            max_mipmap_level: 0.0,
            border_color: [0.0; 4],
        }
    }

    /// Sets the address mode of all dimensions.
    #[must_use]
    pub const fn with_address_mode(mut self, mode: AddressMode) -> Self {
        self.address_modes = [mode; 3];
        self
    }

    /// Sets the filter mode.
    #[must_use]
    pub const fn with_filter(mut self, filter: FilterMode) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: TextureFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the maximum anisotropy.
    #[must_use]
    pub const fn with_max_anisotropy(mut self, anisotropy: u32) -> Self {
        self.max_anisotropy = anisotropy;
        self
    }

    /// Sets the filter mode between mipmap levels and the range of levels.
    #[must_use]
    pub const fn with_mipmaps(mut self, filter: FilterMode, min: f32, max: f32) -> Self {
        self.mipmap_filter = filter;
        self.min_mipmap_level = min;
        self.max_mipmap_level = max;
        self
    }

    /// Sets the mipmap level bias.
    #[must_use]
    pub const fn with_mipmap_level_bias(mut self, bias: f32) -> Self {
        self.mipmap_level_bias = bias;
        self
    }

    /// Sets the border color.
    #[must_use]
    pub const fn with_border_color(mut self, color: [f32; 4]) -> Self {
        self.border_color = color;
        self
    }

    /// Returns the options for an array of this shape. The device reads a one-dimensional array as
    /// a single row, so a border in the second dimension would be blended into every element.
    pub(super) const fn within(mut self, shape: ArrayShape) -> Self {
        if shape.is_line() {
            self.address_modes = [
                self.address_modes[0],
                AddressMode::Clamp,
                AddressMode::Clamp,
            ];
        }
        self
    }

    pub(super) fn to_raw(self) -> CUDA_TEXTURE_DESC {
        CUDA_TEXTURE_DESC {
            addressMode: self.address_modes.map(|mode| CUaddress_mode(mode as u32)),
            filterMode: CUfilter_mode(self.filter as u32),
            flags: self.flags.bits(),
            maxAnisotropy: self.max_anisotropy,
            mipmapFilterMode: CUfilter_mode(self.mipmap_filter as u32),
            mipmapLevelBias: self.mipmap_level_bias,
            minMipmapLevelClamp: self.min_mipmap_level,
            maxMipmapLevelClamp: self.max_mipmap_level,
            borderColor: self.border_color,
            ..CUDA_TEXTURE_DESC::default()
        }
    }

    pub(super) fn from_raw(raw: &CUDA_TEXTURE_DESC) -> Self {
        Self {
            address_modes: raw.addressMode.map(AddressMode::from_raw),
            filter: FilterMode::from_raw(raw.filterMode),
            flags: TextureFlags::from_bits_retain(raw.flags),
            max_anisotropy: raw.maxAnisotropy,
            mipmap_filter: FilterMode::from_raw(raw.mipmapFilterMode),
            mipmap_level_bias: raw.mipmapLevelBias,
            min_mipmap_level: raw.minMipmapLevelClamp,
            max_mipmap_level: raw.maxMipmapLevelClamp,
            border_color: raw.borderColor,
        }
    }
}

impl AddressMode {
    fn from_raw(raw: CUaddress_mode) -> Self {
        match raw {
            CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP => Self::Wrap,
            CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR => Self::Mirror,
            CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER => Self::Border,
            _ => Self::Clamp,
        }
    }
}

impl Default for TextureOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_conversion_to_c_and_back() {
        for mode in [
            AddressMode::Wrap,
            AddressMode::Clamp,
            AddressMode::Mirror,
            AddressMode::Border,
        ] {
            let options = TextureOptions::new()
                .with_address_mode(mode)
                .with_filter(FilterMode::Linear)
                .with_flags(TextureFlags::NORMALIZED_COORDINATES)
                .with_mipmaps(FilterMode::Linear, 1.0, 3.0)
                .with_mipmap_level_bias(0.5)
                .with_max_anisotropy(8)
                .with_border_color([1.0, 2.0, 3.0, 4.0]);
            assert_eq!(TextureOptions::from_raw(&options.to_raw()), options);
        }
    }
}
