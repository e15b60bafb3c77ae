//! The formats of arrays and textures.

use curium_sys::CUarray_format;

/// The layout that a compressed or normalized format determines.
pub(crate) struct FixedLayout {
    pub(crate) channels: u32,
    /// The bytes of an element, or of a block of a compressed format.
    pub(crate) bytes: usize,
}

/// Returns the bytes of one channel, for the formats of one, two or four channels.
pub(crate) fn channel_size(format: CUarray_format) -> Option<usize> {
    match format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 | CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => {
            Some(1)
        }
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_HALF => Some(2),
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_FLOAT => Some(4),
        _ => None,
    }
}

/// Returns the layout of a format that determines its channels.
pub(crate) fn fixed_layout(format: CUarray_format) -> Option<FixedLayout> {
    let (channels, bytes) = match format {
        CUarray_format::CU_AD_FORMAT_UNORM_INT8X1 | CUarray_format::CU_AD_FORMAT_SNORM_INT8X1 => {
            (1, 1)
        }
        CUarray_format::CU_AD_FORMAT_UNORM_INT8X2 | CUarray_format::CU_AD_FORMAT_SNORM_INT8X2 => {
            (2, 2)
        }
        CUarray_format::CU_AD_FORMAT_UNORM_INT8X4 | CUarray_format::CU_AD_FORMAT_SNORM_INT8X4 => {
            (4, 4)
        }
        CUarray_format::CU_AD_FORMAT_UNORM_INT16X1 | CUarray_format::CU_AD_FORMAT_SNORM_INT16X1 => {
            (1, 2)
        }
        CUarray_format::CU_AD_FORMAT_UNORM_INT16X2 | CUarray_format::CU_AD_FORMAT_SNORM_INT16X2 => {
            (2, 4)
        }
        CUarray_format::CU_AD_FORMAT_UNORM_INT16X4 | CUarray_format::CU_AD_FORMAT_SNORM_INT16X4 => {
            (4, 8)
        }
        CUarray_format::CU_AD_FORMAT_BC1_UNORM | CUarray_format::CU_AD_FORMAT_BC1_UNORM_SRGB => {
            (4, 8)
        }
        CUarray_format::CU_AD_FORMAT_BC2_UNORM
        | CUarray_format::CU_AD_FORMAT_BC2_UNORM_SRGB
        | CUarray_format::CU_AD_FORMAT_BC3_UNORM
        | CUarray_format::CU_AD_FORMAT_BC3_UNORM_SRGB
        | CUarray_format::CU_AD_FORMAT_BC7_UNORM
        | CUarray_format::CU_AD_FORMAT_BC7_UNORM_SRGB => (4, 16),
        CUarray_format::CU_AD_FORMAT_BC4_UNORM | CUarray_format::CU_AD_FORMAT_BC4_SNORM => (1, 8),
        CUarray_format::CU_AD_FORMAT_BC5_UNORM | CUarray_format::CU_AD_FORMAT_BC5_SNORM => (2, 16),
        CUarray_format::CU_AD_FORMAT_BC6H_UF16 | CUarray_format::CU_AD_FORMAT_BC6H_SF16 => (3, 16),
        _ => return None,
    };
    Some(FixedLayout { channels, bytes })
}

/// Returns `false` for a number of channels that the format does not have, and for numbers that are
/// no format.
pub(crate) fn has_channels(format: CUarray_format, channels: u32) -> bool {
    /// All formats are below it.
    const END: u32 = 0x100;
    match fixed_layout(format) {
        Some(layout) => layout.channels == channels,
        None if channel_size(format).is_some() => matches!(channels, 1 | 2 | 4),
        // The planes of a video format have channels of their own.
        None => (1..END).contains(&format.0),
    }
}
