//! Texture fetches at coordinates.

use super::axis::{Axis, Pair, SHARES};
use super::element::{Reading, Texel};
use super::{AddressMode, Geometry, Image, Places, Read, Texture, cube};
use crate::exec::report::Trap;

/// The coordinates of a texture fetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) layer: u32,
    /// Bits of `f32`, or integers.
    pub(crate) coordinates: [u32; 3],
    pub(crate) places: Places,
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

/// A position in a level: its layer, and the elements in each direction.
struct Spot {
    layer: u32,
    directions: usize,
    pairs: [Pair; 3],
}

/// Returns the weight of an element, in units of 1 / `SHARES`. Hardware splits the total among the layers of a volume first, then among
/// columns and then among rows. Each split rounds one part, and the other part gets the rest. The rounded part is the second column, and of
/// a column's rows the one with the column's index.
#[inline(always)]
pub(super) fn share([column, row, layer]: [u32; 3], corner: [usize; 3]) -> u32 {
    let part = |whole: u32, share: u32| (whole * share + SHARES / 2) / SHARES;
    let of_layer = if corner[2] == 1 {
        layer
    } else {
        SHARES - layer
    };
    let second = part(of_layer, column);
    let [of_column, of_row] = if corner[0] == 1 {
        [second, row]
    } else {
        [of_layer - second, SHARES - row]
    };
    let same = part(of_column, of_row);
    if corner[0] == corner[1] {
        same
    } else {
        of_column - same
    }
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
        let (first, second, share) = self.levels_at(point.level);
        if self.is_out_of_reach(geometry, point.places) {
            return Ok([0; 4]);
        }
        if point.places != Places::Between {
            return self.element_at(&self.levels[first], geometry, point, read);
        }
        let nearer = self.sample_level(&self.levels[first], geometry, point, read)?;
        if share == 0.0 || !self.gives_floats() {
            return Ok(self.element.rounded(nearer));
        }
        let farther = self.sample_level(&self.levels[second], geometry, point, read)?;
        Ok(self.element.rounded(blend(nearer, farther, share)))
    }

    /// Returns one channel of the four elements of linear filtering, counterclockwise from the lower left one.
    pub(crate) fn gather(
        &self,
        geometry: Geometry,
        point: &Point,
        channel: usize,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let image = &self.levels[0];
        let spot = self.spot(image, geometry, point, true);
        let mut found = [0; 4];
        for (place, corner) in found.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
            *place = self.corner(image, &spot, [corner[0], corner[1], 0], read)?[channel];
        }
        Ok(found)
    }

    /// Returns the property of a level.
    pub(crate) fn query(&self, query: Query, level: u32) -> u32 {
        let image = self.levels.get(level as usize).or(self.levels.last());
        let extent = |direction| image.map_or(0, |image| image.extent(direction));
        match query {
            Query::Width => extent(0),
            Query::Height => extent(1),
            Query::Depth | Query::ArraySize => extent(2),
            Query::Levels => self.levels.len() as u32,
            Query::NormalizedCoordinates => self.has_normalized_coordinates.into(),
        }
    }

    /// Returns the level of detail at which gradients of these sizes, in texture coordinates, are one element.
    pub(crate) fn level_of(&self, steps: [[f32; 3]; 2]) -> f32 {
        let image = &self.levels[0];
        let length = |step: [f32; 3]| {
            let scaled = |(direction, part): (usize, f32)| {
                let scale = if self.has_normalized_coordinates {
                    image.extent(direction) as f32
                } else {
                    1.0
                };
                (part * scale).powi(2)
            };
            step.into_iter().enumerate().map(scaled).sum::<f32>().sqrt()
        };
        length(steps[0]).max(length(steps[1])).log2()
    }

    #[inline]
    pub(super) fn reading(&self) -> Reading {
        Reading {
            integers: self.reads_integers,
            is_srgb: self.is_srgb,
        }
    }

    #[inline]
    pub(super) fn gives_floats(&self) -> bool {
        self.element.gives_floats(self.reading())
    }

    /// Returns `true` if hardware returns only zeros. One-dimensional textures are read by integers only in linear memory, and by other
    /// coordinates only in arrays.
    #[inline]
    fn is_out_of_reach(&self, geometry: Geometry, places: Places) -> bool {
        match places {
            Places::Nowhere => true,
            Places::Between => self.is_buffer,
            Places::Elements | Places::NearestElements => {
                geometry == Geometry::Line && !self.is_buffer
            }
        }
    }

    /// Returns the element with integer coordinates. Beyond the edges, it is zero or the nearest element, regardless of the
    /// addressing modes.
    fn element_at(
        &self,
        image: &Image,
        geometry: Geometry,
        point: &Point,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let is_nearest = point.places == Places::NearestElements;
        let mut at = [
            0,
            0,
            if geometry.has_layers() {
                point.layer
            } else {
                0
            },
        ];
        for (direction, place) in at.iter_mut().enumerate().take(geometry.dimensions()) {
            *place = point.coordinates[direction].wrapping_add_signed(point.offset[direction]);
        }
        for (direction, place) in at.iter_mut().enumerate() {
            let last = image.extent(direction) - 1;
            if is_nearest {
                let is_layer = direction >= geometry.dimensions();
                *place = if is_layer {
                    (*place).min(last)
                } else {
                    place.cast_signed().max(0).cast_unsigned().min(last)
                };
            } else if *place > last {
                return Ok([0; 4]);
            }
        }
        self.element.read(
            image.address(self.element.bytes(), at),
            self.reading(),
            read,
        )
    }

    /// Returns the levels next to a level of detail, and the weight of the second one.
    #[inline]
    fn levels_at(&self, level: f32) -> (usize, usize, f64) {
        if self.levels.len() == 1 {
            return (0, 0, 0.0);
        }
        let last = (self.levels.len() - 1) as f32;
        let level = if level.is_nan() { 0.0 } else { level };
        let [least, most] = self.level_range;
        let [level, bias, least, most, last] =
            [level, self.level_bias, least, most, last].map(f64::from);
        let level = (level + bias).min(most).max(least).min(last).max(0.0);
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
        let is_linear = self.is_linear && self.gives_floats();
        let spot = self.spot(image, geometry, point, is_linear);
        if is_linear {
            self.blended(image, &spot, read)
        } else {
            self.corner(image, &spot, [0; 3], read)
        }
    }

    /// Returns the weighted sum of the elements around a point.
    #[inline]
    fn blended(&self, image: &Image, spot: &Spot, read: &mut impl Read) -> Result<Texel, Trap> {
        let mut sums = [0_f64; 4];
        let shares = spot.pairs.map(|pair| pair.share);
        for number in 0..1_usize << spot.directions {
            let corner = std::array::from_fn(|direction| number >> direction & 1);
            let share = f64::from(share(shares, corner)) / f64::from(SHARES);
            if share > 0.0 {
                let texel = self.corner(image, spot, corner, read)?;
                let add =
                    |(sum, bits): (&mut f64, u32)| *sum += share * f64::from(f32::from_bits(bits));
                sums.iter_mut().zip(texel).for_each(add);
            }
        }
        Ok(sums.map(|sum| (sum as f32).to_bits()))
    }

    /// Returns one of the elements around a point, or the border color.
    #[inline]
    fn corner(
        &self,
        image: &Image,
        spot: &Spot,
        corner: [usize; 3],
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let mut at = [0, 0, spot.layer];
        for direction in 0..spot.directions {
            match spot.pairs[direction].places[corner[direction]] {
                Some(place) => at[direction] = place,
                None => return Ok(self.element.border(self.border, self.reading())),
            }
        }
        self.element.read(
            image.address(self.element.bytes(), at),
            self.reading(),
            read,
        )
    }

    #[inline]
    fn spot(&self, image: &Image, geometry: Geometry, point: &Point, is_linear: bool) -> Spot {
        let mut coordinates = point.coordinates;
        let mut layer = if geometry.has_layers() {
            point.layer
        } else {
            0
        };
        let is_cube = geometry.is_cube();
        if is_cube {
            let (face, place) = cube::face(coordinates.map(f32::from_bits));
            let most = (image.depth / 6).saturating_sub(1);
            layer = layer.min(most) * 6 + face;
            coordinates = [place[0].to_bits(), place[1].to_bits(), 0];
        }
        // Hardware reads a line as the upper edge of a plane with one row. The border color of the second direction has half the weight.
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
                    places: [Some(0); 2],
                    share: 0,
                };
            }
            let offset = point.offset[direction];
            if is_linear {
                axis.pair(f32::from_bits(coordinate), offset)
            } else {
                Pair {
                    places: [axis.nearest(f32::from_bits(coordinate), offset); 2],
                    share: 0,
                }
            }
        });
        Spot {
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
fn blend(first: Texel, second: Texel, share: f64) -> Texel {
    std::array::from_fn(|channel| {
        let value = |texel: Texel| f64::from(f32::from_bits(texel[channel]));
        ((value(first) * (1.0 - share) + value(second) * share) as f32).to_bits()
    })
}
