//! What the accelerator cannot do, said before the driver is asked: it answers only that a value is invalid.

use curium_driver::{Error, Result};

use super::layout::MAX_RANK;
use super::{Im2col, Im2colWide, TensorDataType, TensorFill, TensorInterleave, TensorLayout, TensorSwizzle};

/// The most elements of a dimension.
const MAX_EXTENT: u64 = 1 << 32;
/// Strides are below this.
const STRIDE_LIMIT: u64 = 1 << 40;
const MAX_BOX: u32 = 256;
const MAX_STEP: u32 = 8;
const MAX_PIXELS: u32 = 1024;
/// The elements of a padded type that are fetched together.
const PADDED_GROUP: u64 = 128;

type Operation = &'static str;

/// Checks what holds for all maps of a tensor of at least `least` dimensions.
#[inline]
pub(super) fn layout(operation: Operation, layout: &TensorLayout, least: u32) -> Result<()> {
    let rank = layout.rank();
    let least = if layout.interleave == TensorInterleave::None { least } else { 3 };
    require(operation, (least..=MAX_RANK as u32).contains(&rank), || {
        format!("a tensor of {rank} dimensions; there may be {least} to {MAX_RANK}")
    })?;
    for (given, wanted, what) in
        [(layout.given[0], rank as usize - 1, "strides"), (layout.given[1], rank as usize, "steps")]
    {
        require(operation, given.is_none_or(|given| given == wanted), || {
            format!("{} {what} for a tensor of {rank} dimensions, which has {wanted}", given.unwrap_or_default())
        })?;
    }
    let alignment = alignment(layout);
    address(operation, layout.address, alignment)?;
    extents(operation, layout)?;
    for stride in layout.strides() {
        require(operation, stride.is_multiple_of(alignment) && (1..STRIDE_LIMIT).contains(stride), || {
            format!("a stride of {stride} bytes; strides are multiples of {alignment} below {STRIDE_LIMIT}")
        })?;
    }
    for step in layout.steps() {
        require(operation, (1..=MAX_STEP).contains(step), || format!("a step of {step}; steps are 1 to {MAX_STEP}"))?;
    }
    combinations(operation, layout)
}

/// Checks the elements of a box in each dimension.
#[inline]
pub(super) fn boxed(operation: Operation, layout: &TensorLayout, elements: &[u32]) -> Result<()> {
    let rank = layout.rank();
    require(operation, elements.len() == rank as usize, || {
        format!("a box of {} dimensions for a tensor of {rank}", elements.len())
    })?;
    for count in elements {
        require(operation, (1..=MAX_BOX).contains(count), || {
            format!("a box of {count} elements in a dimension; there may be 1 to {MAX_BOX}")
        })?;
    }
    let width = elements.first().copied().unwrap_or_default();
    let bytes = inner(operation, layout, width)?;
    require(operation, bytes.is_multiple_of(16), || {
        format!("a box of {bytes} bytes in the innermost dimension, which is no multiple of 16")
    })
}

/// Checks what is taken of images.
#[inline]
pub(super) fn im2col(operation: Operation, layout: &TensorLayout, pixels: &Im2col<'_>) -> Result<()> {
    let rank = layout.rank();
    let (count, limit) = (rank as usize - 2, [1 << 15, 1 << 7, 1 << 4][rank as usize - 3]);
    for corner in [pixels.lower, pixels.upper] {
        require(operation, corner.len() == count, || {
            format!("{} offsets of a corner for a tensor of {rank} dimensions, which has {count}", corner.len())
        })?;
        corner.iter().try_for_each(|offset| offset_within(operation, *offset, limit, rank))?;
    }
    // Pixels lie along the dimensions behind the channels, or before them where these are slices.
    let first = usize::from(layout.interleave == TensorInterleave::None);
    for (extent, (lower, upper)) in layout.extents()[first..].iter().zip(pixels.lower.iter().zip(pixels.upper)) {
        not_empty(operation, *extent, *lower, *upper)?;
    }
    columns(operation, layout, (pixels.channels_per_pixel, pixels.pixels_per_column))
}

/// Checks what is taken of the rows of images.
#[inline]
pub(super) fn im2col_wide(operation: Operation, layout: &TensorLayout, pixels: &Im2colWide) -> Result<()> {
    for offset in [pixels.lower, pixels.upper] {
        offset_within(operation, offset, 1 << 15, layout.rank())?;
    }
    not_empty(operation, layout.extents()[1], pixels.lower, pixels.upper)?;
    let is_known =
        matches!(layout.swizzle, TensorSwizzle::Bytes64 | TensorSwizzle::Bytes128 | TensorSwizzle::Bytes128Atom32);
    require(operation, is_known, || {
        format!("the swizzle {:?}; there may be Bytes64, Bytes128 and Bytes128Atom32", layout.swizzle)
    })?;
    columns(operation, layout, (pixels.channels_per_pixel, pixels.pixels_per_column))
}

/// Checks the alignment of a tensor's address.
#[inline]
pub(super) fn address(operation: Operation, address: u64, alignment: u64) -> Result<()> {
    require(operation, address.is_multiple_of(alignment), || {
        format!("the address {address:#x} is no multiple of {alignment}")
    })
}

#[inline]
fn extents(operation: Operation, layout: &TensorLayout) -> Result<()> {
    for extent in layout.extents() {
        require(operation, (1..=MAX_EXTENT).contains(extent), || {
            format!("an extent of {extent} elements; there may be 1 to {MAX_EXTENT}")
        })?;
    }
    let multiple = match layout.data_type {
        TensorDataType::Packed4Align8 => 2,
        padded if padded.is_padded() => PADDED_GROUP,
        _ => 1,
    };
    let width = layout.extents()[0];
    require(operation, width.is_multiple_of(multiple), || {
        format!("an innermost extent of {width} elements of {:?}, which is no multiple of {multiple}", layout.data_type)
    })
}

#[inline]
fn combinations(operation: Operation, layout: &TensorLayout) -> Result<()> {
    let (interleave, swizzle, data_type) = (layout.interleave, layout.swizzle, layout.data_type);
    let fits = interleave != TensorInterleave::Bytes32 || swizzle == TensorSwizzle::Bytes32;
    require(operation, fits, || format!("the swizzle {swizzle:?} for an interleave of 32 bytes, which wants Bytes32"))?;
    let fits = data_type != TensorDataType::Packed6Align16 || interleave == TensorInterleave::None;
    require(operation, fits, || format!("an interleave of {interleave:?} for {data_type:?}, which wants none"))?;
    let spans = |swizzle| match swizzle {
        TensorSwizzle::Bytes32 | TensorSwizzle::Bytes128Atom32Flip8 => false,
        // Images along the width take this one, and every map is stored by it.
        TensorSwizzle::Bytes64 | TensorSwizzle::Bytes128Atom64 => data_type == TensorDataType::Packed6Align16,
        TensorSwizzle::None | TensorSwizzle::Bytes128 | TensorSwizzle::Bytes128Atom32 => true,
    };
    require(operation, !data_type.is_padded() || spans(swizzle), || {
        format!("the swizzle {swizzle:?} for {data_type:?}, which does not have it")
    })?;
    require(operation, layout.fill == TensorFill::Zero || data_type.is_float(), || {
        format!("NaN outside of a tensor of {data_type:?}, which are no floating-point numbers")
    })
}

#[inline]
fn columns(operation: Operation, layout: &TensorLayout, (channels, pixels): (u32, u32)) -> Result<()> {
    require(operation, (1..=MAX_BOX).contains(&channels), || {
        format!("{channels} channels of a pixel; there may be 1 to {MAX_BOX}")
    })?;
    require(operation, (1..=MAX_PIXELS).contains(&pixels), || {
        format!("{pixels} pixels in a column; there may be 1 to {MAX_PIXELS}")
    })?;
    let bytes = inner(operation, layout, channels)?;
    require(operation, bytes.is_multiple_of(16), || {
        format!("{bytes} bytes of channels of a pixel, which are no multiple of 16")
    })
}

/// The bytes of so many elements of the innermost dimension, which must fit the swizzle.
#[inline]
fn inner(operation: Operation, layout: &TensorLayout, elements: u32) -> Result<u64> {
    let elements = u64::from(elements);
    require(operation, !layout.data_type.is_padded() || elements == PADDED_GROUP, || {
        format!("{elements} elements of {:?} at a time, which are taken by {PADDED_GROUP}", layout.data_type)
    })?;
    let bytes = elements * layout.data_type.bits() / 8;
    let span = layout.swizzle.span().filter(|_| layout.interleave == TensorInterleave::None);
    require(operation, span.is_none_or(|span| bytes <= span), || {
        format!("{bytes} bytes in the innermost dimension, more than the {} of the swizzle", span.unwrap_or_default())
    })?;
    Ok(bytes)
}

#[inline]
fn offset_within(operation: Operation, offset: i32, limit: i32, rank: u32) -> Result<()> {
    require(operation, (-limit..limit).contains(&offset), || {
        format!("an offset of {offset} pixels; for {rank} dimensions they are {} to {}", -limit, limit - 1)
    })
}

/// Both corners are offsets: of an extent of `extent` pixels, some must be left.
#[inline]
fn not_empty(operation: Operation, extent: u64, lower: i32, upper: i32) -> Result<()> {
    let left = i128::from(extent) + i128::from(upper) - i128::from(lower);
    require(operation, left > 0, || {
        format!("offsets of {lower} and {upper} pixels, which leave nothing of an extent of {extent}")
    })
}

/// What addresses and strides are multiples of.
#[inline]
fn alignment(layout: &TensorLayout) -> u64 {
    if layout.interleave == TensorInterleave::Bytes32 || layout.data_type.is_padded() { 32 } else { 16 }
}

#[inline]
fn require(operation: Operation, holds: bool, reason: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::argument(operation, reason())) }
}
