//! Checks of tensor layouts before the driver call, which would report only an invalid value.

use curium_driver::{Error, Result};

use super::layout::MAX_RANK;
use super::{
    Im2col, Im2colWide, TensorDataType, TensorFill, TensorInterleave, TensorLayout, TensorSwizzle,
};

/// The maximum number of elements per dimension.
const MAX_EXTENT: u64 = 1 << 32;
/// The exclusive upper bound of strides.
const STRIDE_LIMIT: u64 = 1 << 40;
const MAX_BOX: u32 = 256;
const MAX_STEP: u32 = 8;
const MAX_PIXELS: u32 = 1024;
/// The number of elements of a padded type that are fetched together.
const PADDED_GROUP: u64 = 128;

type Operation = &'static str;

/// Checks the requirements of all maps of a tensor with at least `least` dimensions.
pub(super) fn layout(operation: Operation, layout: &TensorLayout, least: u32) -> Result<()> {
    let rank = layout.rank();
    let least = if layout.interleave == TensorInterleave::None {
        least
    } else {
        3
    };
    require(operation, (least..=MAX_RANK as u32).contains(&rank), || {
        format!("unsupported rank ({rank}, allowed: {least} to {MAX_RANK})")
    })?;
    for (given, wanted, what) in [
        (layout.given[0], rank as usize - 1, "strides"),
        (layout.given[1], rank as usize, "element strides"),
    ] {
        require(operation, given.is_none_or(|len| len == wanted), || {
            format!(
                "wrong number of {what} ({} for rank {rank}, expected {wanted})",
                given.unwrap_or_default()
            )
        })?;
    }
    let alignment = alignment(layout);
    address(operation, layout.address, alignment)?;
    extents(operation, layout)?;
    for stride in layout.strides() {
        require(
            operation,
            stride.is_multiple_of(alignment) && (1..STRIDE_LIMIT).contains(stride),
            || {
                format!(
                    "invalid stride ({stride} bytes, allowed: multiples of {alignment} below {STRIDE_LIMIT})"
                )
            },
        )?;
    }
    for step in layout.steps() {
        require(operation, (1..=MAX_STEP).contains(step), || {
            format!("invalid element stride ({step}, allowed: 1 to {MAX_STEP})")
        })?;
    }
    combinations(operation, layout)
}

/// Checks the number of elements of a box in each dimension.
pub(super) fn boxed(operation: Operation, layout: &TensorLayout, elements: &[u32]) -> Result<()> {
    let rank = layout.rank();
    require(operation, elements.len() == rank as usize, || {
        format!(
            "wrong number of box dimensions ({} for rank {rank})",
            elements.len()
        )
    })?;
    for count in elements {
        require(operation, (1..=MAX_BOX).contains(count), || {
            format!("invalid box extent ({count} elements, allowed: 1 to {MAX_BOX})")
        })?;
    }
    let width = elements.first().copied().unwrap_or_default();
    let bytes = inner(operation, layout, width)?;
    require(operation, bytes.is_multiple_of(16), || {
        format!(
            "invalid box extent ({bytes} bytes in the innermost dimension is not a multiple of 16)"
        )
    })
}

/// Checks the parameters of im2col columns.
pub(super) fn im2col(
    operation: Operation,
    layout: &TensorLayout,
    pixels: &Im2col<'_>,
) -> Result<()> {
    let rank = layout.rank();
    let count = rank as usize - 2;
    let limit = [1 << 15, 1 << 7, 1 << 4][rank as usize - 3];
    for corner in [pixels.lower, pixels.upper] {
        require(operation, corner.len() == count, || {
            format!(
                "wrong number of corner offsets ({} for rank {rank}, expected {count})",
                corner.len()
            )
        })?;
        corner
            .iter()
            .try_for_each(|offset| offset_within(operation, *offset, limit, rank))?;
    }
    // The pixel dimensions follow the channels, or precede them if the channels are interleaved.
    let first = usize::from(layout.interleave == TensorInterleave::None);
    for (extent, (lower, upper)) in layout.extents()[first..]
        .iter()
        .zip(pixels.lower.iter().zip(pixels.upper))
    {
        not_empty(operation, *extent, *lower, *upper)?;
    }
    columns(
        operation,
        layout,
        pixels.channels_per_pixel,
        pixels.pixels_per_column,
    )
}

/// Checks the parameters of im2col columns along the width.
pub(super) fn im2col_wide(
    operation: Operation,
    layout: &TensorLayout,
    pixels: &Im2colWide,
) -> Result<()> {
    for offset in [pixels.lower, pixels.upper] {
        offset_within(operation, offset, 1 << 15, layout.rank())?;
    }
    not_empty(operation, layout.extents()[1], pixels.lower, pixels.upper)?;
    let is_known = matches!(
        layout.swizzle,
        TensorSwizzle::Bytes64 | TensorSwizzle::Bytes128 | TensorSwizzle::Bytes128Atom32
    );
    require(operation, is_known, || {
        format!(
            "unsupported swizzle ({:?}, allowed: Bytes64, Bytes128, Bytes128Atom32)",
            layout.swizzle
        )
    })?;
    columns(
        operation,
        layout,
        pixels.channels_per_pixel,
        pixels.pixels_per_column,
    )
}

/// Checks the alignment of a tensor's address.
pub(super) fn address(operation: Operation, address: u64, alignment: u64) -> Result<()> {
    require(operation, address.is_multiple_of(alignment), || {
        format!("misaligned address ({address:#x}, alignment {alignment})")
    })
}

fn extents(operation: Operation, layout: &TensorLayout) -> Result<()> {
    for extent in layout.extents() {
        require(operation, (1..=MAX_EXTENT).contains(extent), || {
            format!("invalid extent ({extent} elements, allowed: 1 to {MAX_EXTENT})")
        })?;
    }
    let multiple = match layout.data_type {
        TensorDataType::Packed4Align8 => 2,
        padded if padded.is_padded() => PADDED_GROUP,
        _ => 1,
    };
    let width = layout.extents()[0];
    require(operation, width.is_multiple_of(multiple), || {
        format!(
            "invalid innermost extent ({width} elements of {:?}, not a multiple of {multiple})",
            layout.data_type
        )
    })
}

fn combinations(operation: Operation, layout: &TensorLayout) -> Result<()> {
    let interleave = layout.interleave;
    let swizzle = layout.swizzle;
    let data_type = layout.data_type;
    let is_supported = interleave != TensorInterleave::Bytes32 || swizzle == TensorSwizzle::Bytes32;
    require(operation, is_supported, || {
        format!("unsupported swizzle ({swizzle:?}, an interleave of 32 bytes requires Bytes32)")
    })?;
    let is_supported =
        data_type != TensorDataType::Packed6Align16 || interleave == TensorInterleave::None;
    require(operation, is_supported, || {
        format!("unsupported interleave ({interleave:?} for {data_type:?}, which requires none)")
    })?;
    let takes_padded_types = match swizzle {
        TensorSwizzle::Bytes32 | TensorSwizzle::Bytes128Atom32Flip8 => false,
        // Wide im2col maps use this mode, and every map is encoded in this mode.
        TensorSwizzle::Bytes64 | TensorSwizzle::Bytes128Atom64 => {
            data_type == TensorDataType::Packed6Align16
        }
        TensorSwizzle::None | TensorSwizzle::Bytes128 | TensorSwizzle::Bytes128Atom32 => true,
    };
    require(
        operation,
        !data_type.is_padded() || takes_padded_types,
        || format!("unsupported swizzle ({swizzle:?} for {data_type:?})"),
    )?;
    require(
        operation,
        layout.fill == TensorFill::Zero || data_type.is_float(),
        || format!("unsupported fill (NaN for {data_type:?}, which is not a floating-point type)"),
    )
}

fn columns(operation: Operation, layout: &TensorLayout, channels: u32, pixels: u32) -> Result<()> {
    require(operation, (1..=MAX_BOX).contains(&channels), || {
        format!("invalid number of channels ({channels} per pixel, allowed: 1 to {MAX_BOX})")
    })?;
    require(operation, (1..=MAX_PIXELS).contains(&pixels), || {
        format!("invalid number of pixels ({pixels} per column, allowed: 1 to {MAX_PIXELS})")
    })?;
    let bytes = inner(operation, layout, channels)?;
    require(operation, bytes.is_multiple_of(16), || {
        format!("invalid number of channels ({bytes} bytes per pixel is not a multiple of 16)")
    })
}

/// Returns the size of `elements` in the innermost dimension in bytes, which must fit the swizzle
/// span.
fn inner(operation: Operation, layout: &TensorLayout, elements: u32) -> Result<u64> {
    let elements = u64::from(elements);
    require(
        operation,
        !layout.data_type.is_padded() || elements == PADDED_GROUP,
        || {
            format!(
                "invalid box extent ({elements} elements of {:?}, which are copied in groups of {PADDED_GROUP})",
                layout.data_type
            )
        },
    )?;
    let bytes = elements * layout.data_type.bits() / 8;
    let span = layout
        .swizzle
        .span()
        .filter(|_| layout.interleave == TensorInterleave::None);
    require(operation, span.is_none_or(|span| bytes <= span), || {
        format!(
            "box too wide for the swizzle ({bytes} bytes in the innermost dimension, at most {})",
            span.unwrap_or_default()
        )
    })?;
    Ok(bytes)
}

fn offset_within(operation: Operation, offset: i32, limit: i32, rank: u32) -> Result<()> {
    require(operation, (-limit..limit).contains(&offset), || {
        format!(
            "invalid corner offset ({offset} pixels, allowed for rank {rank}: {} to {})",
            -limit,
            limit - 1
        )
    })
}

/// Checks that the corner offsets leave a non-empty bounding box.
fn not_empty(operation: Operation, extent: u64, lower: i32, upper: i32) -> Result<()> {
    let remaining = i128::from(extent) + i128::from(upper) - i128::from(lower);
    require(operation, remaining > 0, || {
        format!("empty bounding box (offsets {lower} and {upper} of {extent} pixels)")
    })
}

/// Returns the alignment of addresses and strides.
fn alignment(layout: &TensorLayout) -> u64 {
    if layout.interleave == TensorInterleave::Bytes32 || layout.data_type.is_padded() {
        32
    } else {
        16
    }
}

fn require(operation: Operation, holds: bool, reason: impl FnOnce() -> String) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(Error::argument(operation, reason()))
    }
}
