//! Fetches of a whole warp at once, from one- and two-dimensional textures.

use super::axis::{Pairs, SHARES};
use super::sample::share;
use super::{AddressMode, Geometry, Image, Texture};
use crate::exec::lane::{LANES, Lanes};
use crate::exec::report::Trap;

/// The texels of a warp's lanes, by channels.
pub(crate) type Texels = [[u32; LANES]; 4];

/// The coordinates of a warp, and the function that reads a number of bytes for a lane at an address.
pub(crate) struct Together<'a, R> {
    pub(crate) coordinates: [&'a [u32; LANES]; 2],
    pub(crate) active: u32,
    pub(crate) read: R,
}

impl Texture {
    /// Returns `true` if [`Texture::sample_together`] supports the texture: a single non-repeating image of one or two dimensions without
    /// unmapped tiles.
    pub(crate) fn can_be_read_together(&self, geometry: Geometry) -> bool {
        let Some(directions) = directions(geometry) else { return false };
        let has_edge = geometry == Geometry::Line && self.is_linear && self.address_modes[1] == AddressMode::Border;
        let is_single = |direction| self.axis(&self.levels[0], direction, false).is_single();
        self.levels.len() == 1
            && self.tiles.is_empty()
            && !self.is_buffer
            && !has_edge
            && (0..directions).all(is_single)
    }

    /// Samples the texture at the coordinates of a warp.
    #[inline(always)]
    pub(crate) fn sample_together<R>(&self, geometry: Geometry, mut warp: Together<'_, R>) -> Result<Texels, Trap>
    where
        R: FnMut(usize, u64, u64) -> Result<u64, Trap>,
    {
        let image = &self.levels[0];
        let is_plane = directions(geometry) == Some(2);
        let mut texels = [[0; LANES]; 4];
        if self.is_linear && self.gives_floats() {
            let columns = self.axis(image, 0, false).pairs::<true>(warp.coordinates[0]);
            let rows = if is_plane { self.axis(image, 1, false).pairs::<true>(warp.coordinates[1]) } else { FIRST };
            for lane in Lanes(warp.active) {
                let texel = self.blend_together(image, [&columns, &rows], lane, &mut warp.read)?;
                (0..4).for_each(|channel| texels[channel][lane] = texel[channel]);
            }
        } else {
            let columns = self.axis(image, 0, false).pairs::<false>(warp.coordinates[0]);
            let rows = if is_plane { self.axis(image, 1, false).pairs::<false>(warp.coordinates[1]) } else { FIRST };
            for lane in Lanes(warp.active) {
                let place = [columns.places[0][lane], rows.places[0][lane]];
                let texel = self.texel_at(image, place, lane, &mut warp.read)?;
                (0..4).for_each(|channel| texels[channel][lane] = texel[channel]);
            }
        }
        Ok(texels)
    }

    /// Returns the weighted sum of the elements around a lane's coordinates.
    #[inline(always)]
    fn blend_together<R>(
        &self,
        image: &Image,
        [columns, rows]: [&Pairs; 2],
        lane: usize,
        read: &mut R,
    ) -> Result<[u32; 4], Trap>
    where
        R: FnMut(usize, u64, u64) -> Result<u64, Trap>,
    {
        let shares = [columns.shares[lane], rows.shares[lane], 0];
        let mut sums = [0_f64; 4];
        for [column, row] in [[0, 0], [1, 0], [0, 1], [1, 1]] {
            let share = f64::from(share(shares, [column, row, 0])) / f64::from(SHARES);
            if share > 0.0 {
                let texel = self.texel_at(image, [columns.places[column][lane], rows.places[row][lane]], lane, read)?;
                for (sum, bits) in sums.iter_mut().zip(texel).take(self.element.channels as usize) {
                    *sum += share * f64::from(f32::from_bits(bits));
                }
            }
        }
        Ok(self.element.rounded(sums.map(|sum| (sum as f32).to_bits())))
    }

    /// Returns the element at an index, or the border color.
    #[inline(always)]
    fn texel_at<R>(&self, image: &Image, [column, row]: [i32; 2], lane: usize, read: &mut R) -> Result<[u32; 4], Trap>
    where
        R: FnMut(usize, u64, u64) -> Result<u64, Trap>,
    {
        if column < 0 || row < 0 {
            return Ok(self.element.border(self.border, self.reading()));
        }
        let address = image.address(self.element.bytes(), [column.cast_unsigned(), row.cast_unsigned(), 0]);
        self.element.read(address, self.reading(), &mut |address, bytes| read(lane, address, bytes))
    }
}

/// The row of a one-dimensional texture.
const FIRST: Pairs = Pairs { places: [[0; LANES]; 2], shares: [0; LANES] };

fn directions(geometry: Geometry) -> Option<usize> {
    match geometry {
        Geometry::Line => Some(1),
        Geometry::Plane => Some(2),
        _ => None,
    }
}
