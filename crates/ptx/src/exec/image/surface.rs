//! Addresses on surfaces.

use super::{Geometry, Query, Surface};
use crate::exec::lane::{FULL, LANES, lanes_where};

/// The behavior of accesses beyond the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// They end the launch.
    Trap,
    /// They access the nearest element.
    Clamp,
    /// They read zeros, and write nothing.
    Zero,
}

impl Surface {
    /// Returns the address of `bytes` bytes. Beyond the edges, returns `None`, or the nearest address if accesses are clamped. The first
    /// coordinate counts bytes.
    #[inline]
    pub(crate) fn place(
        &self,
        geometry: Geometry,
        (layer, at): (u32, [u32; 3]),
        bytes: u64,
        beyond: Beyond,
    ) -> Option<u64> {
        let image = &self.image;
        let width = (u64::from(image.width) * self.element.bytes()).cast_signed();
        let signed = |coordinate: u32| i64::from(coordinate.cast_signed());
        let dimensions = geometry.dimensions();
        let third = if dimensions == 3 {
            signed(at[2])
        } else {
            signed(layer)
        };
        let second = if dimensions >= 2 { signed(at[1]) } else { 0 };
        let wanted = [signed(at[0]), second, third];
        let ends = [
            width - bytes.cast_signed(),
            i64::from(image.height) - 1,
            i64::from(image.depth) - 1,
        ];
        let is_inside = wanted
            .iter()
            .zip(ends)
            .all(|(wanted, end)| (0..=end).contains(wanted));
        if !is_inside && beyond != Beyond::Clamp {
            return None;
        }
        let [x, y, z] =
            std::array::from_fn(|axis| wanted[axis].clamp(0, ends[axis].max(0)).cast_unsigned());
        Some(image.base + (z * u64::from(image.height) + y) * image.pitch + x)
    }

    /// Returns the addresses of `bytes` bytes for the lanes of a warp, and the mask of the lanes inside the edges. The address of a lane
    /// outside the edges is the nearest one inside. If accesses are clamped, the mask has all lanes.
    #[inline(always)]
    pub(crate) fn places(
        &self,
        geometry: Geometry,
        layers: &[u32; LANES],
        at: [&[u32; LANES]; 3],
        bytes: u64,
        clamps: bool,
    ) -> ([u64; LANES], u32) {
        const FIRST: [u32; LANES] = [0; LANES];
        let image = &self.image;
        let width = (u64::from(image.width) * self.element.bytes()).cast_signed();
        let dimensions = geometry.dimensions();
        let wanted = [
            at[0],
            if dimensions >= 2 { at[1] } else { &FIRST },
            if dimensions == 3 { at[2] } else { layers },
        ];
        // Coordinates have 32 bits, so the ends are clamped to that range.
        let ends = [
            width - bytes.cast_signed(),
            i64::from(image.height) - 1,
            i64::from(image.depth) - 1,
        ]
        .map(|end| end.clamp(-1, i32::MAX.into()) as i32);
        let (rows, pitch) = (u64::from(image.height), image.pitch);
        let (mut addresses, mut outside) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let [x, y, z] =
                [wanted[0][lane], wanted[1][lane], wanted[2][lane]].map(u32::cast_signed);
            // Negative if a coordinate, or its distance from the end, is negative.
            outside[lane] = x
                | y
                | z
                | ends[0].wrapping_sub(x)
                | ends[1].wrapping_sub(y)
                | ends[2].wrapping_sub(z);
            let inside = |value: i32, end: i32| u64::from(value.min(end).max(0).cast_unsigned());
            let row = inside(z, ends[2]) * rows + inside(y, ends[1]);
            addresses[lane] = image.base + row * pitch + inside(x, ends[0]);
        }
        (
            addresses,
            if clamps {
                FULL
            } else {
                lanes_where(|lane| outside[lane] >= 0)
            },
        )
    }

    /// Returns a property of the surface.
    pub(crate) fn query(&self, query: Query) -> u32 {
        match query {
            Query::Width => self.image.width,
            Query::Height => self.image.height,
            Query::Depth | Query::ArraySize => self.image.depth,
            Query::Levels => 1,
            Query::NormalizedCoordinates => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Channel, Element, Image};
    use super::*;

    #[test]
    fn warp_finds_the_locations_that_its_lanes_find() {
        let image = Image {
            base: 0x1000,
            width: 5,
            height: 3,
            depth: 2,
            pitch: 32,
        };
        let surface = Surface {
            image,
            element: Element {
                channel: Channel::U32,
                channels: 1,
            },
        };
        let numbers = [
            0,
            1,
            2,
            3,
            4,
            12,
            16,
            17,
            20,
            u32::MAX,
            1 << 31,
            i32::MAX as u32,
        ];
        let number = |seed: usize, lane: usize| numbers[(lane * seed + lane / 7) % numbers.len()];
        let rows: [[u32; LANES]; 4] =
            [1, 5, 7, 11].map(|seed| std::array::from_fn(|lane| number(seed, lane)));
        let geometries = [
            Geometry::Line,
            Geometry::Plane,
            Geometry::Volume,
            Geometry::PlaneOfLayer,
        ];
        for geometry in geometries {
            for bytes in [1, 4, 8, 16, 64] {
                for beyond in [Beyond::Clamp, Beyond::Zero] {
                    let at = [&rows[1], &rows[2], &rows[3]];
                    let clamps = beyond == Beyond::Clamp;
                    let (addresses, inside) = surface.places(geometry, &rows[0], at, bytes, clamps);
                    for lane in 0..LANES {
                        let found = (inside >> lane & 1 == 1).then_some(addresses[lane]);
                        let place = (rows[0][lane], at.map(|row| row[lane]));
                        assert_eq!(
                            found,
                            surface.place(geometry, place, bytes, beyond),
                            "{geometry:?} {place:?} {bytes}"
                        );
                    }
                }
            }
        }
    }
}
