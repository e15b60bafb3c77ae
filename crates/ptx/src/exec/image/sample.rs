//! Texture fetches at coordinates.

use super::axis::{Axis, Pair, WEIGHT_STEPS};
use super::element::{Reading, Texel};
use super::{AddressMode, CoordinateMode, Geometry, Image, Read, Texture, cube};
use crate::exec::check::report::Trap;

/// The coordinates of a texture fetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) layer: u32,
    /// Bits of `f32`, or integers.
    pub(crate) coordinates: [u32; 3],
    pub(crate) mode: CoordinateMode,
    /// The level of detail.
    pub(crate) level: f32,
    /// The offset in elements in each direction.
    pub(crate) offset: [i32; 3],
}

/// The property that an instruction queries of a texture or a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Width,
    Height,
    Depth,
    ArraySize,
    Levels,
    NormalizedCoordinates,
}

impl Query {
    /// Creates the query with a number.
    pub(crate) fn from_number(number: u64) -> Self {
        let all = [
            Self::Width,
            Self::Height,
            Self::Depth,
            Self::ArraySize,
            Self::Levels,
            Self::NormalizedCoordinates,
        ];
        all.into_iter()
            .find(|query| *query as u64 == number)
            .unwrap_or(Self::Width)
    }
}

/// The elements around a point in a level: its layer, and the elements in each direction.
struct Footprint {
    layer: u32,
    directions: usize,
    pairs: [Pair; 3],
}

/// Returns the weight of an element, in units of 1 / `WEIGHT_STEPS`. Hardware splits the total
/// among the layers of a volume first, then among columns and then among rows. Each split rounds
/// one part, and the other part gets the rest. The rounded part is the second column, and of a
/// column's rows the one with the column's index.
#[inline(always)]
pub(super) fn weight([column, row, layer]: [u32; 3], corner: [usize; 3]) -> u32 {
    let layer_weight = if corner[2] == 1 {
        layer
    } else {
        WEIGHT_STEPS - layer
    };
    let second_column = scaled(layer_weight, column);
    let (column_weight, row_weight) = if corner[0] == 1 {
        (second_column, row)
    } else {
        (layer_weight - second_column, WEIGHT_STEPS - row)
    };
    let rounded = scaled(column_weight, row_weight);
    if corner[0] == corner[1] {
        rounded
    } else {
        column_weight - rounded
    }
}

/// Returns the part `weight` of a weight, rounded.
#[inline(always)]
fn scaled(whole: u32, weight: u32) -> u32 {
    (whole * weight + WEIGHT_STEPS / 2) / WEIGHT_STEPS
}

impl Texture {
    /// Samples the texture at a point.
    #[inline]
    pub(crate) fn sample(
        &self,
        geometry: Geometry,
        point: &Point,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let (first, second, weight) = self.levels_for(point.level);
        if self.reads_zeros(geometry, point.mode) {
            return Ok([0; 4]);
        }
        if point.mode != CoordinateMode::Positions {
            return self.integer_element(&self.levels[first], geometry, point, read);
        }
        let nearer = self.sample_level(&self.levels[first], geometry, point, read)?;
        if weight == 0.0 || !self.returns_floats() {
            return Ok(self.element.rounded(nearer));
        }
        let farther = self.sample_level(&self.levels[second], geometry, point, read)?;
        Ok(self.element.rounded(blend(nearer, farther, weight)))
    }

    /// Returns one channel of the four elements of linear filtering, counterclockwise from the
    /// lower left one.
    pub(crate) fn gather(
        &self,
        geometry: Geometry,
        point: &Point,
        channel: usize,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let image = &self.levels[0];
        let footprint = self.footprint(image, geometry, point, true);
        let mut texel = [0; 4];
        for (value, [column, row]) in texel.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
            *value = self.corner(image, &footprint, [column, row, 0], read)?[channel];
        }
        Ok(texel)
    }

    /// Returns the property of a level.
    pub(crate) fn query(&self, query: Query, level: u32) -> u32 {
        let image = self.levels.get(level as usize).or(self.levels.last());
        let [width, height, depth] =
            image.map_or([0; 3], |image| [image.width, image.height, image.depth]);
        match query {
            Query::Width => width,
            Query::Height => height,
            Query::Depth | Query::ArraySize => depth,
            Query::Levels => self.levels.len() as u32,
            Query::NormalizedCoordinates => self.has_normalized_coordinates.into(),
        }
    }

    /// Returns the level of detail at which gradients of these sizes, in texture coordinates, are
    /// one element.
    pub(crate) fn gradient_level(&self, steps: [[f32; 3]; 2]) -> f32 {
        let image = &self.levels[0];
        let [first, second] = steps.map(|step| {
            let mut sum = 0.0;
            for (direction, part) in step.into_iter().enumerate() {
                let scale = if self.has_normalized_coordinates {
                    image.extent(direction) as f32
                } else {
                    1.0
                };
                sum += (part * scale).powi(2);
            }
            sum.sqrt()
        });
        first.max(second).log2()
    }

    #[inline]
    pub(super) fn reading(&self) -> Reading {
        Reading {
            integers: self.reads_integers,
            is_srgb: self.is_srgb,
        }
    }

    #[inline]
    pub(super) fn returns_floats(&self) -> bool {
        self.element.returns_floats(self.reading())
    }

    /// Returns `true` if hardware returns only zeros. One-dimensional textures are read by integers
    /// only in linear memory, and by other coordinates only in arrays.
    #[inline]
    fn reads_zeros(&self, geometry: Geometry, mode: CoordinateMode) -> bool {
        match mode {
            CoordinateMode::Ignored => true,
            CoordinateMode::Positions => self.is_buffer,
            CoordinateMode::Elements | CoordinateMode::NearestElements => {
                geometry == Geometry::Line && !self.is_buffer
            }
        }
    }

    /// Returns the element with integer coordinates. Beyond the edges, it is zero or the nearest
    /// element, regardless of the addressing modes.
    fn integer_element(
        &self,
        image: &Image,
        geometry: Geometry,
        point: &Point,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let is_nearest = point.mode == CoordinateMode::NearestElements;
        let mut coordinates = [0; 3];
        if geometry.has_layers() {
            coordinates[2] = point.layer;
        }
        let dimensions = geometry.dimensions();
        for (direction, coordinate) in coordinates.iter_mut().enumerate().take(dimensions) {
            *coordinate = point.coordinates[direction].wrapping_add_signed(point.offset[direction]);
        }
        for (direction, coordinate) in coordinates.iter_mut().enumerate() {
            let last = image.extent(direction) - 1;
            if is_nearest {
                let is_layer = direction >= geometry.dimensions();
                *coordinate = if is_layer {
                    (*coordinate).min(last)
                } else {
                    coordinate.cast_signed().max(0).cast_unsigned().min(last)
                };
            } else if *coordinate > last {
                return Ok([0; 4]);
            }
        }
        let address = image.address(self.element.bytes(), coordinates);
        self.element.read(address, self.reading(), read)
    }

    /// Returns the levels next to a level of detail, and the weight of the second one.
    #[inline]
    fn levels_for(&self, level: f32) -> (usize, usize, f64) {
        if self.levels.len() == 1 {
            return (0, 0, 0.0);
        }
        let last = (self.levels.len() - 1) as f32;
        let level = if level.is_nan() { 0.0 } else { level };
        let last = f64::from(last);
        let [min, max] = self.level_range.map(f64::from);
        let biased = f64::from(level) + f64::from(self.level_bias);
        let level = biased.min(max).max(min).min(last).max(0.0);
        if !self.is_linear_in_levels {
            let nearest = (level + 0.5).floor().min(last) as usize;
            return (nearest, nearest, 0.0);
        }
        let steps = (level * 256.0).floor();
        let first = (steps / 256.0).floor();
        (
            first as usize,
            (first as usize + 1).min(self.levels.len() - 1),
            steps / 256.0 - first,
        )
    }

    #[inline]
    fn sample_level(
        &self,
        image: &Image,
        geometry: Geometry,
        point: &Point,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let is_linear = self.is_linear && self.returns_floats();
        let footprint = self.footprint(image, geometry, point, is_linear);
        if is_linear {
            self.blended(image, &footprint, read)
        } else {
            self.corner(image, &footprint, [0; 3], read)
        }
    }

    /// Returns the weighted sum of the elements around a point.
    #[inline]
    fn blended(
        &self,
        image: &Image,
        footprint: &Footprint,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let mut sums = [0_f64; 4];
        let weights = footprint.pairs.map(|pair| pair.weight);
        for number in 0..1_usize << footprint.directions {
            let corner = std::array::from_fn(|direction| number >> direction & 1);
            let weight = f64::from(weight(weights, corner)) / f64::from(WEIGHT_STEPS);
            if weight > 0.0 {
                let texel = self.corner(image, footprint, corner, read)?;
                for (sum, bits) in sums.iter_mut().zip(texel) {
                    *sum += weight * f64::from(f32::from_bits(bits));
                }
            }
        }
        Ok(sums.map(|sum| (sum as f32).to_bits()))
    }

    /// Returns one of the elements around a point, or the border color.
    #[inline]
    fn corner(
        &self,
        image: &Image,
        footprint: &Footprint,
        corner: [usize; 3],
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let mut coordinates = [0, 0, footprint.layer];
        for direction in 0..footprint.directions {
            match footprint.pairs[direction].elements[corner[direction]] {
                Some(element) => coordinates[direction] = element,
                None => return Ok(self.element.border(self.border, self.reading())),
            }
        }
        let address = image.address(self.element.bytes(), coordinates);
        self.element.read(address, self.reading(), read)
    }

    #[inline]
    fn footprint(
        &self,
        image: &Image,
        geometry: Geometry,
        point: &Point,
        is_linear: bool,
    ) -> Footprint {
        let mut coordinates = point.coordinates;
        let mut layer = if geometry.has_layers() {
            point.layer
        } else {
            0
        };
        let is_cube = geometry.is_cube();
        if is_cube {
            let (face, [s, t]) = cube::face(coordinates.map(f32::from_bits));
            let last = (image.depth / 6).saturating_sub(1);
            layer = layer.min(last) * 6 + face;
            coordinates = [s.to_bits(), t.to_bits(), 0];
        }
        // Hardware reads a line as the upper edge of a plane with one row. The border color of the
        // second direction has half the weight.
        let has_edge =
            geometry == Geometry::Line && is_linear && self.address_modes[1] == AddressMode::Border;
        if has_edge {
            coordinates[1] = 0;
        }
        let directions = if is_cube || has_edge {
            2
        } else {
            geometry.dimensions()
        };
        let pairs = std::array::from_fn(|direction| {
            let axis = self.axis(image, direction, is_cube);
            let coordinate = coordinates[direction];
            if direction >= directions {
                return Pair {
                    elements: [Some(0); 2],
                    weight: 0,
                };
            }
            let offset = point.offset[direction];
            if is_linear {
                axis.pair(f32::from_bits(coordinate), offset)
            } else {
                Pair {
                    elements: [axis.nearest(f32::from_bits(coordinate), offset); 2],
                    weight: 0,
                }
            }
        });
        Footprint {
            layer: layer.min(image.depth - 1),
            directions,
            pairs,
        }
    }

    #[inline]
    pub(super) fn axis(&self, image: &Image, direction: usize, is_cube: bool) -> Axis {
        // The coordinates on a face are computed here, and are always normalized.
        let is_normalized = self.has_normalized_coordinates || is_cube;
        Axis {
            extent: image.extent(direction),
            mode: self.address_modes[direction],
            is_normalized,
        }
    }
}

/// Interpolates between two texels; `share` is the weight of the second.
fn blend(first: Texel, second: Texel, weight: f64) -> Texel {
    std::array::from_fn(|channel| {
        let [first, second] =
            [first, second].map(|texel| f64::from(f32::from_bits(texel[channel])));
        ((first * (1.0 - weight) + second * weight) as f32).to_bits()
    })
}
