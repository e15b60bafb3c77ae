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
    at: Coordinates,
    /// The offset that is added to the coordinates.
    offsets: Coordinates,
    left: u64,
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
    /// Creates the rows of a map's part that begins at `start`. Offsets are added to the coordinates of pixels.
    pub(super) fn new(map: &Map, start: Coordinates, offsets: &[i64]) -> Self {
        match &map.part {
            Part::Box(_) => Self::of_box(map, start),
            Part::Pixels {
                count,
                lower,
                upper,
                ..
            } => Self::of_pixels(map, start, offsets, [lower, upper], *count),
        }
    }

    fn of_box(map: &Map, start: Coordinates) -> Self {
        let axes = (1..map.rank).map(|dimension| {
            let (step, low) = (map.steps[dimension], start[dimension]);
            Axis {
                dimension,
                step,
                low,
                high: low + step * map.taken(dimension).cast_signed(),
            }
        });
        let left = (1..map.rank)
            .map(|dimension| map.taken(dimension))
            .product();
        Self {
            axes: axes.collect(),
            at: start,
            offsets: [0; RANK],
            left,
        }
    }

    fn of_pixels(
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
        let mut added = [0; RANK];
        map.spatial()
            .zip(offsets)
            .for_each(|(dimension, offset)| added[dimension] = *offset);
        Self {
            axes,
            at: start,
            offsets: added,
            left: count,
        }
    }

    /// Returns the number of remaining elements.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns `true` if the pixels begin inside the box of their images.
    pub(super) fn begins_inside(&self) -> bool {
        // The image dimension itself is unbounded.
        let corners = self.axes.iter().filter(|axis| axis.high < i64::MAX);
        corners
            .into_iter()
            .all(|axis| (axis.low..axis.high).contains(&self.at[axis.dimension]))
    }
}

impl Iterator for Rows {
    type Item = Coordinates;

    fn next(&mut self) -> Option<Coordinates> {
        self.left = self.left.checked_sub(1)?;
        let row = std::array::from_fn(|dimension| self.at[dimension] + self.offsets[dimension]);
        for Axis {
            dimension,
            step,
            low,
            high,
        } in &self.axes
        {
            let at = &mut self.at[*dimension];
            *at += step;
            if *at < *high {
                break;
            }
            *at = *low;
        }
        Some(row)
    }
}

impl Map {
    /// Returns a granule of the row that begins at `row`.
    pub(super) fn granule(&self, row: Coordinates, number: u64) -> Granule {
        let is_inside = |dimension: usize| (0..self.extents[dimension]).contains(&row[dimension]);
        let outer = (1..self.rank).all(is_inside);
        let (unit, offset) = (
            self.strides[0].cast_signed(),
            (GRANULE * number).cast_signed(),
        );
        let (first, inside) = match self.slice {
            None => {
                let first = row[0] * unit + offset;
                (
                    first,
                    if first < 0 {
                        0
                    } else {
                        (self.extents[0] * unit - first).clamp(0, 16)
                    },
                )
            }
            Some(_) => {
                let place = row[0] + offset / unit * self.steps[0];
                (
                    place * unit + offset % unit,
                    if (0..self.extents[0]).contains(&place) {
                        16
                    } else {
                        0
                    },
                )
            }
        };
        let along = |dimension: usize| {
            row[dimension]
                .cast_unsigned()
                .wrapping_mul(self.strides[dimension])
        };
        let address = (1..self.rank)
            .map(along)
            .fold(self.address, u64::wrapping_add);
        let inside = if outer { inside.cast_unsigned() } else { 0 };
        Granule {
            address: address.wrapping_add(first.cast_unsigned()),
            inside,
        }
    }
}
