//! Iteration over the rows of a part of a tensor and their granules.

use super::map::{Map, Part, RANK};

/// Coordinates in a tensor, in elements along each dimension.
pub(super) type Coordinates = [i64; RANK];

/// The number of bytes that are transferred together.
pub(super) const GRANULE: u64 = 16;

/// Sixteen bytes of a part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granule {
    /// The address in the tensor.
    pub(super) address: u64,
    /// The number of leading elements in bounds.
    pub(super) inside: u64,
}

/// The rows of a part, each by the coordinates of its first element.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    axes: Vec<Axis>,
    next: Coordinates,
    /// The offset that is added to the coordinates.
    offsets: Coordinates,
    remaining: u64,
}

/// The iteration along a dimension.
#[derive(Clone, Copy, Debug)]
struct Axis {
    dimension: usize,
    step: i64,
    /// The start of the next pass.
    low: i64,
    /// The end of a pass.
    high: i64,
}

impl Rows {
    /// Creates the rows of a map's part that begins at `start`. Offsets are added to the
    /// coordinates of pixels.
    pub(super) fn new(map: &Map, start: Coordinates, offsets: &[i64]) -> Self {
        match &map.part {
            Part::Box(_) => Self::in_box(map, start),
            Part::Pixels {
                count,
                lower,
                upper,
                ..
            } => Self::in_pixels(map, start, offsets, [lower, upper], *count),
        }
    }

    fn in_box(map: &Map, start: Coordinates) -> Self {
        let mut axes = Vec::with_capacity(map.rank - 1);
        let mut remaining = 1;
        for (dimension, &low) in start.iter().enumerate().take(map.rank).skip(1) {
            let step = map.steps[dimension];
            let elements = map.box_elements(dimension);
            axes.push(Axis {
                dimension,
                step,
                low,
                high: low + step * elements.cast_signed(),
            });
            remaining *= elements;
        }
        Self {
            axes,
            next: start,
            offsets: [0; RANK],
            remaining,
        }
    }

    fn in_pixels(
        map: &Map,
        start: Coordinates,
        offsets: &[i64],
        corners: [&[i64]; 2],
        count: u64,
    ) -> Self {
        let mut axes: Vec<Axis> = map
            .spatial()
            .zip(corners[0].iter().zip(corners[1]))
            .map(|(dimension, (lower, upper))| {
                let high = map.extents[dimension].saturating_add(*upper);
                Axis {
                    dimension,
                    step: map.steps[dimension],
                    low: *lower,
                    high,
                }
            })
            .collect();
        axes.push(Axis {
            dimension: map.rank - 1,
            step: 1,
            low: 0,
            high: i64::MAX,
        });
        let mut spatial_offsets = [0; RANK];
        for (dimension, offset) in map.spatial().zip(offsets) {
            spatial_offsets[dimension] = *offset;
        }
        Self {
            axes,
            next: start,
            offsets: spatial_offsets,
            remaining: count,
        }
    }

    /// Returns the number of remaining elements.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns `true` if the pixels begin inside the box of their images.
    pub(super) fn begins_inside(&self) -> bool {
        // The image dimension itself is unbounded.
        self.axes
            .iter()
            .filter(|axis| axis.high < i64::MAX)
            .all(|axis| (axis.low..axis.high).contains(&self.next[axis.dimension]))
    }
}

impl Iterator for Rows {
    type Item = Coordinates;

    fn next(&mut self) -> Option<Coordinates> {
        self.remaining = self.remaining.checked_sub(1)?;
        let row = std::array::from_fn(|dimension| self.next[dimension] + self.offsets[dimension]);
        for Axis {
            dimension,
            step,
            low,
            high,
        } in &self.axes
        {
            let coordinate = &mut self.next[*dimension];
            *coordinate += step;
            if *coordinate < *high {
                break;
            }
            *coordinate = *low;
        }
        Some(row)
    }
}

impl Map {
    /// Returns a granule of the row that begins at `row`.
    pub(super) fn granule(&self, row: Coordinates, number: u64) -> Granule {
        let unit = self.strides[0].cast_signed();
        let offset = (GRANULE * number).cast_signed();
        // The first byte along the first dimension, and the number of bytes in bounds there.
        let first;
        let mut inside;
        if self.slice.is_none() {
            first = row[0] * unit + offset;
            inside = if first < 0 {
                0
            } else {
                (self.extents[0] * unit - first).clamp(0, 16)
            };
        } else {
            let slice = row[0] + offset / unit * self.steps[0];
            first = slice * unit + offset % unit;
            inside = if (0..self.extents[0]).contains(&slice) {
                16
            } else {
                0
            };
        }
        let mut address = self.address.wrapping_add(first.cast_unsigned());
        for (dimension, coordinate) in row.iter().enumerate().take(self.rank).skip(1) {
            if !(0..self.extents[dimension]).contains(coordinate) {
                inside = 0;
            }
            let offset = coordinate
                .cast_unsigned()
                .wrapping_mul(self.strides[dimension]);
            address = address.wrapping_add(offset);
        }
        Granule {
            address,
            inside: inside.cast_unsigned(),
        }
    }
}
