//! Maps as copies read them.

use super::element::Element;
use super::swizzle::Swizzle;
use crate::exec::tensor_map::{Corners, Field, IM2COL, MAGIC, TILED};

/// Dimensions of a tensor at most.
pub(super) const RANK: usize = 5;

/// A map that was found to be one.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) address: u64,
    pub(super) rank: usize,
    /// Elements along each dimension; slices along the first if the tensor is interleaved.
    pub(super) extents: [i64; RANK],
    /// Bytes from one to the next along each dimension.
    pub(super) strides: [u64; RANK],
    /// Elements from one that is taken to the next.
    pub(super) steps: [i64; RANK],
    pub(super) element: Element,
    /// Bytes of a slice of channels, if the tensor is interleaved.
    pub(super) slice: Option<u64>,
    pub(super) swizzle: Swizzle,
    /// Eight bytes of what is beyond the edges.
    pub(super) fill: u64,
    pub(super) part: Part,
}

/// What one copy takes of a tensor.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// So many elements along each dimension, before steps.
    Box([i64; RANK]),
    /// Channels of pixels, one after the other through images; the corners of what each image is walked in.
    Pixels { channels: i64, count: u64, lower: [i64; RANK - 2], upper: [i64; RANK - 2] },
}

/// The NaN beyond the edges, whatever the type: four of 16 bits.
const NAN_FILL: u64 = 0x7ff7_7ff7_7ff7_7ff7;

impl Map {
    /// Returns the map of these words, or what is wrong with it.
    pub(super) fn read(words: &[u64; 16]) -> Result<Self, &'static str> {
        let rank = Field::RANK.get(words) as usize;
        let kind = words[0] ^ MAGIC;
        if !matches!(kind, TILED | IM2COL) || !(1..=RANK).contains(&rank) {
            return Err("no tensor map at the address");
        }
        let element = Element::of(Field::DATA_TYPE.get(words)).ok_or("a tensor map of elements that are packed")?;
        let slice = [None, Some(16), Some(32)].get(Field::INTERLEAVE.get(words) as usize).copied();
        let (Some(slice), Some(swizzle)) = (slice, Swizzle::of(words)) else {
            return Err("a tensor map with an interleaving or a swizzle that there is not");
        };
        let each = |field: fn(u32) -> Field| std::array::from_fn(|dimension| field(dimension as u32).get(words));
        let unit = slice.unwrap_or(element.bytes());
        let strides = std::array::from_fn(|dimension| match dimension {
            0 => unit,
            _ => Field::stride(dimension as u32 - 1).get(words),
        });
        let map = Self {
            address: Field::ADDRESS.get(words),
            rank,
            extents: each(Field::extent).map(u64::cast_signed),
            strides,
            steps: each(Field::step).map(u64::cast_signed),
            element,
            slice,
            swizzle,
            fill: if Field::FILL.get(words) == 0 { 0 } else { NAN_FILL },
            part: if kind == TILED { Part::boxed(words) } else { Part::pixels(words, rank) },
        };
        map.checked()
    }

    /// Returns the map, if its figures are some that copies can go by: kernels may have changed it.
    fn checked(self) -> Result<Self, &'static str> {
        let dimensions = 0..self.rank;
        if self.slice.is_some() && self.rank < 3 {
            return Err("a tensor map that is interleaved with fewer than three dimensions");
        }
        let is_step = |step: i64| (1..=8).contains(&step);
        if !dimensions.clone().all(|dimension| is_step(self.steps[dimension])) {
            return Err("a tensor map whose steps are not from 1 to 8");
        }
        if !dimensions.clone().all(|dimension| (0..=1 << 32).contains(&self.extents[dimension])) {
            return Err("a tensor map with more than 2^32 elements along a dimension");
        }
        let in_rows = self.strides[1..self.rank].iter().all(|stride| stride.is_multiple_of(16));
        if !self.address.is_multiple_of(16) || !in_rows || !self.row().is_multiple_of(16) {
            return Err("a tensor map whose address, strides or box are not multiples of 16 bytes");
        }
        Ok(self)
    }

    /// Bytes of a row of the part, in shared memory without what the swizzle adds.
    pub(super) fn row(&self) -> u64 {
        let unit = self.strides[0];
        match (&self.part, self.slice) {
            (Part::Box(_), _) => self.taken(0) * unit,
            (Part::Pixels { .. }, Some(slice)) => slice,
            (Part::Pixels { channels, .. }, None) => channels.cast_unsigned() * unit,
        }
    }

    /// Bytes from one row to the next in shared memory.
    pub(super) fn pitch(&self) -> u64 {
        if self.slice.is_some() { self.row() } else { self.row().max(self.swizzle.span) }
    }

    /// Elements that a box takes along a dimension. The channels of an interleaved tensor are taken slice by slice.
    pub(super) fn taken(&self, dimension: usize) -> u64 {
        let Part::Box(counts) = &self.part else { return 1 };
        match (dimension, self.slice) {
            (_, Some(_)) if dimension == self.rank - 2 => 1,
            // Neighbors are taken together.
            (0, None) => counts[0].cast_unsigned(),
            _ => counts[dimension].cast_unsigned().div_ceil(self.steps[dimension].cast_unsigned()),
        }
    }

    /// Returns `true` if pixels may begin outside of the tensor.
    pub(super) fn has_corners_outside(&self) -> bool {
        let Part::Pixels { lower, upper, .. } = &self.part else { return false };
        lower.iter().any(|offset| *offset < 0) || upper.iter().any(|offset| *offset > 0)
    }

    /// Returns the dimensions along which pixels lie.
    pub(super) fn spatial(&self) -> std::ops::Range<usize> {
        if self.slice.is_some() { 0..self.rank - 2 } else { 1..self.rank - 1 }
    }
}

impl Part {
    fn boxed(words: &[u64; 16]) -> Self {
        Self::Box(std::array::from_fn(|dimension| Field::boxed(dimension as u32).get(words).cast_signed() + 1))
    }

    fn pixels(words: &[u64; 16], rank: usize) -> Self {
        let (lower, upper) = Corners::of(rank).unpack(Field::TAKEN.get(words));
        Self::Pixels {
            channels: Field::CHANNELS.get(words).cast_signed() + 1,
            count: Field::PIXELS.get(words),
            lower,
            upper,
        }
    }
}
