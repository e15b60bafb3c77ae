//! Decoded tensor maps.

use super::element::Element;
use super::swizzle::Swizzle;
use crate::exec::ops::tensor_map::{Corners, Field, IM2COL, MAGIC, TILED};

/// The maximum rank of a tensor.
pub(super) const RANK: usize = 5;

/// A valid tensor map.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) address: u64,
    pub(super) rank: usize,
    /// The size along each dimension in elements, or in slices along the first dimension of an
    /// interleaved tensor.
    pub(super) extents: [i64; RANK],
    /// The stride along each dimension in bytes.
    pub(super) strides: [u64; RANK],
    /// The element stride along each dimension.
    pub(super) steps: [i64; RANK],
    pub(super) element: Element,
    /// The bytes of a slice of channels of an interleaved tensor.
    pub(super) slice: Option<u64>,
    pub(super) swizzle: Swizzle,
    /// Eight bytes of the fill value beyond the edges.
    pub(super) fill: u64,
    pub(super) part: Part,
}

/// The part of a tensor that one copy transfers.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A box of elements, before element strides.
    Box([i64; RANK]),
    /// Channels of consecutive pixels, and the corners of the box in each image.
    Pixels {
        channels: i64,
        count: u64,
        lower: [i64; RANK - 2],
        upper: [i64; RANK - 2],
    },
}

/// The NaN beyond the edges for every type, as four 16-bit numbers.
const NAN_FILL: u64 = 0x7ff7_7ff7_7ff7_7ff7;

impl Map {
    /// Decodes a map, or returns the reason why it is invalid.
    pub(super) fn read(words: &[u64; 16]) -> Result<Self, &'static str> {
        let rank = Field::RANK.get(words) as usize;
        let kind = words[0] ^ MAGIC;
        if !matches!(kind, TILED | IM2COL) || !(1..=RANK).contains(&rank) {
            return Err("no tensor map at the address");
        }
        let element = Element::from_number(Field::DATA_TYPE.get(words))
            .ok_or("tensor maps of packed elements are not supported")?;
        let slice = [None, Some(16), Some(32)]
            .get(Field::INTERLEAVE.get(words) as usize)
            .copied();
        let (Some(slice), Some(swizzle)) = (slice, Swizzle::from_map(words)) else {
            return Err("the tensor map has an invalid interleaving or swizzle");
        };
        let unit = slice.unwrap_or(element.bytes());
        let strides = std::array::from_fn(|dimension| match dimension {
            0 => unit,
            _ => Field::stride(dimension as u32 - 1).get(words),
        });
        let map = Self {
            address: Field::ADDRESS.get(words),
            rank,
            extents: per_dimension(words, Field::extent),
            strides,
            steps: per_dimension(words, Field::step),
            element,
            slice,
            swizzle,
            fill: if Field::FILL.get(words) == 0 {
                0
            } else {
                NAN_FILL
            },
            part: if kind == TILED {
                Part::boxed(words)
            } else {
                Part::pixels(words, rank)
            },
        };
        map.checked()
    }

    /// Returns the map if its values are valid. Kernels may have modified them.
    fn checked(self) -> Result<Self, &'static str> {
        if self.slice.is_some() && self.rank < 3 {
            return Err("an interleaved tensor map has fewer than three dimensions");
        }
        let mut steps = self.steps[..self.rank].iter();
        if !steps.all(|step| (1..=8).contains(step)) {
            return Err("the element strides of the tensor map are not between 1 and 8");
        }
        let mut extents = self.extents[..self.rank].iter();
        if !extents.all(|extent| (0..=1 << 32).contains(extent)) {
            return Err("the tensor map has more than 2^32 elements along a dimension");
        }
        let mut strides = self.strides[1..self.rank].iter();
        let are_aligned = strides.all(|stride| stride.is_multiple_of(16));
        if !self.address.is_multiple_of(16) || !are_aligned || !self.row().is_multiple_of(16) {
            return Err(
                "the address, strides or box of the tensor map are not multiples of 16 bytes",
            );
        }
        Ok(self)
    }

    /// Returns the bytes of a row of the part, without the padding of the swizzle.
    pub(super) fn row(&self) -> u64 {
        let unit = self.strides[0];
        match (&self.part, self.slice) {
            (Part::Box(_), _) => self.box_elements(0) * unit,
            (Part::Pixels { .. }, Some(slice)) => slice,
            (Part::Pixels { channels, .. }, None) => channels.cast_unsigned() * unit,
        }
    }

    /// Returns the distance between rows in shared memory, in bytes.
    pub(super) fn pitch(&self) -> u64 {
        if self.slice.is_some() {
            self.row()
        } else {
            self.row().max(self.swizzle.span)
        }
    }

    /// Returns the number of elements of a box along a dimension. The channels of an interleaved
    /// tensor are transferred slice by slice.
    pub(super) fn box_elements(&self, dimension: usize) -> u64 {
        let Part::Box(counts) = &self.part else {
            return 1;
        };
        match (dimension, self.slice) {
            (_, Some(_)) if dimension == self.rank - 2 => 1,
            // Neighboring elements are transferred together.
            (0, None) => counts[0].cast_unsigned(),
            _ => counts[dimension]
                .cast_unsigned()
                .div_ceil(self.steps[dimension].cast_unsigned()),
        }
    }

    /// Returns `true` if pixels may begin outside the tensor.
    pub(super) fn has_corners_outside(&self) -> bool {
        let Part::Pixels { lower, upper, .. } = &self.part else {
            return false;
        };
        lower.iter().any(|offset| *offset < 0) || upper.iter().any(|offset| *offset > 0)
    }

    /// Returns the spatial dimensions.
    pub(super) fn spatial(&self) -> std::ops::Range<usize> {
        if self.slice.is_some() {
            0..self.rank - 2
        } else {
            1..self.rank - 1
        }
    }
}

/// Returns a field of each dimension.
fn per_dimension(words: &[u64; 16], field: fn(u32) -> Field) -> [i64; RANK] {
    std::array::from_fn(|dimension| field(dimension as u32).get(words).cast_signed())
}

impl Part {
    fn boxed(words: &[u64; 16]) -> Self {
        Self::Box(std::array::from_fn(|dimension| {
            Field::boxed(dimension as u32).get(words).cast_signed() + 1
        }))
    }

    fn pixels(words: &[u64; 16], rank: usize) -> Self {
        let (lower, upper) = Corners::new(rank).unpack(Field::TAKEN.get(words));
        Self::Pixels {
            channels: Field::CHANNELS.get(words).cast_signed() + 1,
            count: Field::PIXELS.get(words),
            lower,
            upper,
        }
    }
}
